package ingest

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/ingest/quota"
	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
)

// group is the batches that one commit takes: converted, and keyed row by row
// in the order of arrival. Rows are numbered over the whole group.
type group struct {
	binding *binding
	batches []bound
	keys    key.Keys
	bytes   int64
}

// bound is one batch as the table takes it.
type bound struct {
	place   place
	columns []arrow.Array // of the binding's schema; see binding.columns
	first   uint32        // its first row in the group
}

func (g *group) rows() int { return g.keys.Len() }

func (g *group) release() {
	for _, b := range g.batches {
		releaseAll(b.columns)
	}
	g.batches = nil
}

// What rows, and the columns of a batch, cost beside their values: columns of
// nulls, runs that stand for any number of rows and batches without rows are
// not free.
const (
	rowBytes    = 16
	columnBytes = 512
)

// add binds a batch and makes its keys; on an error, which names its place, the
// group is as before. lease gives ids for the rows of a table without key; max
// bounds what the batch may take when it is decoded.
func (g *group) add(mem memory.Allocator, batch arrow.RecordBatch, place place, max int64, lease func(uint64) (uint64, error)) (err error) {
	rows := batch.NumRows()
	if rows > max/rowBytes || int64(g.rows())+rows > 1<<31 {
		return tooLarge(place, max)
	}
	defer quota.Recover(&err, func() error { return tooLarge(place, max) })
	columns, err := g.binding.columns(quota.New(mem, max-rows*rowBytes), batch, place)
	if err != nil {
		return err
	}
	b := bound{place: place, columns: columns, first: uint32(g.rows())}
	keyBytes := len(g.keys.Data)
	if g.binding.schema.HiddenID {
		err = g.number(mem, &b, int(rows), lease)
	} else {
		err = g.key(&b)
	}
	if err == nil && bytesOf(columns) > 2*max {
		err = tooLarge(place, max) // its columns share one part of the message
	}
	if err == nil {
		err = checkRowSizes(columns, int(rows), place)
	}
	if err != nil {
		g.keys.Ends, g.keys.Data = g.keys.Ends[:b.first], g.keys.Data[:keyBytes]
		releaseAll(columns)
		return err
	}
	g.batches = append(g.batches, b)
	g.bytes += bytesOf(columns) + rows*rowBytes + int64(len(columns)*columnBytes)
	return nil
}

func tooLarge(place place, max int64) error {
	return fault.New(fault.ResourceExhausted, "MESSAGE_TOO_LARGE",
		"%s takes more than %d bytes when decoded, the limit of one message (--max-message): send smaller batches", place, max)
}

// key encodes the primary keys of a batch.
func (g *group) key(b *bound) error {
	s := g.binding.schema
	columns := make([]arrow.Array, 0, limits.KeyColumns)
	for _, c := range s.KeyColumns() {
		columns = append(columns, b.columns[c])
	}
	err := key.Encode(&g.keys, columns)
	var bad *key.RowError
	if !errors.As(err, &bad) {
		return err
	}
	at := max(bad.Column, 0)
	name := s.Columns[s.KeyColumns()[at]].Field.Name
	if bad.Reason == key.TooLong {
		return fault.Invalid("KEY_TOO_LARGE", "%s, row %d, column %q: the row's key takes %d bytes encoded; the limit is %d; the value is %s",
			b.place, bad.Row, name, bad.Bytes, limits.KeyBytes, valueText(columns[at], bad.Row))
	}
	return fault.Invalid("KEY_NULL", "%s, row %d, column %q: the value is null, and a key column holds no nulls", b.place, bad.Row, name)
}

// number gives hidden ids to the rows of a batch.
func (g *group) number(mem memory.Allocator, b *bound, rows int, lease func(uint64) (uint64, error)) error {
	if rows == 0 {
		b.columns[0] = nulls(mem, arrow.PrimitiveTypes.Uint64, 0)
		return nil
	}
	first, err := lease(uint64(rows))
	if err != nil {
		return err
	}
	ids := memory.NewResizableBuffer(mem)
	defer ids.Release()
	ids.Resize(rows * 8)
	values := arrow.GetData[uint64](ids.Bytes())
	g.keys.Grow(rows, rows*8)
	var encoded [8]byte
	for i := range values {
		values[i] = first + uint64(i)
		binary.BigEndian.PutUint64(encoded[:], values[i])
		g.keys.Append(encoded[:])
	}
	data := array.NewData(arrow.PrimitiveTypes.Uint64, rows, []*memory.Buffer{nil, ids}, nil, 0, 0)
	defer data.Release()
	b.columns[0] = array.MakeFromData(data)
	return nil
}

// batchOf is the index of the batch that holds a row of the group.
func (g *group) batchOf(row uint32) int {
	i, exact := slices.BinarySearchFunc(g.batches, row, func(b bound, row uint32) int {
		switch {
		case b.first < row:
			return -1
		case b.first > row:
			return 1
		}
		return 0
	})
	if !exact {
		return i - 1
	}
	for i+1 < len(g.batches) && g.batches[i+1].first == row { // batches without rows
		i++
	}
	return i
}

// refs says where rows of the group are.
func (g *group) refs(rows []uint32) []block.Ref {
	refs := make([]block.Ref, len(rows))
	low, high, at := uint32(0), uint32(0), 0
	for i, row := range rows {
		if row < low || row >= high {
			at = g.batchOf(row)
			low, high = g.batches[at].first, uint32(g.rows())
			if at+1 < len(g.batches) {
				high = g.batches[at+1].first
			}
		}
		refs[i] = block.Ref{Batch: uint32(at), Row: row - low}
	}
	return refs
}

// cut leaves the first n batches in the group.
func (g *group) cut(n int) {
	for _, b := range g.batches[n:] {
		releaseAll(b.columns)
	}
	rows := g.batches[n].first
	g.batches = g.batches[:n]
	g.keys.Data = g.keys.Data[:g.keys.Ends[rows]-uint32(len(g.keys.At(int(rows))))]
	g.keys.Ends = g.keys.Ends[:rows]
}

// at is the place of a row, for messages: its batch, and its row there.
func (g *group) at(row uint32) (place, uint32) {
	b := g.batches[g.batchOf(row)]
	return b.place, row - b.first
}

// keyText is the key of a row, for messages.
func (g *group) keyText(row uint32) string {
	return cutText(key.String(g.binding.schema.KeyTypes(), g.keys.At(int(row))))
}

func (g *group) columns() [][]arrow.Array {
	list := make([][]arrow.Array, len(g.batches))
	for i, b := range g.batches {
		list[i] = b.columns
	}
	return list
}
