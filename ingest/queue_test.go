package ingest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/shards"
)

// meeting is a table whose slices are held, so that the commit of a first stream
// is on its way and those of others wait for it.
type meeting struct {
	*bed
	table   *shards.Table
	streams *Streams
	queue   *queue
	free    func() // lets commits go on
	all     sync.WaitGroup
}

// meet begins with a first stream, whose commit brings the key "first".
func meet(t *testing.T, columns string) *meeting {
	b := newBed(t)
	m := &meeting{bed: b, table: b.create(columns), streams: &Streams{}}
	m.hold()
	m.queue = m.streams.join(m.table.ID())
	t.Cleanup(func() { m.streams.quit(m.table.ID()) })
	return m
}

func (m *meeting) hold() {
	var slices []int
	for slice := range m.table.Schema().Slices {
		slices = append(slices, slice)
	}
	free, err := m.table.Latch(context.Background(), slices, true)
	require.NoError(m.t, err)
	m.free = free
}

// guest is a stream of one batch that runs by itself.
type guest struct {
	*stream
	cancel context.CancelFunc
	err    error
	done   chan struct{}
}

// come starts a stream and returns when its commit waits, or is on its way if it is
// the first.
func (m *meeting) come(options Options, columns string, rows ...string) *guest {
	m.t.Helper()
	options.Streams = m.streams
	g := &guest{stream: m.mustOpen(schemaOf(columns), options), done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	g.cancel = cancel
	m.t.Cleanup(cancel)
	batch, _, err := array.RecordFromJSON(m.mem, g.schema, strings.NewReader("["+strings.Join(rows, ",")+"]"))
	require.NoError(m.t, err)
	led, waiting := m.waiting()
	m.all.Go(func() {
		defer close(g.done)
		defer batch.Release()
		if g.err = g.Write(ctx, []arrow.RecordBatch{batch}); g.err == nil {
			g.err = g.Finish(ctx)
		}
		g.Abort()
	})
	require.Eventually(m.t, func() bool {
		now, n := m.waiting()
		return now && (!led && n == 0 || led && n == waiting+1)
	}, 10*time.Second, time.Millisecond)
	return g
}

func (m *meeting) waiting() (led bool, n int) {
	m.queue.mu.Lock()
	defer m.queue.mu.Unlock()
	return m.queue.preparing || m.queue.syncing > 0, len(m.queue.waiting)
}

// end lets everybody finish.
func (m *meeting) end() {
	m.free()
	m.all.Wait()
	// Who leads leaves a moment after the others have their answers.
	require.Eventually(m.t, func() bool {
		led, n := m.waiting()
		return !led && n == 0
	}, 10*time.Second, time.Millisecond)
}

// What waits becomes one commit; of equal keys the row that came last stays.
func TestSmallCommitsCombine(t *testing.T) {
	m := meet(t, ksv)
	first := m.come(Options{}, ksv, row("a", 1, 0))
	var guests []*guest
	for i := range 8 {
		// Columns in any order, some left out, resumable or not.
		options, columns, text := Options{}, ksv, row("same", 1, i)+","+row(fmt.Sprint("k", i), 1, i)
		if i%2 == 0 {
			options.Resume = fmt.Sprint("id", i)
		}
		if i == 3 {
			columns, text = "s:int64 k:string", `{"s":1,"k":"k3"}`
		}
		guests = append(guests, m.come(options, columns, text))
	}
	m.end()
	require.NoError(t, first.err)
	for i, g := range guests {
		require.NoError(t, g.err)
		require.Equal(t, first.Progress().Commit+1, g.Progress().Commit, "stream %d", i)
		require.Equal(t, uint64(1), g.Progress().Batches)
		if i%2 == 0 {
			position, commit, err := m.table.ResumePosition(fmt.Sprint("id", i))
			require.NoError(t, err)
			require.Equal(t, shards.Progress{Batches: 1, Rows: 2}, position)
			require.Equal(t, g.Progress().Commit, commit)
		}
	}
	m.wantSorted("a 1 0", "k0 1 0", "k1 1 1", "k2 1 2", "k3 1 null", "k4 1 4", "k5 1 5", "k6 1 6", "k7 1 7", "same 1 7")
}

// Deletes and upserts are commits of their own kind; each is combined.
func TestDeletesCombineWithDeletes(t *testing.T) {
	m := meet(t, ksv)
	first := m.come(Options{}, ksv, row("a", 1, 0), row("b", 1, 0), row("c", 1, 0))
	commits := map[Mode]map[uint64]bool{ModeUpsert: {}, ModeDelete: {}}
	guests := map[*guest]Mode{}
	for _, k := range []string{"a", "b"} {
		guests[m.come(Options{Mode: ModeDelete}, ksv, row(k, 1, 0))] = ModeDelete
		guests[m.come(Options{}, ksv, row("new "+k, 1, 0))] = ModeUpsert
	}
	m.end()
	require.NoError(t, first.err)
	for g, mode := range guests {
		require.NoError(t, g.err)
		commits[mode][g.Progress().Commit] = true
	}
	require.Len(t, commits[ModeUpsert], 1)
	require.Len(t, commits[ModeDelete], 1)
	m.wantSorted("c 1 0", "new a 1 0", "new b 1 0")
}

// A commit that several make stays in the delta, however many wait.
func TestCombinedCommitsAreBounded(t *testing.T) {
	m := meet(t, "k:string v:string")
	m.come(Options{}, "k:string v:string", `{"k":"a","v":"1"}`)
	big := strings.Repeat("x", combinedBytes/4)
	var guests []*guest
	for i := range 8 {
		guests = append(guests, m.come(Options{}, "k:string v:string", fmt.Sprintf(`{"k":"k%d","v":%q}`, i, big)))
	}
	m.end()
	commits := map[uint64]int{}
	for _, g := range guests {
		require.NoError(t, g.err)
		commits[g.Progress().Commit]++
	}
	require.Len(t, commits, 3)
	for _, n := range commits {
		require.LessOrEqual(t, n, 3)
	}
	require.Len(t, m.rows(), 9)
	snapshot, err := m.table.Snapshot()
	require.NoError(t, err)
	defer snapshot.Release()
	for _, slice := range snapshot.SliceStats() {
		require.Zero(t, slice.Runs)
	}
}

// Who leaves while he waits writes nothing; who leaves once his rows are taken
// hears what became of them. Nobody else notices.
func TestWritersCancelled(t *testing.T) {
	m := meet(t, ksv)
	first := m.come(Options{}, ksv, row("a", 1, 0))
	left, stays := m.come(Options{}, ksv, row("left", 1, 0)), m.come(Options{}, ksv, row("stays", 1, 0))
	left.cancel()
	<-left.done
	require.ErrorIs(t, left.err, context.Canceled)
	require.Zero(t, left.Progress().Batches)

	// The next to hold the slices comes before the two that wait: first come, first
	// served.
	free := m.free
	next := make(chan struct{})
	go func() { defer close(next); m.hold() }()
	time.Sleep(20 * time.Millisecond)
	taken := m.come(Options{}, ksv, row("taken", 1, 0))
	free()
	<-first.done
	<-next
	require.NoError(t, first.err)
	require.Eventually(t, func() bool { _, n := m.waiting(); return n == 0 }, 10*time.Second, time.Millisecond)
	stays.cancel()
	m.end()
	require.NoError(t, taken.err)
	if stays.err == nil {
		require.Equal(t, uint64(1), stays.Progress().Batches)
	} else { // written, but the stream's end was not waited for
		require.ErrorIs(t, stays.err, context.Canceled)
	}
	m.wantSorted("a 1 0", "stays 1 0", "taken 1 0")

	// Alone, he who waits for a slice may leave too.
	m.hold()
	alone := m.come(Options{}, ksv, row("alone", 1, 0))
	alone.cancel()
	m.all.Wait()
	require.ErrorIs(t, alone.err, context.Canceled)
	m.free()
	require.Len(t, m.rows(), 3)
}

// A stream whose resume id is taken while its commit waits writes nothing.
func TestResumeTakenWhileWaiting(t *testing.T) {
	m := meet(t, ksv)
	m.come(Options{}, ksv, row("a", 1, 0))
	old := m.come(Options{Resume: "r"}, ksv, row("old", 1, 0))
	other := m.come(Options{Resume: "s"}, ksv, row("other", 1, 0))
	fresh := m.come(Options{Resume: "r"}, ksv, row("fresh", 1, 0))
	m.end()
	require.True(t, fault.Is(old.err, "RESUME_TAKEN"), "%v", old.err)
	require.NoError(t, other.err)
	require.NoError(t, fresh.err)
	require.Equal(t, uint64(1), fresh.Progress().Batches)
	m.wantSorted("a 1 0", "fresh 1 0", "other 1 0")
}

// Commits that cannot be written together are written alone: nobody hears of
// another one's mistake.
func TestBrokenCommitBreaksNoOther(t *testing.T) {
	m := meet(t, ksv)
	m.come(Options{}, ksv, row("a", 1, 0))
	good := m.come(Options{}, ksv, row("good", 1, 0))
	broken := m.come(Options{}, ksv, row("broken", 1, 0))
	m.come(Options{}, ksv, row("good too", 1, 0))
	m.queue.mu.Lock()
	batch := &m.queue.waiting[1].group.batches[0]
	batch.columns[0], batch.columns[1] = batch.columns[1], batch.columns[0] // as no binding makes it
	m.queue.mu.Unlock()
	m.end()
	require.NoError(t, good.err)
	require.ErrorContains(t, broken.err, "panic")
	require.Zero(t, broken.Progress().Batches)
	m.wantSorted("a 1 0", "good 1 0", "good too 1 0")
}

// The schema changes while commits wait: each is bound anew, or refused.
func TestSchemaChangesWhileCommitsWait(t *testing.T) {
	m := meet(t, ksv+" w:int32")
	const less = "k:string s:int64"
	first := m.come(Options{}, ksv, row("a", 1, 0))
	fits := m.come(Options{}, less+" w:int32", `{"k":"fits","s":1,"w":7}`)
	misfit := m.come(Options{}, ksv, row("misfit", 1, 0))
	merge := m.come(Options{Mode: ModeMerge}, ksv+" w:int32", `{"k":"merge","s":1,"v":1,"w":2}`)
	gone := m.come(Options{Mode: ModeDelete}, less, `{"k":"fits","s":1}`)
	_, err := m.table.Alter(context.Background(), shards.Change{Drop: []string{"v"}})
	require.NoError(t, err)
	_, err = m.table.Alter(context.Background(), shards.Change{AddColumns: schemaOf("n:string")})
	require.NoError(t, err)
	m.end()
	for _, g := range []*guest{first, misfit, merge} {
		require.True(t, fault.Is(g.err, "COLUMN_NOT_FOUND"), "%v", g.err)
	}
	require.NoError(t, fits.err)
	require.NoError(t, gone.err)
	got := m.rows()
	if len(got) > 0 { // the order of the two is free
		require.Equal(t, []string{"fits 1 7 null"}, got)
	}
}

// A merge that brought every column looks first once there is another.
func TestMergeThatWaitsLooksOnceAColumnCame(t *testing.T) {
	m := meet(t, ksv)
	m.come(Options{}, ksv, row("a", 1, 0))
	merge := m.come(Options{Mode: ModeMerge}, ksv, row("a", 1, 5))
	_, err := m.table.Alter(context.Background(), shards.Change{AddColumns: schemaOf("n:string")})
	require.NoError(t, err)
	m.end()
	require.NoError(t, merge.err)
	m.all.Wait()
	require.Len(t, m.rows(), 1)
}

// The table goes while commits wait.
func TestTableDroppedWhileCommitsWait(t *testing.T) {
	m := meet(t, ksv)
	var guests []*guest
	for i := range 4 {
		guests = append(guests, m.come(Options{}, ksv, row("a", i, 0)))
	}
	require.NoError(t, m.store.DropTable(context.Background(), m.name("t")))
	m.create(ksv)
	m.end()
	for _, g := range guests {
		require.True(t, fault.Is(g.err, "TABLE_NOT_FOUND"), "%v", g.err)
	}
	m.wantRows()
}

// The content is replaced while commits wait: they come behind it.
func TestTableReplacedWhileCommitsWait(t *testing.T) {
	m := meet(t, ksv)
	first := m.come(Options{}, ksv, row("old", 1, 0))
	second := m.come(Options{}, ksv, row("b", 1, 1))
	m.free()
	m.all.Wait()
	require.NoError(t, first.err)
	m.hold()
	third := m.come(Options{}, ksv, row("b", 1, 2))
	fourth := m.come(Options{}, ksv, row("d", 1, 2))
	p, err := m.table.Prepare(t.Context(), shards.Commit{Schema: m.table.Schema()})
	require.NoError(t, err)
	_, err = m.table.Publish(t.Context(), []*shards.Prepared{p}, shards.PublishOptions{Replace: true})
	require.NoError(t, err)
	m.wantRows()
	m.end()
	for _, g := range []*guest{second, third, fourth} {
		require.NoError(t, g.err)
	}
	m.wantSorted("b 1 2", "d 1 2")
}

// Rows without a key each get an id of their own, also in one commit.
func TestRowsWithoutKeyCombine(t *testing.T) {
	m := &meeting{bed: newBed(t), streams: &Streams{}}
	table, err := Create(t.Context(), m.store, m.name("t"), schemaOf("v:int64"), Keys{Sharding: []string{}})
	require.NoError(t, err)
	m.table = table
	m.hold()
	m.queue = m.streams.join(table.ID())
	defer m.streams.quit(table.ID())
	for i := range 5 {
		m.come(Options{Mode: []Mode{ModeUpsert, ModeInsert}[i%2]}, "v:int64", fmt.Sprintf(`{"v":%d}`, i), `{"v":9}`)
	}
	m.end()
	m.wantSorted("0", "1", "2", "3", "4", "9", "9", "9", "9", "9")
}

// The queue of a table goes with its last stream.
func TestQueuesAreForgotten(t *testing.T) {
	b := newBed(t)
	b.create(ksv)
	streams := &Streams{}
	for range 3 {
		s := b.mustOpen(schemaOf(ksv), Options{Streams: streams, Resume: "r"})
		require.NoError(t, s.write(row("a", 1, 0)))
		require.NoError(t, s.finish())
		s.Abort()
	}
	require.Empty(t, streams.queues)
	require.Empty(t, streams.open)
}
