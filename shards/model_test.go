package shards

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/shards/key"
)

// TestModel drives a table and a plain map with the same random operations and
// compares every scan. SHEAF_SOAK sets the number of operations, SHEAF_SEED the
// first seed.
func TestModel(t *testing.T) {
	operations, seed := 3000, uint64(1)
	if testing.Short() {
		operations = 800
	}
	if n, err := strconv.Atoi(os.Getenv("SHEAF_SOAK")); err == nil {
		operations = n
	}
	if n, err := strconv.ParseUint(os.Getenv("SHEAF_SEED"), 10, 64); err == nil {
		seed = n
	}
	for _, shape := range modelShapes {
		t.Run(shape.name, func(t *testing.T) {
			m := newModel(t, seed, shape)
			if shape.beside {
				m.foldBeside()
			}
			defer m.end()
			for i := range operations / shape.share {
				m.step(i)
				if t.Failed() {
					t.Fatalf("operation %d of seed %d went wrong; the last ones were:\n%s", i, seed, m.history())
				}
			}
		})
	}
}

// model is the table, the map, and the snapshots held across operations.
type model struct {
	*bed
	modelShape
	tt        *testing.T
	rng       *rand.Rand
	table     *Table
	content   modelContent
	held      []heldModel
	late      []lateCommit
	log       []string
	endBeside func() // nil: nothing folds beside the operations
}

// modelContent is a table's content as a map from encoded key to row.
type modelContent struct {
	commit uint64
	rows   map[string]modelRow
}

type modelRow struct {
	version uint64
	cells   map[uint32]any // by column id; missing is null
}

func (c modelContent) clone() modelContent {
	return modelContent{c.commit, maps.Clone(c.rows)}
}

type heldModel struct {
	snapshot *Snapshot
	content  modelContent
}

// lateCommit is prepared and not yet published.
type lateCommit struct {
	prepared *Prepared
	rows     map[string]map[uint32]any // nil: deletes
	keys     []string
}

func newModel(t *testing.T, seed uint64, shape modelShape) *model {
	m := &model{
		bed: newBed(t), modelShape: shape, tt: t, rng: rand.New(rand.NewPCG(seed, 7)),
		content: modelContent{rows: map[string]modelRow{}},
	}
	if shape.steps > 0 {
		m.smallSteps(shape.steps)
		m.policy.deltaBytes, m.policy.deltaEntries, m.policy.floor = shape.steps/2, 200, shape.steps/8
		m.policy.smallRun, m.policy.smallRuns = shape.steps/4, 6
	}
	m.table = m.create("t", "k:string s:int64 v:int64 w:string", "k", "s", shape.slices)
	return m
}

func (m *model) end() {
	if m.endBeside != nil {
		m.endBeside()
	}
	for _, h := range m.held {
		h.snapshot.Release()
	}
	for _, l := range m.late {
		l.prepared.Discard()
	}
	m.s.janitor.wait()
}

func (m *model) note(format string, args ...any) {
	m.log = append(m.log, fmt.Sprintf(format, args...))
}

func (m *model) history() string {
	return fmt.Sprint(m.log[max(0, len(m.log)-25):])
}

func (m *model) step(i int) {
	switch n := m.rng.IntN(1000); {
	case n < 330:
		m.write(false)
	case n < 420:
		m.asRun(func() { m.write(false) })
	case n < 500:
		m.write(true)
	case n < 530:
		m.asRun(func() { m.write(true) })
	case n < 560:
		m.deleteAsOf()
	case n < 565:
		m.replace()
	case n < 575:
		m.foldWhole()
	case n < 610:
		m.foldSome()
	case n < 640:
		m.foldPlanned()
	case n < 645:
		m.restart()
	case n < 650:
		m.alter(i)
	case n < 680:
		m.prepareLate()
	case n < 710:
		m.publishLate()
	case n < 740:
		m.hold()
	case n < 790:
		m.checkHeld()
	default:
		m.check(m.now())
	}
}

// randomRows draws rows of the current schema; of one key the last wins.
func (m *model) randomRows() []values {
	n := 1 + m.rng.IntN(m.batch)
	if m.rng.IntN(3) > 0 {
		n = 1 + m.rng.IntN(8)
	}
	schema := m.table.Schema()
	start := m.rng.IntN(m.sorts)
	shard := m.rng.IntN(m.shards)
	dense := m.rng.IntN(2) == 0
	var rows []values
	for i := range n {
		s := m.rng.IntN(m.sorts)
		if dense {
			s = (start + i) % m.sorts
		} else {
			shard = m.rng.IntN(m.shards)
		}
		row := values{m.shardName(shard), int64(s)}
		for _, c := range schema.Columns[2:] {
			row = append(row, m.randomValue(c))
		}
		rows = append(rows, row)
	}
	return rows
}

func (m *model) randomValue(c Column) any {
	if m.rng.IntN(6) == 0 {
		return nil
	}
	switch c.Canonical.ID() {
	case arrow.STRING:
		return m.randomText()
	case arrow.FLOAT64:
		return m.randomFloat()
	}
	return int64(m.rng.IntN(2000) - 1000)
}

// keyOf is the encoded key of a row.
func (m *model) keyOf(row values) string {
	k := key.Keys{}
	columns := []arrow.Array{
		buildColumn(m.tt, m.mem, arrow.BinaryTypes.String, []values{row}, 0),
		buildColumn(m.tt, m.mem, arrow.PrimitiveTypes.Int64, []values{row}, 1),
	}
	defer releaseAll(columns)
	if err := key.Encode(&k, columns); err != nil {
		m.tt.Fatal(err)
	}
	return string(k.At(0))
}

func (m *model) cells(row values) map[uint32]any {
	cells := map[uint32]any{}
	for i, c := range m.table.Schema().Columns {
		if row[i] != nil {
			cells[c.ID] = row[i]
		}
	}
	return cells
}

func (m *model) write(deletes bool) {
	rows := m.randomRows()
	m.note("write %d rows, deletes %t, run %t", len(rows), deletes, m.s.deltaCommitBytes == 0)
	commit := m.publish(m.table, PublishOptions{}, m.prepared(rows, deletes))
	m.content.commit++
	if commit != m.content.commit {
		m.tt.Fatalf("commit %d, want %d", commit, m.content.commit)
	}
	m.applyRows(&m.content, rows, deletes)
}

func (m *model) applyRows(c *modelContent, rows []values, deletes bool) {
	for _, row := range rows {
		k := m.keyOf(row)
		if deletes {
			delete(c.rows, k)
		} else {
			c.rows[k] = modelRow{c.commit, m.cells(row)}
		}
	}
}

// deleteAsOf deletes by keys as of the commit of a held snapshot: rows written
// since survive.
func (m *model) deleteAsOf() {
	if len(m.held) == 0 {
		return
	}
	h := m.held[m.rng.IntN(len(m.held))]
	if h.content.commit == 0 || h.snapshot.Schema().Version != m.table.Schema().Version {
		return
	}
	rows := m.randomRows()
	m.note("delete %d rows as of %d", len(rows), h.content.commit)
	c, release := m.commitOf(m.table, rows, true)
	c.Version = h.content.commit
	p, err := m.table.Prepare(context.Background(), c)
	release()
	if err != nil {
		m.tt.Fatal(err)
	}
	m.publish(m.table, PublishOptions{}, p)
	m.content.commit++
	for _, row := range rows {
		k := m.keyOf(row)
		if r, ok := m.content.rows[k]; ok && r.version <= h.content.commit {
			delete(m.content.rows, k)
		}
	}
}

func (m *model) replace() {
	m.note("replace")
	rows, more := m.randomRows(), m.randomRows()
	var first *Prepared
	m.asRun(func() { first = m.prepared(rows, false) })
	m.publish(m.table, PublishOptions{Replace: true}, first, m.prepared(more, false))
	m.content.rows = map[string]modelRow{}
	m.content.commit++
	m.applyRows(&m.content, rows, false)
	m.content.commit++
	m.applyRows(&m.content, more, false)
}

func (m *model) foldWhole() {
	m.note("fold")
	if err := m.table.Fold(context.Background()); err != nil {
		m.tt.Fatal(err)
	}
	s := m.snapshot(m.table)
	defer s.Release()
	if n, exact := s.Rows(); m.endBeside == nil && !exact || exact && n != uint64(len(m.content.rows)) {
		m.tt.Errorf("after a fold there are %d rows (exact %t), want %d; listed are\n%s", n, exact, len(m.content.rows), listed(s))
	}
}

// foldSome folds a random part of a slice: any runs, with or without the delta.
func (m *model) foldSome() {
	pick := m.randomPick(m.rng)
	m.note("fold %d runs of slice %d, delta %t", len(pick.runs), pick.slice, pick.delta)
	m.foldPicked(pick)
}

func (m *model) randomPick(rng *rand.Rand) foldPick {
	pick := foldPick{slice: rng.IntN(m.slices), delta: rng.IntN(2) == 0}
	s, err := m.table.Snapshot()
	if err != nil {
		m.tt.Error(err)
		return pick
	}
	defer s.Release()
	for _, r := range s.version.runs.of(pick.slice, m.slices) {
		if rng.IntN(2) == 0 {
			pick.runs = append(pick.runs, r)
		}
	}
	return pick
}

func (m *model) foldPicked(pick foldPick) {
	unlock := m.table.folds.tryLatch(pick.slice)
	if unlock == nil {
		return
	}
	defer unlock()
	// Where folds take steps, most end after the first: the rest is left to
	// whatever is picked next, or to a fold of everything.
	fold := m.table.foldSlice
	if m.policy != nil {
		fold = func(ctx context.Context, pick foldPick) error {
			_, err := m.table.foldStep(ctx, pick)
			return err
		}
	}
	err := fold(context.Background(), pick)
	if err != nil && (m.endBeside == nil || !errors.Is(err, errFoldStale)) {
		m.tt.Error(err)
	}
}

// foldBeside starts a goroutine that folds at random until endBeside.
func (m *model) foldBeside() {
	stop, done := make(chan struct{}), make(chan struct{})
	rng := rand.New(rand.NewPCG(m.rng.Uint64(), 3))
	m.endBeside = func() { close(stop); <-done }
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				m.foldPicked(m.randomPick(rng))
			}
		}
	}()
}

func (m *model) restart() {
	m.note("restart")
	for _, h := range m.held {
		h.snapshot.Release()
	}
	for _, l := range m.late {
		l.prepared.Discard()
	}
	m.held, m.late = nil, nil
	beside := m.endBeside
	if beside != nil {
		beside()
	}
	m.reopen()
	m.table = m.bed.table("t")
	if beside != nil {
		m.foldBeside()
	}
	if err := m.s.Doctor(context.Background(), func(f Finding) { m.tt.Errorf("doctor: %+v", f) }); err != nil {
		m.tt.Fatal(err)
	}
}

func (m *model) alter(i int) {
	schema := m.table.Schema()
	var c Change
	switch n := len(schema.Columns); {
	case n < 5 || n < 8 && m.rng.IntN(2) == 0:
		dt := []arrow.DataType{
			arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String, arrow.PrimitiveTypes.Float64,
		}[m.rng.IntN(4)]
		c.AddColumns = arrow.NewSchema([]arrow.Field{{Name: fmt.Sprintf("c%d", i), Type: dt, Nullable: true}}, nil)
	case m.rng.IntN(2) == 0:
		// Widen an int32 column, if there is one; v and w stay.
		at := slices.IndexFunc(schema.Columns, func(c Column) bool { return c.Canonical.ID() == arrow.INT32 })
		if at < 0 {
			return
		}
		c.Widen = arrow.NewSchema([]arrow.Field{{Name: schema.Columns[at].Field.Name, Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	default:
		c.Drop = []string{schema.Columns[4+m.rng.IntN(n-4)].Field.Name}
	}
	m.note("alter %v", c)
	if _, err := m.table.Alter(context.Background(), c); err != nil {
		m.tt.Fatal(err)
	}
}

func (m *model) prepareLate() {
	if len(m.late) >= 3 {
		return
	}
	rows := m.randomRows()
	deletes := m.rng.IntN(3) == 0
	if m.rng.IntN(2) == 0 {
		m.s.deltaCommitBytes = 0
	}
	l := lateCommit{prepared: m.prepared(rows, deletes)}
	m.s.deltaCommitBytes = 1 << 20
	if !deletes {
		l.rows = map[string]map[uint32]any{}
	}
	for _, row := range rows {
		k := m.keyOf(row)
		l.keys = append(l.keys, k)
		if !deletes {
			l.rows[k] = m.cells(row)
		}
	}
	m.late = append(m.late, l)
	m.note("prepare %d rows for later", len(rows))
}

// publishLate publishes all that was prepared as one commit.
func (m *model) publishLate() {
	if len(m.late) == 0 {
		return
	}
	var prepared []*Prepared
	for _, l := range m.late {
		prepared = append(prepared, l.prepared)
	}
	m.note("publish %d late commits", len(prepared))
	_, err := m.table.Publish(context.Background(), prepared, PublishOptions{})
	if fault.Is(err, "SCHEMA_CHANGED") {
		for _, p := range prepared {
			p.Discard()
		}
		m.late = nil
		return
	}
	if err != nil {
		m.tt.Fatal(err)
	}
	for _, l := range m.late {
		m.content.commit++
		for _, k := range l.keys {
			if l.rows == nil {
				delete(m.content.rows, k)
			} else {
				m.content.rows[k] = modelRow{m.content.commit, l.rows[k]}
			}
		}
	}
	m.late = nil
}
