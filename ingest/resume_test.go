package ingest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/fault"
)

// A client that lost the last acknowledgement of its stream opens it again and
// has nothing left to send: what it brought stays.
func TestResumedReplaceKeepsWhatItBrought(t *testing.T) {
	b := newBed(t)
	b.create(ksv)
	b.mustPut(ModeUpsert, ksv, row("old", 1, 1))
	options := Options{Mode: ModeReplaceTable, Resume: "load", Streams: &Streams{}}
	s := b.mustOpen(schemaOf(ksv), options)
	require.NoError(t, s.write(row("a", 1, 1)))
	require.NoError(t, s.finish())
	b.wantSorted("a 1 1")

	s = b.mustOpen(schemaOf(ksv), options)
	require.Equal(t, uint64(1), s.Progress().Batches)
	require.NoError(t, s.finish())
	b.wantSorted("a 1 1")

	s = b.mustOpen(schemaOf(ksv), options)
	require.NoError(t, s.write(row("b", 1, 1)))
	require.NoError(t, s.finish())
	require.Equal(t, uint64(2), s.Progress().Rows)
	b.wantSorted("a 1 1", "b 1 1")
}

// A replacement changes every slice, also those that it brings no rows for: it
// waits for whoever has looked at one of them and is about to write.
func TestReplaceWaitsForLooksInEverySlice(t *testing.T) {
	b := newBed(t)
	table := b.create(ksv)
	for slice := range table.Schema().Slices {
		unlock, err := table.Latch(context.Background(), []int{slice}, true)
		require.NoError(t, err)
		s := b.mustOpen(schemaOf(ksv), Options{Mode: ModeReplaceTable})
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		require.NoError(t, s.write(row("a", 1, 1)))
		require.ErrorIs(t, s.Finish(ctx), context.DeadlineExceeded, "slice %d", slice)
		cancel()
		unlock()
	}
}

// A stream that is refused for its mode makes no table.
func TestRefusedModeMakesNoTable(t *testing.T) {
	b := newBed(t)
	_, err := Open(context.Background(), b.store, Target{Name: b.name("t"), Keys: Keys{Sharding: []string{}}},
		schemaOf(ksv), Options{Mode: ModeMerge, Mem: b.mem})
	require.True(t, fault.Is(err, "MODE_NEEDS_KEY"), "%v", err)
	_, err = b.store.Table(b.name("t"))
	require.True(t, fault.Is(err, "TABLE_NOT_FOUND"), "%v", err)
}

// Batches cost memory beside their rows: a staged stream of batches without any
// does not grow without bound.
func TestStagedBatchesWithoutRowsAreCounted(t *testing.T) {
	b := newBed(t)
	b.create(ksv)
	s := b.mustOpen(schemaOf(ksv), Options{Mode: ModeInsert, Atomic: true, lookingBytes: 64 << 10})
	var err error
	for range 1000 {
		if err = s.write(``); err != nil {
			break
		}
	}
	require.True(t, fault.Is(err, "ATOMIC_LIMIT"), "%v", err)
	s.Abort()
}
