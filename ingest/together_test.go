package ingest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/shards"
)

// slowLog makes syncs of the log as slow as a disk's, so that commits meet.
func slowLog(fs vfs.FS) vfs.FS {
	return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if isLogSync(op) {
			time.Sleep(200 * time.Microsecond)
		}
		return nil
	}))
}

func isLogSync(op errorfs.Op) bool {
	return strings.HasSuffix(op.Path, ".log") &&
		(op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo)
}

// TestWritersOfTheSameKeys: many streams write and delete the same few keys. What
// a stream wrote and was acknowledged is there, or something that another stream
// wrote meanwhile, or a later write of its own; never an older one. In the end
// each key has what some stream did to it last.
func TestWritersOfTheSameKeys(t *testing.T) {
	const writers, keys = 16, 6
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	b := newBedOn(t, slowLog(vfs.NewMem()))
	table := b.create(ksv)
	streams := &Streams{}
	// sent and acked are the number of the last operation of a writer on a key.
	var sent, acked [writers][keys]atomic.Int64
	var last [writers][keys]struct {
		n       int64
		deleted bool
	}
	commits := sync.Map{}
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 7))
			for round := 1; round <= rounds; round++ {
				deletes := rng.IntN(4) == 0
				var rows []string
				touched := map[int]bool{}
				for range 1 + rng.IntN(4) {
					k := rng.IntN(keys)
					touched[k] = true
					sent[w][k].Store(int64(round))
					// Of the rows of one batch the last one stays.
					rows = append(rows, row(fmt.Sprint("k", k), w, -1), row(fmt.Sprint("k", k), w, round), row(fmt.Sprint("shared", k), 0, w*1_000_000+round))
				}
				options := Options{Streams: streams}
				if deletes {
					options.Mode = ModeDelete
				}
				s, err := b.open(schemaOf(ksv), options)
				if err == nil {
					if err = s.write(strings.Join(rows, ",")); err == nil {
						err = s.finish()
					}
					s.Abort()
				}
				if err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
				commits.Store(s.Progress().Commit, true)
				for k := range touched {
					acked[w][k].Store(int64(round))
					last[w][k].n, last[w][k].deleted = int64(round), deletes
				}
			}
		})
	}
	stop := make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			var before [writers][keys]int64
			for w := range writers {
				for k := range keys {
					before[w][k] = acked[w][k].Load()
				}
			}
			for _, text := range b.rows() {
				var k, w, n int
				if _, err := fmt.Sscanf(text, "k%d %d %d", &k, &w, &n); err != nil {
					continue // a key that all write
				}
				if int64(n) < before[w][k] || int64(n) > sent[w][k].Load() {
					t.Errorf("key %d of writer %d is at %d; %d was acknowledged, %d sent", k, w, n, before[w][k], sent[w][k].Load())
				}
			}
		}
	})
	all.Wait()
	close(stop)
	reading.Wait()
	distinct := 0
	commits.Range(func(_, _ any) bool { distinct++; return true })
	require.Less(t, distinct, writers*rounds/2, "few commits met")
	check := func() {
		own, shared := map[string]int64{}, map[string]int{}
		for _, text := range b.rows() {
			f := strings.Fields(text)
			n, err := strconv.Atoi(f[2])
			require.NoError(t, err)
			if strings.HasPrefix(f[0], "shared") {
				shared[strings.TrimPrefix(f[0], "shared")] = n
			} else {
				own[f[0]+" "+f[1]] = int64(n)
			}
		}
		for k := range keys {
			mayBeGone := false
			for w := range writers {
				mayBeGone = mayBeGone || last[w][k].deleted || last[w][k].n == 0
				got, there := own[fmt.Sprintf("k%d %d", k, w)]
				require.Equal(t, last[w][k].n > 0 && !last[w][k].deleted, there, "key %d of writer %d", k, w)
				if there {
					require.Equal(t, last[w][k].n, got, "key %d of writer %d", k, w)
				}
			}
			value, there := shared[fmt.Sprint(k)]
			require.True(t, there || mayBeGone, "shared key %d is gone, and nobody deleted it last", k)
			if there { // what some writer did last
				w, n := value/1_000_000, int64(value%1_000_000)
				require.Equal(t, last[w][k].n, n, "shared key %d is writer %d's", k, w)
				require.False(t, last[w][k].deleted)
			}
		}
	}
	check()
	require.NoError(t, table.Fold(context.Background()))
	check()
}

// TestCombinedCommitsSurvive: many resumable streams write while the disk fails
// to sync, or the machine stops. Afterwards each stream's rows are there exactly up
// to its position, and that is not behind what was acknowledged.
func TestCombinedCommitsSurvive(t *testing.T) {
	rounds := 12
	if testing.Short() {
		rounds = 4
	}
	for round := range rounds {
		for _, fails := range []bool{false, true} {
			t.Run(fmt.Sprintf("fails=%v/%d", fails, round), func(t *testing.T) { crashWriters(t, uint64(round), fails) })
		}
	}
}

func crashWriters(t *testing.T, seed uint64, fails bool) {
	const writers = 12
	rng := rand.New(rand.NewPCG(seed, 3))
	disk := vfs.NewCrashableMem()
	var syncs atomic.Int64
	at := int64(5 + rng.IntN(40))
	var broken atomic.Bool
	var mu sync.RWMutex // held while the machine stops
	var crashed *vfs.MemFS
	fs := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if !isLogSync(op) {
			return nil
		}
		time.Sleep(100 * time.Microsecond)
		if fails && (broken.Load() || syncs.Add(1) >= at) {
			broken.Store(true)
			return errorfs.ErrInjected
		}
		return nil
	}))
	b := newBedOn(t, fs)
	b.create(ksv)
	streams := &Streams{}
	var acked, sent [writers]atomic.Int64
	var total atomic.Int64
	stop := make(chan struct{})
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			s, err := b.open(schemaOf(ksv), Options{Streams: streams, Resume: fmt.Sprint("w", w), Committed: func(p Progress) {
				mu.RLock()
				defer mu.RUnlock()
				acked[w].Store(int64(p.Batches))
			}})
			for n := 0; err == nil; n++ {
				select {
				case <-stop:
					err = s.finish()
					s.Abort()
					if err != nil {
						t.Errorf("writer %d: %v", w, err)
					}
					return
				default:
				}
				sent[w].Store(int64(n + 1))
				err = s.write(row(fmt.Sprint("w", w), n, n) + "," + row("all", 1, w))
				total.Add(1)
			}
			if s != nil {
				s.Abort()
			}
			if !fails || !fault.Is(err, "STORE_READ_ONLY") {
				t.Errorf("writer %d: %v", w, err)
			}
		})
	}
	var must, may [writers]int64
	note := func() {
		for w := range writers {
			must[w], may[w] = acked[w].Load(), sent[w].Load()
		}
	}
	if fails {
		all.Wait()
		note()
		crashed = disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 100}[seed%2], RNG: rng})
	} else {
		for total.Load() < 10*at {
			time.Sleep(time.Millisecond)
		}
		mu.Lock() // nothing is acknowledged while the disk stops
		for w := range writers {
			must[w] = acked[w].Load()
		}
		crashed = disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rng})
		for w := range writers {
			may[w] = sent[w].Load()
		}
		mu.Unlock()
		close(stop)
		all.Wait()
	}
	after := newBedOn(t, crashed)
	table, err := after.store.Table(after.name("t"))
	require.NoError(t, err)
	rows := map[string]int64{}
	for _, text := range after.rows() {
		rows[strings.Fields(text)[0]]++
	}
	for w := range writers {
		position, _, err := table.ResumePosition(fmt.Sprint("w", w))
		require.NoError(t, err)
		at := int64(position.Batches)
		require.True(t, must[w] <= at && at <= may[w], "writer %d is at %d; %d were acknowledged, %d sent", w, at, must[w], may[w])
		require.Equal(t, uint64(2*at), position.Rows)
		require.Equal(t, at, rows[fmt.Sprint("w", w)], "rows of writer %d", w)
	}
	require.NoError(t, after.store.Doctor(context.Background(), func(f shards.Finding) { t.Errorf("doctor: %+v", f) }))
}

// BenchmarkWriters: calls of 100 rows each, durable, by 64 writers at once and by
// one, on a disk whose syncs take 200 µs.
func BenchmarkWriters(b *testing.B) {
	for _, writers := range []int{1, 64} {
		b.Run(fmt.Sprint(writers), func(b *testing.B) {
			store, err := shards.Open(context.Background(), "/store", shards.Options{FS: slowLog(vfs.NewMem())})
			if err != nil {
				b.Fatal(err)
			}
			defer store.Close()
			schema := schemaOf("k:int64 s:int32 a:int64 b:float64 c:int32 d:string e:string f:bool")
			name, _ := shards.ParseName("t")
			target := Target{Name: name, Keys: Keys{Sharding: []string{"k"}, Sorting: []string{"s"}}}
			streams := &Streams{}
			var next atomic.Int64
			var all sync.WaitGroup
			errs := make([]error, writers)
			b.ResetTimer()
			for w := range writers {
				all.Go(func() {
					batch := benchBatch(schema, w*1000, 100, false)
					defer batch.Release()
					for next.Add(1) <= int64(b.N) && errs[w] == nil {
						errs[w] = putBatch(store, target, streams, batch)
					}
				})
			}
			all.Wait()
			if err := errors.Join(errs...); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
		})
	}
}

func putBatch(store *shards.Store, target Target, streams *Streams, batch arrow.RecordBatch) error {
	ctx := context.Background()
	w, err := Open(ctx, store, target, batch.Schema(), Options{Streams: streams})
	if err != nil {
		return err
	}
	if err := w.Write(ctx, []arrow.RecordBatch{batch}); err != nil {
		w.Abort()
		return err
	}
	return w.Finish(ctx)
}
