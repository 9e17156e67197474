package flight

import (
	"context"
	"time"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/pushdown"
	"github.com/sheaf-db/sheaf/request"
	"github.com/sheaf-db/sheaf/shards"
	"github.com/sheaf-db/sheaf/shards/key"
)

func (s *Server) explain(ctx context.Context, body []byte) (*pushdown.Report, error) {
	query, err := request.ParseExplain(body)
	if err != nil {
		return nil, err
	}
	r, err := s.open(&ask{Query: query})
	if err != nil {
		return nil, err
	}
	defer r.close()
	report := r.report()
	if query.Analyze {
		report.Analysis, err = s.analyze(ctx, r)
	}
	return &report, err
}

// analyze runs the query and drops its rows.
func (s *Server) analyze(ctx context.Context, r *read) (*pushdown.Analysis, error) {
	start := time.Now()
	var counted shards.Counters
	drop := func(*shards.Batch) error { return nil }
	var err error
	switch {
	case r.plan.Empty() || r.query.Limit == 0:
	case r.keys != nil:
		counted, err = s.eachKey(ctx, r, drop)
	default:
		counted, err = s.scanAll(ctx, r, s.request(r), drop)
	}
	return &pushdown.Analysis{
		RowsScanned: counted.RowsScanned, RowsReturned: counted.RowsReturned,
		BlocksRead: counted.BlocksRead, BlocksPruned: counted.BlocksPruned, BytesRead: counted.BytesRead,
		Millis: float64(time.Since(start).Microseconds()) / 1000,
	}, err
}

// statsText is the answer of Stats.
type statsText struct {
	Table       string         `json:"table"`
	Rows        uint64         `json:"rows"`
	RowsExact   bool           `json:"rows_exact"`
	Bytes       uint64         `json:"bytes"`
	Commit      uint64         `json:"commit"`
	Slices      []sliceText    `json:"slices"`
	LargestKeys []keyText      `json:"largest_sharding_keys"`
	Snapshots   []snapshotText `json:"snapshots"`
}

type sliceText struct {
	Slice      int    `json:"slice"`
	Rows       uint64 `json:"rows"`
	Bytes      uint64 `json:"bytes"`
	Runs       int    `json:"runs"`
	DeltaRows  uint64 `json:"delta_rows"`
	DeltaBytes uint64 `json:"delta_bytes"`
}

type keyText struct {
	Key   string `json:"key"`
	Slice int    `json:"slice"`
	Rows  uint64 `json:"rows"`
	Bytes uint64 `json:"bytes"`
}

type snapshotText struct {
	ID          string  `json:"id"`
	Commit      uint64  `json:"commit"`
	Age         float64 `json:"age_s"`
	PinnedBytes uint64  `json:"pinned_bytes"`
}

// largestKeys is how many sharding keys Stats names.
const largestKeys = 10

func (s *Server) stats(ctx context.Context, body []byte) (*statsText, error) {
	name, err := request.ParseTable("Stats", body)
	if err != nil {
		return nil, err
	}
	table, err := s.table(name)
	if err != nil {
		return nil, err
	}
	snapshot, err := table.Snapshot()
	if err != nil {
		return nil, err
	}
	defer snapshot.Release()
	text := &statsText{
		Table: table.Name().String(), Bytes: snapshot.Bytes(), Commit: snapshot.Commit(),
		Slices: []sliceText{}, LargestKeys: []keyText{}, Snapshots: []snapshotText{},
	}
	text.Rows, text.RowsExact = snapshot.Rows()
	for _, stat := range snapshot.SliceStats() {
		text.Slices = append(text.Slices, sliceText(stat))
	}
	schema := snapshot.Schema()
	if !schema.HiddenID {
		largest, err := snapshot.LargestKeys(ctx, largestKeys)
		if err != nil {
			return nil, err
		}
		for _, one := range largest {
			shown := key.String(schema.KeyTypes()[:len(schema.Sharding)], one.Key)
			text.LargestKeys = append(text.LargestKeys, keyText{shown, one.Slice, one.Rows, one.Bytes})
		}
	}
	for _, pin := range table.Pins() {
		text.Snapshots = append(text.Snapshots, snapshotText{pin.ID, pin.Commit, pin.Age.Seconds(), pin.PinnedBytes})
	}
	return text, nil
}

// pinText is the answer of RenewSnapshot.
type pinText struct {
	Snapshot string `json:"snapshot"`
	Expires  string `json:"expires"`
}

func (s *Server) renewSnapshot(_ context.Context, body []byte) (*pinText, error) {
	id, err := request.ParseSnapshot("RenewSnapshot", body)
	if err != nil {
		return nil, err
	}
	pin, err := s.store.Renew(id)
	if err != nil {
		return nil, err
	}
	return &pinText{pin.ID, pin.Expires.UTC().Format(time.RFC3339)}, nil
}

func (s *Server) releaseSnapshot(_ context.Context, body []byte) (nothing, error) {
	id, err := request.ParseSnapshot("ReleaseSnapshot", body)
	if err != nil {
		return nothing{}, err
	}
	return nothing{}, s.store.Unpin(id)
}

var errNoTicket = fault.Invalid("TICKET_INVALID", "the endpoint has no ticket of this server")
