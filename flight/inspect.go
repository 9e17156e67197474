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
	Folds       foldsText      `json:"folds"`
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
	HeldBy      string  `json:"held_by"`
	Commit      uint64  `json:"commit"`
	Age         float64 `json:"age_s"`
	Expires     string  `json:"expires"`
	PinnedBytes uint64  `json:"pinned_bytes"`
}

// foldsText is what folds did for a table and how far they are behind.
type foldsText struct {
	Depth         int     `json:"depth"`
	DeltaBytes    uint64  `json:"delta_bytes"`
	Running       int     `json:"running"`
	Steps         uint64  `json:"steps"`
	IngestedBytes uint64  `json:"ingested_bytes"`
	FoldedBytes   uint64  `json:"folded_bytes"`
	Amplification float64 `json:"write_amplification"`
	SlowedCommits uint64  `json:"slowed_commits"`
	SlowedSeconds float64 `json:"slowed_s"`
	Delay         float64 `json:"delay_ms"`
	Why           string  `json:"why"`
}

func foldsTextOf(f shards.FoldStats) foldsText {
	return foldsText{
		Depth: f.Depth, DeltaBytes: f.DeltaBytes, Running: f.Running, Steps: f.Steps,
		IngestedBytes: f.Ingested, FoldedBytes: f.Folded, Amplification: f.Amplification(),
		SlowedCommits: f.Slowed, SlowedSeconds: f.SlowedFor.Seconds(), Delay: float64(f.Delay.Microseconds()) / 1000, Why: f.Why,
	}
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
	text.Folds = foldsTextOf(table.FoldStats())
	for _, hold := range table.Holds() {
		text.Snapshots = append(text.Snapshots, snapshotText{
			ID: hold.ID, HeldBy: hold.By, Commit: hold.Commit, Age: hold.Age.Seconds(),
			Expires: hold.Expires.UTC().Format(time.RFC3339), PinnedBytes: hold.PinnedBytes,
		})
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
