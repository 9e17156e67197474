package flight

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sheaf-db/sheaf/budget"
	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/pushdown"
	"github.com/sheaf-db/sheaf/request"
	"github.com/sheaf-db/sheaf/shards"
	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/run"
)

// read is a query planned on one snapshot. The caller calls close.
type read struct {
	query    *request.Query
	snapshot *shards.Snapshot
	table    *shards.Table
	schema   *shards.Schema
	result   *arrow.Schema // what the client gets
	ids      []uint32      // of the result's columns
	filter   pushdown.Expr
	keys     []pushdown.KeyPrefix // of a query by keys
	plan     *pushdown.Plan
	pin      *shards.Pin  // of a pinned snapshot
	memory   *budget.Read // of DoGet
}

func (r *read) close() { r.snapshot.Release() }

// open plans what is asked.
func (s *Server) open(a *ask) (*read, error) {
	r := &read{query: a.Query}
	if err := s.hold(r, a); err != nil {
		return nil, err
	}
	if err := r.resolve(a); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// hold takes the snapshot: the pinned one, whose clock starts again, or the
// newest state.
func (s *Server) hold(r *read, a *ask) error {
	name, err := shards.ParseName(a.Table)
	if err != nil {
		return err
	}
	if r.table, err = s.store.Table(name); err != nil {
		return err
	}
	if a.Snapshot == "" {
		r.snapshot, err = r.table.Snapshot()
		return err
	}
	snapshot, pin, err := s.store.Pinned(a.Snapshot)
	if err != nil {
		return err
	}
	if snapshot.Table().ID() != r.table.ID() {
		snapshot.Release()
		return fault.New(fault.NotFound, "SNAPSHOT_NOT_FOUND", "snapshot %q is not one of table %s", clip(a.Snapshot, 80), name)
	}
	r.snapshot, r.pin = snapshot, &pin
	return nil
}

func (r *read) resolve(a *ask) (err error) {
	r.schema = r.snapshot.Schema()
	if err := r.project(a.Columns); err != nil {
		return err
	}
	if a.Where != nil {
		if r.filter, err = pushdown.ParseWhere(a.Where, r.schema); err != nil {
			return err
		}
	}
	if a.Keys != nil {
		if r.keys, err = pushdown.ParseKeys(a.Keys, r.schema); err != nil {
			return err
		}
		r.plan = pushdown.BuildKeys(r.schema, r.keys, r.filter)
	} else if r.plan, err = pushdown.Build(r.schema, r.filter); err != nil {
		return err
	}
	for _, only := range [][]int{a.Slices, a.part.slices} {
		if only != nil {
			if err := r.plan.OnlySlices(only); err != nil {
				return err
			}
		}
	}
	if a.part.ranges != nil {
		if err := r.onlyRanges(a.part.ranges); err != nil {
			return err
		}
	}
	if a.After != nil {
		encoded, err := r.after(a)
		if err != nil {
			return err
		}
		r.plan.After(encoded, a.Order == request.OrderDesc)
	}
	return nil
}

// onlyRanges leaves the ranges of a ticket, which are a part of the plan's.
func (r *read) onlyRanges(ranges []run.Range) error {
	if !ordered(ranges, r.schema.Slices) {
		return errTicket
	}
	if r.plan.Empty() || len(ranges) == 0 {
		return r.plan.OnlySlices(nil)
	}
	r.plan.Ranges = ranges
	return nil
}

// after is the encoded primary key that "after" names.
func (r *read) after(a *ask) ([]byte, error) {
	if a.After.Kind() == '"' {
		return readMarker(unquoted(a.After), a.Order, r.table.ID())
	}
	return pushdown.ParseAfter(a.After, r.schema)
}

// project finds the asked columns; nil is all that are not hidden. Hidden and
// reserved ones are returned when they are named.
func (r *read) project(names []string) error {
	var fields []arrow.Field
	if names == nil {
		for _, column := range r.schema.Columns {
			if !column.Hidden {
				fields = append(fields, column.Field)
				r.ids = append(r.ids, column.ID)
			}
		}
	}
	for _, name := range names {
		if i, ok := r.schema.Column(name); ok {
			fields = append(fields, r.schema.Columns[i].Field)
			r.ids = append(r.ids, r.schema.Columns[i].ID)
			continue
		}
		switch name {
		case shards.CommitName:
			fields = append(fields, arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Uint64})
			r.ids = append(r.ids, block.ColumnCommit)
		case shards.ExpiresName:
			return fault.New(fault.Unimplemented, "NOT_IMPLEMENTED", "column %q is not implemented by this version: rows do not expire", name)
		default:
			return pushdown.ColumnNotFound(r.schema, name)
		}
	}
	metadata := r.schema.Arrow().Metadata()
	r.result = arrow.NewSchema(fields, &metadata)
	return nil
}

// whole reports that the read is of every row of the snapshot.
func (r *read) whole() bool {
	return r.plan.Residual == nil && r.plan.Ranges == nil && len(r.plan.Slices) == r.schema.Slices
}

// scan starts a scan of the plan; request says the rest.
func (r *read) scan(ctx context.Context, request shards.ScanRequest) (*shards.Scan, error) {
	request.Slices, request.Ranges, request.Filter = r.plan.Slices, r.plan.Ranges, r.plan.Filter()
	return r.snapshot.Scan(ctx, request)
}
