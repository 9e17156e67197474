package shards

import (
	"bytes"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/cockroachdb/pebble/v2"

	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
	"github.com/sheaf-db/sheaf/shards/layout"
	"github.com/sheaf-db/sheaf/shards/run"
)

// deltaSource is one generation of a slice's delta, as of a commit: of each key
// its newest version that is not newer. It implements run.Source.
type deltaSource struct {
	table      *Table
	generation *generation
	commit     uint64
	partRows   int // cuts parts
	shelf      *shelf
}

// deltaSource is a generation as of a commit, cut into parts that suit so many
// rows in the runs below. Where the delta is thin, parts are short, so that each
// meets few blocks of these runs and the other blocks stream through unmerged.
// Parts of large rows are short too: one is about as large as a block at most.
// Cursors share the payloads on the shelf; nil: they share none.
func (t *Table) deltaSource(g *generation, commit, rowsBelow uint64, kept *shelf) *deltaSource {
	overBlock := g.entries.Load() * limits.BlockRows / max(rowsBelow, 1)
	rows := min(overBlock, limits.BlockRows, limits.BlockBytes/g.rowBytes())
	return &deltaSource{table: t, generation: g, commit: commit, partRows: int(max(rows, 1)), shelf: kept}
}

// rowBytes is what a row takes on average.
func (g *generation) rowBytes() uint64 {
	return max(g.size.Load()/max(g.entries.Load(), 1), 1)
}

// Versions bounds the versions of the rows.
func (s *deltaSource) Versions() (least, greatest uint64) { return s.generation.number, s.commit }

// Cursor opens a cursor, which belongs to one goroutine.
func (s *deltaSource) Cursor(o run.CursorOptions) (run.Cursor, error) {
	return &deltaCursor{
		source: s, o: o, widener: run.NewWidener(o.Mem),
		prefix: layout.GenerationPrefix(s.table.id, s.generation.slice, s.generation.number),
	}, nil
}

// deltaCursor reads rows through one Pebble iterator, a part ahead; payloads are
// fetched when a part is loaded.
type deltaCursor struct {
	source *deltaSource
	o      run.CursorOptions
	prefix []byte

	it     *pebble.Iterator
	valid  bool // it stands on the first entry of the next key
	bounds run.Bounds
	part   run.Part

	keys     key.Keys
	versions []uint64
	rows     []int32 // in the payload of the version; deleted: -1

	payloads map[uint64]*payload
	held     int // bytes of payloads
	places   places
	picks    []uint32
	vectors  map[arrow.DataType]*block.Vector // scratch, by type
	widener  *run.Widener

	storedID uint32 // the column whose type in storedOf is stored
	storedOf *Schema
	stored   arrow.DataType
}

const deletedRow = -1

// Seek restricts the cursor to b.
func (c *deltaCursor) Seek(b run.Bounds) (err error) {
	c.bounds = b
	lower := layout.DeltaRowsBound(nil, c.prefix, b.Low)
	upper := layout.DeltaRowsEnd(nil, c.prefix)
	if b.High != nil {
		upper = c.upper(b.High)
	}
	if c.it == nil {
		c.it, err = c.source.table.store.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
		if err != nil {
			return err
		}
	} else {
		c.it.SetBounds(lower, upper)
	}
	if c.o.Desc {
		c.valid = c.it.Last()
	} else {
		c.valid = c.it.First()
	}
	return c.failed(c.it.Error())
}

// upper is a bound above all rows whose key is below high. A row's key in the
// delta is longer than its primary key, by the commit; so where high itself goes
// on behind a whole key (just above it), that key's rows must be let in.
// Whatever the bound lets in too many, collect leaves out.
func (c *deltaCursor) upper(high []byte) []byte {
	if n, err := key.Prefix(c.source.table.key.Types, high, len(c.source.table.key.Types)); err == nil && n < len(high) {
		if high = key.Next(high[:n]); high == nil {
			return layout.DeltaRowsEnd(nil, c.prefix)
		}
	}
	return layout.DeltaRowsBound(nil, c.prefix, high)
}

// Next collects the next part's keys.
func (c *deltaCursor) Next() (*run.Part, error) {
	c.keys.Reset()
	c.versions, c.rows = c.versions[:0], c.rows[:0]
	for c.valid && len(c.rows) < c.source.partRows {
		var err error
		if c.o.Desc {
			err = c.collectBackward()
		} else {
			err = c.collect()
		}
		if err != nil {
			return nil, c.failed(err)
		}
	}
	if err := c.it.Error(); err != nil {
		return nil, c.failed(err)
	}
	n := len(c.rows)
	if n == 0 {
		return nil, nil
	}
	if c.o.Desc {
		c.reverse()
	}
	c.part = run.Part{
		First: c.keys.At(0), Last: c.keys.At(n - 1), Rows: n, Whole: true,
		Bytes: n * int(c.source.generation.rowBytes()), Greatest: slices.Max(c.versions),
	}
	for _, row := range c.rows {
		if row == deletedRow {
			c.part.Tombstones++
		}
	}
	return &c.part, nil
}

// collect takes one key forwards: its entries come newest first.
func (c *deltaCursor) collect() error {
	var current []byte
	taken := false
	for ; c.valid; c.valid = c.it.Next() {
		primary, commit, err := layout.SplitDeltaRow(len(c.prefix), c.it.Key())
		if err != nil {
			return err
		}
		if current == nil {
			current = append(make([]byte, 0, len(primary)), primary...)
		} else if !bytes.Equal(current, primary) {
			break
		}
		if taken || commit > c.source.commit || !c.inside(primary) {
			continue
		}
		taken = true
		if err := c.add(primary, commit); err != nil {
			return err
		}
	}
	return nil
}

// collectBackward takes one key backwards: its entries come oldest first, the
// last that is not too new counts.
func (c *deltaCursor) collectBackward() error {
	var current []byte
	added := false
	for ; c.valid; c.valid = c.it.Prev() {
		primary, commit, err := layout.SplitDeltaRow(len(c.prefix), c.it.Key())
		if err != nil {
			return err
		}
		if current == nil {
			current = append(make([]byte, 0, len(primary)), primary...)
		} else if !bytes.Equal(current, primary) {
			break
		}
		if commit > c.source.commit || !c.inside(primary) {
			continue
		}
		if added {
			n := len(c.rows) - 1
			c.versions, c.rows = c.versions[:n], c.rows[:n]
			c.keys.Ends = c.keys.Ends[:n]
			c.keys.Data = c.keys.Data[:len(c.keys.Data)-len(primary)]
		}
		added = true
		if err := c.add(primary, commit); err != nil {
			return err
		}
	}
	return nil
}

func (c *deltaCursor) inside(primary []byte) bool {
	return bytes.Compare(primary, c.bounds.Low) >= 0 &&
		(c.bounds.High == nil || bytes.Compare(primary, c.bounds.High) < 0)
}

func (c *deltaCursor) add(primary []byte, commit uint64) error {
	value, err := c.it.ValueAndErr()
	if err != nil {
		return err
	}
	row, deleted, err := rowNumber(value)
	if err != nil {
		return err
	}
	if deleted {
		row = deletedRow
	}
	c.keys.Append(primary)
	c.versions = append(c.versions, commit)
	c.rows = append(c.rows, int32(row))
	return nil
}

// reverse puts a part that was collected backwards into key order.
func (c *deltaCursor) reverse() {
	var ascending key.Keys
	ascending.Grow(len(c.rows), len(c.keys.Data))
	for i := len(c.rows) - 1; i >= 0; i-- {
		ascending.Append(c.keys.At(i))
	}
	c.keys = ascending
	slices.Reverse(c.versions)
	slices.Reverse(c.rows)
}
