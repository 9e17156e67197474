package block

import (
	"errors"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

var ErrCorrupt = errors.New("corrupt block")

type Ref struct{ Batch, Row uint32 }

type Vector struct{ n int }

func NewVector(mem memory.Allocator, canonical arrow.DataType) *Vector { return &Vector{} }
func (v *Vector) Type() arrow.DataType                              { return nil }
func (v *Vector) Len() int                                             { return v.n }
func (v *Vector) Bytes() int64                                         { return 0 }
func (v *Vector) Reserve(rows int)                                     {}
func (v *Vector) Reset()                                               {}
func (v *Vector) Release()                                             {}
func (v *Vector) AppendNulls(n int)                                    {}
func (v *Vector) AppendArray(arr arrow.Array, lo, hi int)              {}
func (v *Vector) AppendRows(arr arrow.Array, rows []uint32)            {}
func (v *Vector) AppendRefs(srcs []arrow.Array, refs []Ref)            {}
func (v *Vector) NewArray() arrow.Array                                { return nil }

type Encoder struct{}

func NewEncoder() *Encoder { return &Encoder{} }
func (e *Encoder) Encode(dst []byte, rows int, ids []uint32, cols []arrow.Array) ([]byte, error) {
	return nil, nil
}

type Reader struct{ data []byte }

func Open(data []byte) (Reader, error)                                 { return Reader{}, nil }
func (r *Reader) Rows() int                                            { return 0 }
func (r *Reader) Columns() []uint32                                    { return nil }
func (r *Reader) Has(id uint32) bool                                   { return false }
func (r *Reader) ChunkBytes(id uint32) int                             { return 0 }
func (r *Reader) Append(v *Vector, id uint32, lo, hi int) error        { return nil }
func (r *Reader) AppendRows(v *Vector, id uint32, rows []uint32) error { return nil }

type Zone struct {
	Rows, Nulls        int
	NaN                bool
	Min, Max           []byte
	MinExact, MaxExact bool
}

func ZoneOf(arr arrow.Array) Zone                        { return Zone{} }
func ZoneValue(arr arrow.Array, row int) ([]byte, bool) { return nil, false }
