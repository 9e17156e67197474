package shards

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/pebble/v2"

	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
	"github.com/sheaf-db/sheaf/shards/layout"
)

// deltaPiece is what a small commit brings to one slice: the rows as one block
// in the encoding of runs, and their keys. A delete has a key and no row.
type deltaPiece struct {
	slice   int
	keys    key.Keys
	payload []byte // nil: every key is deleted
}

// A payload is a header of payloadHeader bytes, then a block:
//
//	byte 0     payload format
//	bytes 1-3  zero
//	bytes 4-7  version of the schema that the columns are typed by, little-endian
const payloadFormat byte = 1

const payloadHeader = 8

// encoders keeps the scratch memory of encoders between small commits.
var encoders = sync.Pool{New: func() any { return block.NewEncoder() }}

// encodePieces encodes a small commit. The rows of all slices are gathered once,
// column by column: a slice has few, and a vector for each of its columns would
// cost more than they do.
func (t *Table) encodePieces(ctx context.Context, c Commit) ([]deltaPiece, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var columns []arrow.Array
	defer func() { releaseAll(columns) }() // after a panic too
	t.gatherRows(&columns, c)
	ids := c.Schema.IDs()
	encoder := encoders.Get().(*block.Encoder)
	defer encoders.Put(encoder)
	pieces := make([]deltaPiece, 0, len(c.Slices))
	var err error
	var payload []byte // of all slices, one behind the other
	at := 0
	for _, rows := range c.Slices {
		n := rows.Keys.Len()
		if n == 0 {
			continue
		}
		p := deltaPiece{
			slice: rows.Slice,
			keys:  key.Keys{Data: slices.Clone(rows.Keys.Data), Ends: slices.Clone(rows.Keys.Ends)},
		}
		if !rows.Tombstones {
			start := len(payload)
			payload = append(payload, payloadFormat, 0, 0, 0)
			payload = binary.LittleEndian.AppendUint32(payload, c.Schema.Version)
			if payload, err = encoder.EncodeRows(payload, at, at+n, ids, columns); err != nil {
				return nil, fmt.Errorf("encoding a small commit: %w", err)
			}
			at += n
			p.payload = payload[start:len(payload):len(payload)]
		}
		pieces = append(pieces, p)
	}
	return pieces, nil
}

// gatherRows appends the columns of the rows that a commit brings, slice by slice;
// the caller releases them.
func (t *Table) gatherRows(columns *[]arrow.Array, c Commit) {
	total := 0
	for _, rows := range c.Slices {
		if !rows.Tombstones {
			total += rows.Keys.Len()
		}
	}
	if total == 0 {
		return
	}
	refs := make([]block.Ref, 0, total)
	for _, rows := range c.Slices {
		if !rows.Tombstones {
			refs = append(refs, rows.Refs...)
		}
	}
	*columns = make([]arrow.Array, 0, len(c.Schema.Columns))
	sources := make([]arrow.Array, len(c.Batches))
	for i, column := range c.Schema.Columns {
		for b, batch := range c.Batches {
			sources[b] = batch[i]
		}
		*columns = append(*columns, gather(t.store.options.Allocator, column.Canonical, sources, refs))
	}
}

// gather picks rows of one column out of several arrays; the caller releases
// the result.
func gather(mem memory.Allocator, dt arrow.DataType, sources []arrow.Array, refs []block.Ref) arrow.Array {
	v := block.NewVector(mem, dt)
	defer v.Release()
	v.Reserve(len(refs))
	v.AppendRefs(sources, refs)
	return v.NewArray()
}

// splitPayload is the schema version and the block of a payload.
func splitPayload(payload []byte) (schema uint32, data []byte, err error) {
	if len(payload) < payloadHeader || payload[0] != payloadFormat {
		return 0, nil, fmt.Errorf("%w: not a delta payload of format %d", block.ErrCorrupt, payloadFormat)
	}
	return binary.LittleEndian.Uint32(payload[4:]), payload[payloadHeader:], nil
}

// A delta row's value is the number of the row in the payload that its commit
// wrote into its generation; empty: the key is deleted.
func appendRowNumber(dst []byte, row int) []byte { return binary.AppendUvarint(dst, uint64(row)) }

func rowNumber(value []byte) (row int, deleted bool, err error) {
	if len(value) == 0 {
		return 0, true, nil
	}
	n, used := binary.Uvarint(value)
	if used != len(value) || n > math.MaxInt32 {
		return 0, false, fmt.Errorf("%w: a delta row points nowhere", block.ErrCorrupt)
	}
	return int(n), false, nil
}

// deltaWriter puts the pieces of a commit into its batch, in the publish
// section.
type deltaWriter struct {
	table   *Table
	batch   *pebble.Batch
	version *version
	cloned  bool
	touched []*touchedGeneration
	bySlice map[int]*touchedGeneration
}

// touchedGeneration is a generation and what this commit adds to it.
type touchedGeneration struct {
	*generation
	added generationCount
}

func (w *deltaWriter) write(p *Prepared, commit uint64) error {
	for i := range p.pieces {
		piece := &p.pieces[i]
		if piece.slice >= w.table.slices {
			return fmt.Errorf("a prepared commit names slice %d of %d", piece.slice, w.table.slices)
		}
		if err := w.writePiece(piece, w.generation(piece.slice, commit), commit); err != nil {
			return err
		}
	}
	return nil
}

// generation is the one of the slice that takes writes; a new one is named by
// the commit that begins it, so that numbers are never reused.
func (w *deltaWriter) generation(slice int, commit uint64) *touchedGeneration {
	if g := w.bySlice[slice]; g != nil {
		return g
	}
	list := w.version.delta.of(slice)
	touched := &touchedGeneration{}
	if n := len(list); n > 0 && !list[n-1].frozen {
		touched.generation = list[n-1]
	} else {
		if !w.cloned {
			w.version.delta, w.cloned = w.version.delta.clone(), true
		}
		touched.generation = &generation{slice: slice, number: commit, born: w.version.epoch}
		w.version.delta.bySlice[slice] = append(slices.Clone(list), touched.generation)
	}
	if w.bySlice == nil {
		w.bySlice = map[int]*touchedGeneration{}
	}
	w.bySlice[slice] = touched
	w.touched = append(w.touched, touched)
	return touched
}

func (w *deltaWriter) writePiece(piece *deltaPiece, g *touchedGeneration, commit uint64) error {
	prefix := layout.GenerationPrefix(w.table.id, g.slice, g.number)
	n := piece.keys.Len()
	var value []byte
	for i := range n {
		primary := piece.keys.At(i)
		value = value[:0]
		if piece.payload != nil {
			value = appendRowNumber(value, i)
		}
		op := w.batch.SetDeferred(len(prefix)+1+len(primary)+8, len(value))
		layout.AppendDeltaRow(op.Key[:0], prefix, primary, commit)
		copy(op.Value, value)
		if err := op.Finish(); err != nil {
			return err
		}
		g.added.size += uint64(len(op.Key) + len(value))
	}
	g.added.entries += uint64(n)
	w.version.entries += uint64(n)
	if piece.payload == nil {
		g.added.tombstones += uint64(n)
		w.version.tombstones += uint64(n)
		return nil
	}
	g.added.size += uint64(len(piece.payload))
	return w.batch.Set(layout.AppendDeltaPayload(nil, prefix, commit), piece.payload, nil)
}

// finish writes the lists of the generations touched.
func (w *deltaWriter) finish() error {
	for _, touched := range w.touched {
		var list []generationCount
		for _, g := range w.version.delta.of(touched.slice) {
			c := g.count()
			if g == touched.generation {
				c.entries += touched.added.entries
				c.tombstones += touched.added.tombstones
				c.size += touched.added.size
			}
			list = append(list, c)
		}
		if err := w.batch.Set(layout.GensKey(w.table.id, touched.slice), encodeGenerations(list), nil); err != nil {
			return err
		}
	}
	return nil
}

// count moves the generations' counters, once the batch is applied.
func (w *deltaWriter) count() {
	for _, g := range w.touched {
		g.entries.Add(g.added.entries)
		g.tombstones.Add(g.added.tombstones)
		g.size.Add(g.added.size)
	}
}
