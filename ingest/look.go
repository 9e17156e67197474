package ingest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"golang.org/x/sync/errgroup"

	"github.com/sheaf-db/sheaf/shards"
	"github.com/sheaf-db/sheaf/shards/key"
	"github.com/sheaf-db/sheaf/shards/run"
)

// look compares the keys of a group with a snapshot of the table.
type look struct {
	table    *shards.Table
	snapshot *shards.Snapshot
	group    *group
	mem      memory.Allocator
	rows     []uint64 // about how many rows each slice holds
}

func newLook(table *shards.Table, snapshot *shards.Snapshot, group *group, mem memory.Allocator) *look {
	l := &look{table: table, snapshot: snapshot, group: group, mem: mem}
	for _, stat := range snapshot.SliceStats() {
		l.rows = append(l.rows, stat.Rows+stat.DeltaRows)
	}
	return l
}

// One key looked up by itself costs about as much as reading so many rows in a
// row, of the key columns or of others too (see BenchmarkLook).
const (
	lookRows      = 32
	lookWholeRows = 4
)

// ranges is where the keys of a part are: a point each, or all that lies between
// the first and the last where the slice holds little else.
func (l *look) ranges(part sorted, columns []uint32) []run.Range {
	worth := uint64(lookRows)
	if len(columns) > 0 {
		worth = lookWholeRows
	}
	n := part.keys.Len()
	if uint64(n)*worth < l.rows[part.slice] {
		return points(part)
	}
	return []run.Range{{Slice: part.slice, Low: part.keys.At(0), High: append(bytes.Clone(part.keys.At(n-1)), 0)}}
}

// exists tells for each key of each part whether the table has it.
func (l *look) exists(ctx context.Context, parts []sorted) ([][]bool, error) {
	found := make([][]bool, len(parts))
	for p, part := range parts {
		found[p] = make([]bool, part.keys.Len())
	}
	if rows, exact := l.snapshot.Rows(); exact && rows == 0 {
		return found, nil
	}
	tasks, ctx := errgroup.WithContext(ctx)
	tasks.SetLimit(runtime.GOMAXPROCS(0))
	for p, part := range parts {
		tasks.Go(func() (err error) {
			defer recovered("looking at what exists", &err)
			return l.match(ctx, part, nil, func(_ []arrow.Array, _, at int) error {
				found[p][at] = true
				return nil
			})
		})
	}
	return found, tasks.Wait()
}

// match calls each for every key of a part that the table has, in key order:
// with the batch of the columns asked for, the row in it, and which key of the
// part it is. The columns are valid during the call only.
func (l *look) match(ctx context.Context, part sorted, columns []uint32, each func(columns []arrow.Array, row, at int) error) error {
	schema := l.group.binding.schema
	keyColumns := schema.KeyColumns()
	ids := make([]uint32, 0, len(keyColumns)+len(columns))
	for _, c := range keyColumns {
		ids = append(ids, schema.Columns[c].ID)
	}
	scan, err := l.snapshot.Scan(ctx, shards.ScanRequest{
		Columns:  append(ids, columns...),
		Ranges:   l.ranges(part, columns),
		Order:    shards.Asc,
		Limit:    -1,
		Mem:      l.mem,
		Parallel: 1,
	})
	if err != nil {
		return err
	}
	defer scan.Close()
	at := 0
	for {
		batch, err := scan.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		at, err = join(batch, len(keyColumns), part.keys, at, each)
		batch.Release()
		if err != nil {
			return err
		}
	}
}

// join walks the rows of a batch and the keys of a part, both in key order, and
// calls each for every key that is in both. It returns where to go on.
func join(batch *shards.Batch, keyColumns int, keys *key.Keys, at int, each func(columns []arrow.Array, row, at int) error) (int, error) {
	var there key.Keys
	if err := key.Encode(&there, batch.Columns[:keyColumns]); err != nil {
		return at, err
	}
	for row := range there.Len() {
		order := -1
		for at < keys.Len() {
			if order = bytes.Compare(keys.At(at), there.At(row)); order >= 0 {
				break
			}
			at++
		}
		if at == keys.Len() {
			break
		}
		if order == 0 {
			if err := each(batch.Columns[keyColumns:], row, at); err != nil {
				return at, err
			}
			at++
		}
	}
	return at, nil
}

// points is the range of each key by itself. No key begins with another one, so
// a key with a zero byte behind it bounds the range.
func points(part sorted) []run.Range {
	n := part.keys.Len()
	ranges := make([]run.Range, n)
	highs := make([]byte, 0, len(part.keys.Data)+n)
	for i := range ranges {
		low := part.keys.At(i)
		start := len(highs)
		highs = append(append(highs, low...), 0)
		ranges[i] = run.Range{Slice: part.slice, Low: low, High: highs[start:len(highs):len(highs)]}
	}
	return ranges
}

// write prepares the parts' rows as the group has them.
func (l *look) write(ctx context.Context, parts []sorted) ([]*shards.Prepared, error) {
	if len(parts) == 0 {
		return nil, nil
	}
	commit := shards.Commit{Schema: l.group.binding.schema, Batches: l.group.columns()}
	for _, part := range parts {
		keys := part.keys
		if keys == nil {
			keys = pick(&l.group.keys, part.rows)
		}
		commit.Slices = append(commit.Slices, shards.Rows{Slice: part.slice, Keys: keys, Refs: l.group.refs(part.rows)})
	}
	prepared, err := l.table.Prepare(ctx, commit)
	if err != nil {
		return nil, err
	}
	return []*shards.Prepared{prepared}, nil
}

// merge prepares rows whose unsent columns come from the rows that exist. What
// exists may be far larger than what was sent, so it is prepared in pieces,
// which are published together.
func (l *look) merge(ctx context.Context, parts []sorted) (prepared []*shards.Prepared, err error) {
	m := newMerger(l)
	defer m.release()
	for _, part := range parts {
		if err = m.part(ctx, part); err != nil {
			break
		}
	}
	if err == nil {
		err = m.cut(ctx)
	}
	if err != nil {
		discard(m.prepared)
		return nil, err
	}
	return m.prepared, nil
}
