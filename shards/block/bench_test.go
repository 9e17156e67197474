package block

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Benchmarks on rows like TPC-H's lineitem, sorted by order: 16 columns, of
// them 4 decimals, 3 dates, 5 texts. Rates are rows a second of wall time on
// one core.

const (
	benchRows   = 2048 // a block, as limits.BlockRows
	benchBlocks = 32
)

var lineitemTypes = func() []arrow.DataType {
	money := &arrow.Decimal128Type{Precision: 15, Scale: 2}
	i64, text, date := arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String, arrow.FixedWidthTypes.Date32
	return []arrow.DataType{i64, i64, i64, arrow.PrimitiveTypes.Int32, money, money, money, money, text, text, date, date, date, text, text, text}
}()

// lineitem is blocks of columns and the columns' ids.
func lineitem() (blocks [][]arrow.Array, ids []uint32) {
	rng := rand.New(rand.NewPCG(1, 1))
	words := strings.Fields("furiously carefully quickly slyly blithely ironic final regular express special pending bold even silent deposits requests accounts packages theodolites instructions foxes pinto beans dependencies asymptotes platelets sleep wake haggle nag are cajole boost detect integrate among across above against along the")
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	order, line, lines := int64(1), 0, 1
	for range benchBlocks {
		builders := make([]array.Builder, len(lineitemTypes))
		for i, dt := range lineitemTypes {
			builders[i] = array.NewBuilder(memory.DefaultAllocator, dt)
		}
		for range benchRows {
			if line == lines {
				order, line, lines = order+int64(1+rng.IntN(120)), 0, 1+rng.IntN(7)
			}
			line++
			quantity := int64(1 + rng.IntN(50))
			ship := 8000 + rng.IntN(2500)
			comment := pick(words...)
			for size := 6 + rng.IntN(34); len(comment) < size; {
				comment += " " + pick(words...)
			}
			ints := []int64{order, int64(rng.IntN(200_000)), int64(rng.IntN(10_000))}
			for i, v := range ints {
				builders[i].(*array.Int64Builder).Append(v)
			}
			builders[3].(*array.Int32Builder).Append(int32(line))
			for i, v := range []int64{quantity * 100, quantity * int64(90_000+rng.IntN(110_000)), int64(rng.IntN(11)), int64(rng.IntN(9))} {
				builders[4+i].(*array.Decimal128Builder).Append(decimal128.FromI64(v))
			}
			for i, v := range []string{pick("A", "N", "R"), pick("F", "O")} {
				builders[8+i].(*array.StringBuilder).Append(v)
			}
			for i, v := range []int{ship, ship - 60 + rng.IntN(90), ship + 1 + rng.IntN(30)} {
				builders[10+i].(*array.Date32Builder).Append(arrow.Date32(v))
			}
			for i, v := range []string{pick("DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"), pick("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"), comment} {
				builders[13+i].(*array.StringBuilder).Append(v)
			}
		}
		cols := make([]arrow.Array, len(builders))
		for i, b := range builders {
			cols[i] = b.NewArray()
		}
		blocks = append(blocks, cols)
	}
	for i := range lineitemTypes {
		ids = append(ids, uint32(i+1))
	}
	return blocks, ids
}

func reportRows(b *testing.B, rows int) {
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkEncode(b *testing.B) {
	blocks, ids := lineitem()
	e := NewEncoder()
	var out []byte
	size := 0
	for b.Loop() {
		size = 0
		for _, cols := range blocks {
			var err error
			if out, err = e.Encode(out[:0], benchRows, ids, cols); err != nil {
				b.Fatal(err)
			}
			size += len(out)
		}
	}
	reportRows(b, benchRows*benchBlocks)
	b.ReportMetric(float64(size)/(benchRows*benchBlocks), "bytes/row")
}

func BenchmarkZoneOf(b *testing.B) {
	blocks, _ := lineitem()
	for b.Loop() {
		for _, cols := range blocks {
			for _, col := range cols {
				ZoneOf(col)
			}
		}
	}
	reportRows(b, benchRows*benchBlocks)
}

// BenchmarkDecode appends blocks into batches of four, as a scan does: all
// columns, three, and each by itself.
func BenchmarkDecode(b *testing.B) {
	blocks, ids := lineitem()
	e := NewEncoder()
	var encoded [][]byte
	for _, cols := range blocks {
		data, err := e.Encode(nil, benchRows, ids, cols)
		if err != nil {
			b.Fatal(err)
		}
		encoded = append(encoded, data)
	}
	scan := func(name string, ids []uint32) {
		b.Run(name, func(b *testing.B) {
			vectors := make([]*Vector, len(ids))
			for i, id := range ids {
				vectors[i] = NewVector(memory.DefaultAllocator, lineitemTypes[id-1])
			}
			for b.Loop() {
				for i, data := range encoded {
					r, err := Open(data)
					if err != nil {
						b.Fatal(err)
					}
					for j, id := range ids {
						if err := r.Append(vectors[j], id, 0, benchRows); err != nil {
							b.Fatal(err)
						}
						if i%4 == 3 {
							vectors[j].Reset()
						}
					}
				}
			}
			reportRows(b, benchRows*benchBlocks)
		})
	}
	scan("all", ids)
	scan("3-columns", []uint32{1, 6, 11})
	for _, column := range []struct {
		name string
		id   uint32
	}{{"int64", 1}, {"decimal128", 6}, {"stepped", 5}, {"date32", 11}, {"dictionary-1-byte", 9}, {"dictionary-17-bytes", 14}, {"text", 16}} {
		scan("column/"+column.name, []uint32{column.id})
	}
}

// BenchmarkPoint reads three rows of every column of a block that is not in
// any cache of ours: open, check, pick.
func BenchmarkPoint(b *testing.B) {
	blocks, ids := lineitem()
	data, err := NewEncoder().Encode(nil, benchRows, ids, blocks[0])
	if err != nil {
		b.Fatal(err)
	}
	vectors := make([]*Vector, len(ids))
	for i := range ids {
		vectors[i] = NewVector(memory.DefaultAllocator, lineitemTypes[i])
	}
	for b.Loop() {
		r, err := Open(data)
		if err != nil {
			b.Fatal(err)
		}
		for i, id := range ids {
			if err := r.AppendRows(vectors[i], id, []uint32{700, 701, 702}); err != nil {
				b.Fatal(err)
			}
			vectors[i].Reset()
		}
	}
}

// BenchmarkGather takes rows in random order from several batches, as the sort
// of an ingest does.
func BenchmarkGather(b *testing.B) {
	blocks, _ := lineitem()
	rng := rand.New(rand.NewPCG(2, 2))
	refs := make([]Ref, benchRows)
	for i := range refs {
		refs[i] = Ref{Batch: uint32(rng.IntN(benchBlocks)), Row: uint32(rng.IntN(benchRows))}
	}
	vectors := make([]*Vector, len(lineitemTypes))
	sources := make([][]arrow.Array, len(lineitemTypes))
	for i, dt := range lineitemTypes {
		vectors[i] = NewVector(memory.DefaultAllocator, dt)
		for _, cols := range blocks {
			sources[i] = append(sources[i], cols[i])
		}
	}
	for b.Loop() {
		for i, v := range vectors {
			v.AppendRefs(sources[i], refs)
			v.Reset()
		}
	}
	reportRows(b, benchRows)
}

// BenchmarkPack is the kernel by itself.
func BenchmarkPack(b *testing.B) {
	rng := rand.New(rand.NewPCG(3, 3))
	values, dst := make([]uint64, benchRows), make([]byte, 0, benchRows*8+slack)
	for _, width := range []int{1, 7, 16, 24, 57} {
		for i := range values {
			values[i] = 1000 + rng.Uint64()&packMask(width)
		}
		b.Run(fmt.Sprintf("%d-bits", width), func(b *testing.B) {
			b.SetBytes(benchRows * 8)
			for b.Loop() {
				pack(dst, values, 1000, 1, width)
			}
		})
	}
}

// BenchmarkUnpack is the kernel by itself, for each width that a type of 8
// bytes meets.
func BenchmarkUnpack(b *testing.B) {
	src, dst := make([]byte, benchRows*8+slack), make([]uint64, benchRows)
	for _, width := range []int{1, 7, 16, 24, 57, 64} {
		b.Run(fmt.Sprintf("%d-bits", width), func(b *testing.B) {
			b.SetBytes(benchRows * 8)
			for b.Loop() {
				unpack(dst, src, 0, width, 1000, 1)
			}
		})
	}
}
