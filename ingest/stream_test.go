package ingest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/shards"
)

func TestProgressCountsEveryBatch(t *testing.T) {
	b := newBed(t)
	b.create(ksv)
	var told []Progress
	var mu sync.Mutex
	s := b.mustOpen(schemaOf(ksv), Options{Committed: func(p Progress) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, p)
	}})
	require.Equal(t, Progress{}, s.Progress())
	require.NoError(t, s.write(row("a", 1, 1)+","+row("b", 1, 1)+","+row("b", 1, 1), ``, row("c", 1, 1)+","+row("d", 1, 1)))
	require.NoError(t, s.finish())
	p := s.Progress()
	require.Equal(t, uint64(3), p.Batches)
	require.Equal(t, uint64(5), p.Rows)
	require.NotZero(t, p.Commit)
	require.Equal(t, p, told[len(told)-1])
	for i := range told[1:] {
		require.LessOrEqual(t, told[i].Batches, told[i+1].Batches)
	}
}

func TestStreamWithoutBatchMakesTheTable(t *testing.T) {
	b := newBed(t)
	s := b.mustOpen(schemaOf(ksv, "sheaf.sharding_key", "k"), Options{})
	require.NoError(t, s.finish())
	require.Equal(t, Progress{}, s.Progress())
	b.wantRows()
}

// A batch that is refused stops the stream; all batches before it are durable.
func TestFailureInTheLastBatch(t *testing.T) {
	for _, together := range []bool{true, false} {
		b := newBed(t)
		b.create("k:string! v:int64!")
		var batches []string
		for i := range 49 {
			batches = append(batches, fmt.Sprintf(`{"k":"k%03d","v":1},{"k":"l%03d","v":2}`, i, i))
		}
		bad := `{"k":"x","v":1},{"k":"y","v":1},{"k":"z","v":2},{"k":"q","v":null}`
		s := b.mustOpen(schemaOf("k:string v:int64"), Options{})
		var err error
		if together {
			err = s.write(append(batches, bad)...)
		} else {
			for _, text := range append(batches, bad) {
				if err = s.write(text); err != nil {
					break
				}
			}
		}
		require.True(t, fault.Is(err, "NULL_VALUE"), "%v", err)
		require.ErrorContains(t, err, `batch 49, row 3, column "v"`)
		require.Equal(t, err, s.finish())
		require.Equal(t, uint64(49), s.Progress().Batches)
		require.Equal(t, uint64(98), s.Progress().Rows)
		require.Contains(t, s.Progress().String(), "(durable: 49 batches, 98 rows, commit ")
		require.Len(t, b.rows(), 98)
	}
}

func TestResume(t *testing.T) {
	b := newBed(t)
	b.create(ksv)
	options := Options{Resume: "import-7", Streams: &Streams{}}
	s := b.mustOpen(schemaOf(ksv), options)
	require.NoError(t, s.write(row("a", 1, 1), row("b", 1, 1)+","+row("c", 1, 1)))
	require.NoError(t, s.Settle())
	s.Abort()

	s = b.mustOpen(schemaOf(ksv), options)
	at := s.Progress()
	require.Equal(t, uint64(2), at.Batches)
	require.Equal(t, uint64(3), at.Rows)
	require.NotZero(t, at.Commit)
	err := s.write(row("d", 1, 1), `{"k":null,"s":1,"v":1}`)
	require.ErrorContains(t, err, "batch 3, row 0")
	s.Abort()

	s = b.mustOpen(schemaOf(ksv), options)
	require.Equal(t, uint64(3), s.Progress().Batches)
	require.NoError(t, s.write(``)) // batches without rows count too
	require.NoError(t, s.finish())
	s = b.mustOpen(schemaOf(ksv), options)
	require.Equal(t, uint64(4), s.Progress().Batches)
	require.Equal(t, uint64(4), s.Progress().Rows)
	s.Abort()

	other := b.mustOpen(schemaOf(ksv), Options{Resume: "another"})
	require.Equal(t, Progress{}, other.Progress())
	other.Abort()
}

// Of two streams with one resume id only the newer one writes.
func TestResumeTakenOver(t *testing.T) {
	b := newBed(t)
	b.create(ksv)
	options := Options{Resume: "r", Streams: &Streams{}}
	old := b.mustOpen(schemaOf(ksv), options)
	require.NoError(t, old.write(row("a", 1, 1)))
	require.NoError(t, old.Settle())
	fresh := b.mustOpen(schemaOf(ksv), options)
	require.Equal(t, uint64(1), fresh.Progress().Batches)
	err := old.write(row("b", 1, 1))
	if err == nil {
		err = old.Settle()
	}
	require.True(t, fault.Is(err, "RESUME_TAKEN"), "%v", err)
	old.Abort()
	require.NoError(t, fresh.write(row("c", 1, 1)))
	require.NoError(t, fresh.finish())
	b.wantSorted("a 1 1", "c 1 1")
}

func TestAtomicStreams(t *testing.T) {
	for _, mode := range []Mode{ModeUpsert, ModeInsert, ModeInsertIgnore, ModeMerge, ModeUpdate, ModeDelete, ModeReplaceTable} {
		t.Run(mode.String(), func(t *testing.T) {
			b := newBed(t)
			b.create(ksv)
			b.mustPut(ModeUpsert, ksv, row("a", 1, 1)+","+row("b", 1, 1))
			key := "a"
			if mode == ModeInsert {
				key = "n"
			}
			s := b.mustOpen(schemaOf(ksv), Options{Mode: mode, Atomic: true})
			require.NoError(t, s.write(row(key, 1, 2)))
			require.NoError(t, s.write(row("b", 1, 3)))
			require.NoError(t, s.Settle())
			require.Equal(t, Progress{}, s.Progress())
			b.wantRows("a 1 1", "b 1 1") // nothing is visible yet
			if mode == ModeInsert {
				err := s.finish()
				require.True(t, fault.Is(err, "KEY_EXISTS"), "%v", err)
				require.ErrorContains(t, err, "batch 1, row 0")
				b.wantRows("a 1 1", "b 1 1")
				return
			}
			require.NoError(t, s.finish())
			require.Equal(t, uint64(2), s.Progress().Batches)
			switch mode {
			case ModeInsertIgnore:
				b.wantRows("a 1 1", "b 1 1")
			case ModeDelete:
				b.wantRows()
			default:
				b.wantRows("a 1 2", "b 1 3")
			}
		})
	}
}

func TestAtomicStreamBrokenOffWritesNothing(t *testing.T) {
	for _, mode := range []Mode{ModeUpsert, ModeMerge, ModeReplaceTable} {
		b := newBed(t)
		b.create(ksv)
		b.mustPut(ModeUpsert, ksv, row("a", 1, 1))
		s := b.mustOpen(schemaOf(ksv), Options{Mode: mode, Atomic: true})
		require.NoError(t, s.write(row("b", 1, 2)))
		require.ErrorContains(t, s.write(`{"k":null,"s":1,"v":1}`), "batch 1, row 0")
		s.Abort()
		require.Equal(t, Progress{}, s.Progress())
		b.wantRows("a 1 1")
	}
}

// Streams larger than a commit: the same key in different commits of one atomic
// stream keeps the later row.
func TestLargeStreams(t *testing.T) {
	const rows = 1000
	big := strings.Repeat("x", 40_000)
	for _, options := range []Options{{}, {Atomic: true}, {Mode: ModeReplaceTable}, {Mode: ModeInsertIgnore}, {Mode: ModeMerge}} {
		t.Run(fmt.Sprintf("%s atomic=%v", options.Mode, options.Atomic), func(t *testing.T) {
			b := newBed(t)
			b.create("k:string v:string")
			b.mustPut(ModeUpsert, "k:string v:string", `{"k":"old","v":"1"}`)
			commits := map[uint64]bool{}
			options.Committed = func(p Progress) { commits[p.Commit] = true }
			s := b.mustOpen(schemaOf("k:string v:string"), options)
			for from := 0; from < rows; from += 100 {
				var texts []string
				for i := from; i < from+100; i++ {
					texts = append(texts, fmt.Sprintf(`{"k":"k%d","v":"%d %s"}`, i%(rows-10), i, big))
				}
				require.NoError(t, s.write(strings.Join(texts, ",")))
			}
			require.NoError(t, s.finish())
			require.Equal(t, uint64(rows), s.Progress().Rows)
			got := b.rows()
			want := rows - 10
			if options.Mode != ModeReplaceTable {
				want++
			}
			require.Len(t, got, want)
			newest := 0
			for _, text := range got {
				if strings.HasPrefix(text, fmt.Sprintf("k1 %d ", rows-9)) {
					newest++
				}
			}
			if options.Mode == ModeInsertIgnore {
				require.Zero(t, newest)
			} else {
				require.Equal(t, 1, newest)
			}
			if options.Atomic || options.Mode == ModeReplaceTable {
				require.Len(t, commits, 1)
			} else {
				require.Greater(t, len(commits), 1)
			}
		})
	}
}

func TestAddColumns(t *testing.T) {
	b := newBed(t)
	b.create(ksv)
	b.mustPut(ModeUpsert, ksv, row("a", 1, 1))
	_, err := b.put(ModeUpsert, ksv+" w:int64", row("b", 1, 1))
	require.True(t, fault.Is(err, "COLUMN_NOT_FOUND"), "%v", err)
	require.ErrorContains(t, err, "add_columns")
	s := b.mustOpen(schemaOf("w:string "+ksv), Options{AddColumns: true})
	require.NoError(t, s.write(`{"k":"b","s":1,"v":2,"w":"new"}`))
	require.NoError(t, s.finish())
	b.wantSorted("a 1 1 null", "b 1 2 new")
	_, err = b.open(schemaOf(ksv+" n:int64!"), Options{AddColumns: true})
	require.True(t, fault.Is(err, "COLUMN_NOT_NULLABLE"), "%v", err)
}

// The schema changes while a stream is open: it goes on with the new one.
func TestSchemaChangesUnderAStream(t *testing.T) {
	widen := shards.Change{Widen: schemaOf("v:int64")}
	drop := shards.Change{Drop: []string{"v"}}
	for _, mode := range []Mode{ModeUpsert, ModeInsert, ModeMerge, ModeDelete} {
		b := newBed(t)
		table := b.create("k:string v:int32 w:int64")
		s := b.mustOpen(schemaOf("k:string v:int32 w:int64"), Options{Mode: mode})
		require.NoError(t, s.write(`{"k":"a","v":1,"w":1}`))
		require.NoError(t, s.Settle())
		_, err := table.Alter(context.Background(), widen)
		require.NoError(t, err)
		require.NoError(t, s.write(`{"k":"b","v":2,"w":1}`))
		require.NoError(t, s.Settle())
		if mode != ModeDelete {
			require.Len(t, b.rows(), 2)
			_, err = table.Alter(context.Background(), drop)
			require.NoError(t, err)
			err = s.write(`{"k":"c","v":3,"w":1}`)
			if err == nil {
				err = s.Settle()
			}
			require.True(t, fault.Is(err, "COLUMN_NOT_FOUND"), "%v", err)
			require.Equal(t, uint64(2), s.Progress().Batches)
		}
		s.Abort()
	}
}

// A merge that brought every column of the table brings only some once a column
// was added: the new one keeps its value.
func TestColumnAddedUnderAMerge(t *testing.T) {
	b := newBed(t)
	table := b.create(ksv)
	s := b.mustOpen(schemaOf(ksv), Options{Mode: ModeMerge})
	require.NoError(t, s.write(row("a", 1, 1)))
	require.NoError(t, s.Settle())
	_, err := table.Alter(context.Background(), shards.Change{AddColumns: schemaOf("n:int64")})
	require.NoError(t, err)
	b.mustPut(ModeUpsert, ksv+" n:int64", `{"k":"a","s":1,"v":2,"n":7}`)
	require.NoError(t, s.write(row("a", 1, 3)))
	require.NoError(t, s.Settle())
	require.NoError(t, s.write(row("b", 1, 4)))
	require.NoError(t, s.finish())
	require.Equal(t, uint64(3), s.Progress().Batches)
	b.wantSorted("a 1 3 7", "b 1 4 null")
}

func TestAtomicStreamsThatLookAreBounded(t *testing.T) {
	b := newBed(t)
	b.create("k:string v:string")
	s := b.mustOpen(schemaOf("k:string v:string"), Options{Mode: ModeInsert, Atomic: true, lookingBytes: 10_000})
	require.NoError(t, s.write(`{"k":"a","v":"1"}`))
	err := s.write(fmt.Sprintf(`{"k":"b","v":%q}`, strings.Repeat("x", 10_000)))
	require.True(t, fault.Is(err, "ATOMIC_LIMIT"), "%v", err)
	require.Equal(t, fault.ResourceExhausted, fault.Of(err).Kind)
	s.Abort()
	b.wantRows()
}

func TestAtomicStreamSaysThatTheSchemaChanged(t *testing.T) {
	for _, mode := range []Mode{ModeUpsert, ModeInsert} {
		b := newBed(t)
		table := b.create("k:string v:int32")
		s := b.mustOpen(schemaOf("k:string v:int32"), Options{Mode: mode, Atomic: true})
		require.NoError(t, s.write(`{"k":"a","v":1}`))
		_, err := table.Alter(context.Background(), shards.Change{Widen: schemaOf("v:int64")})
		require.NoError(t, err)
		err = s.finish()
		require.True(t, fault.Is(err, "SCHEMA_CHANGED"), "%v", err)
		require.Equal(t, fault.Aborted, fault.Of(err).Kind)
		b.wantRows()
	}
}

func TestTableDroppedUnderAStream(t *testing.T) {
	b := newBed(t)
	b.create(ksv)
	s := b.mustOpen(schemaOf(ksv), Options{})
	require.NoError(t, b.store.DropTable(context.Background(), b.name("t")))
	err := s.write(row("a", 1, 1))
	if err == nil {
		err = s.finish()
	}
	require.True(t, fault.Is(err, "TABLE_NOT_FOUND"), "%v", err)
	s.Abort()
}

// Two streams insert the same keys at once: each key is taken by exactly one.
func TestInsertsRace(t *testing.T) {
	b := newBed(t)
	b.create(ksv)
	const keys, writers = 50, 4
	var mu sync.Mutex
	won := 0
	var wait sync.WaitGroup
	for writer := range writers {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for k := range keys {
				_, err := b.put(ModeInsert, ksv, row(fmt.Sprintf("k%d", k), 1, writer))
				if err == nil {
					mu.Lock()
					won++
					mu.Unlock()
				} else if !fault.Is(err, "KEY_EXISTS") {
					t.Errorf("writer %d: %v", writer, err)
				}
			}
		}()
	}
	wait.Wait()
	require.Equal(t, keys, won)
	require.Len(t, b.rows(), keys)
}

func TestCancelledStream(t *testing.T) {
	b := newBed(t)
	b.create(ksv)
	s := b.mustOpen(schemaOf(ksv), Options{Mode: ModeReplaceTable})
	ctx, cancel := context.WithCancel(context.Background())
	batch := b.batch(s.schema, row("a", 1, 1))
	defer batch.Release()
	require.NoError(t, s.Write(ctx, []arrow.RecordBatch{batch}))
	cancel()
	require.Error(t, s.Finish(ctx))
	b.wantRows()
}
