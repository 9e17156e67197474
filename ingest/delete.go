package ingest

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/pushdown"
	"github.com/sheaf-db/sheaf/shards"
	"github.com/sheaf-db/sheaf/shards/key"
)

// smallDelete is how many rows are deleted under latches. More are deleted as of
// the snapshot that was searched, without holding up writers.
const smallDelete = 10_000

// Delete deletes the rows of a plan, as of one moment, in one commit; rows
// written while it searches survive. It returns how many rows it deleted, and
// the commit, 0 if there was nothing to delete. The plan is of the table's
// newest schema; SCHEMA_CHANGED (ABORTED) if that moved on: plan again.
func Delete(ctx context.Context, table *shards.Table, plan *pushdown.Plan) (rows, commit uint64, err error) {
	if plan.Empty() {
		return 0, 0, nil
	}
	snapshot, err := table.Snapshot()
	if err != nil {
		return 0, 0, err
	}
	defer snapshot.Release()
	d := &deletion{table: table, plan: plan, asOf: snapshot.Commit()}
	defer func() { discard(d.prepared) }()
	if err := d.search(ctx, snapshot); err != nil {
		return 0, 0, err
	}
	if len(d.prepared) == 0 && d.rows <= smallDelete {
		return d.deleteSmall(ctx)
	}
	if err := d.cut(ctx); err != nil {
		return 0, 0, err
	}
	commit, err = table.Publish(ctx, d.prepared, shards.PublishOptions{})
	return d.rows, commit, err
}

// deletion collects the keys of a plan's rows, slice by slice, in key order.
type deletion struct {
	table    *shards.Table
	plan     *pushdown.Plan
	asOf     uint64
	schema   *shards.Schema
	found    []shards.Rows // of the commit that is not prepared yet
	bytes    int
	rows     uint64
	prepared []*shards.Prepared
}

// search finds the rows. Whenever the keys found fill a commit they are
// prepared, as deletes of what the snapshot sees.
func (d *deletion) search(ctx context.Context, snapshot *shards.Snapshot) error {
	d.schema = snapshot.Schema()
	for _, slice := range d.plan.Slices {
		d.found = append(d.found, shards.Rows{Slice: slice, Keys: &key.Keys{}, Tombstones: true})
		err := d.scan(ctx, snapshot, slice, func(keys *key.Keys) error {
			to := d.found[len(d.found)-1].Keys
			for i := range keys.Len() {
				to.Append(keys.At(i))
			}
			d.rows += uint64(keys.Len())
			d.bytes += len(keys.Data) + 4*keys.Len()
			if d.bytes < limits.CommitBytes {
				return nil
			}
			if err := d.cut(ctx); err != nil {
				return err
			}
			d.found = append(d.found, shards.Rows{Slice: slice, Keys: &key.Keys{}, Tombstones: true})
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// scan gives the keys of one slice's rows, in key order, some at a time.
func (d *deletion) scan(ctx context.Context, snapshot *shards.Snapshot, slice int, each func(*key.Keys) error) error {
	request := shards.ScanRequest{
		Slices: []int{slice},
		Ranges: d.plan.Ranges,
		Filter: d.plan.Filter(),
		Order:  shards.Asc,
		Limit:  -1,
		Mem:    memory.DefaultAllocator,
	}
	return scanKeys(ctx, snapshot, request, each)
}

func scanKeys(ctx context.Context, snapshot *shards.Snapshot, request shards.ScanRequest, each func(*key.Keys) error) error {
	schema := snapshot.Schema()
	for _, c := range schema.KeyColumns() {
		request.Columns = append(request.Columns, schema.Columns[c].ID)
	}
	scan, err := snapshot.Scan(ctx, request)
	if err != nil {
		return err
	}
	defer scan.Close()
	for {
		batch, err := scan.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var keys key.Keys
		err = key.Encode(&keys, batch.Columns)
		batch.Release()
		if err == nil {
			err = each(&keys)
		}
		if err != nil {
			return err
		}
	}
}

// cut prepares the keys found so far as deletes as of the snapshot.
func (d *deletion) cut(ctx context.Context) error {
	return d.prepare(ctx, d.asOf)
}

func (d *deletion) prepare(ctx context.Context, version uint64) error {
	d.found = slices.DeleteFunc(d.found, func(r shards.Rows) bool { return r.Keys.Len() == 0 })
	if len(d.found) == 0 {
		return nil
	}
	prepared, err := d.table.Prepare(ctx, shards.Commit{Schema: d.schema, Batches: [][]arrow.Array{}, Slices: d.found, Version: version})
	if err != nil {
		return err
	}
	d.prepared = append(d.prepared, prepared)
	d.found, d.bytes = nil, 0
	return nil
}

// deleteSmall takes the latches of the rows found, looks again which of them
// are still there and still match, and deletes those.
func (d *deletion) deleteSmall(ctx context.Context) (rows, commit uint64, err error) {
	if d.rows == 0 {
		return 0, 0, nil
	}
	var touched []int
	for _, r := range d.found {
		if r.Keys.Len() > 0 {
			touched = append(touched, r.Slice)
		}
	}
	unlock, err := d.table.Latch(ctx, touched, true)
	if err != nil {
		return 0, 0, err
	}
	defer unlock()
	snapshot, err := d.table.Snapshot()
	if err != nil {
		return 0, 0, err
	}
	defer snapshot.Release()
	if snapshot.Schema().Version != d.schema.Version {
		return 0, 0, fault.New(fault.Aborted, "SCHEMA_CHANGED", "the schema of table %s was altered meanwhile: nothing was deleted, try again", d.table.Name())
	}
	rows = 0
	for i, before := range d.found {
		still := &key.Keys{}
		if before.Keys.Len() > 0 {
			err = scanKeys(ctx, snapshot, shards.ScanRequest{
				Ranges: points(sorted{slice: before.Slice, keys: before.Keys}),
				Filter: d.plan.Filter(),
				Order:  shards.Asc,
				Limit:  -1,
				Mem:    memory.DefaultAllocator,
			}, func(keys *key.Keys) error {
				for k := range keys.Len() {
					still.Append(keys.At(k))
				}
				return nil
			})
			if err != nil {
				return 0, 0, err
			}
		}
		d.found[i].Keys = still
		rows += uint64(still.Len())
	}
	if err := d.prepare(ctx, 0); err != nil || len(d.prepared) == 0 {
		return 0, 0, err
	}
	commit, err = d.table.Publish(ctx, d.prepared, shards.PublishOptions{})
	return rows, commit, err
}
