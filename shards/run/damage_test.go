package run

import (
	"bytes"
	"io"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/shards/key"
	"github.com/sheaf-db/sheaf/shards/layout"
)

type kv struct{ key, value []byte }

// values are all key-values of a run.
func (b *bed) values(r *Run) []kv {
	low, high := layout.RunSpan(r.o.Table, r.o.Run)
	it, err := b.db.NewIter(&pebble.IterOptions{LowerBound: low, UpperBound: high})
	require.NoError(b.t, err)
	var all []kv
	for ok := it.First(); ok; ok = it.Next() {
		all = append(all, kv{bytes.Clone(it.Key()), bytes.Clone(it.Value())})
	}
	require.NoError(b.t, it.Close())
	return all
}

// read scans in every way there is and returns the first error.
func (b *bed) read(r *Run) error {
	var points []Range
	for i := range 10 {
		k := []byte(row{shard: "a", sort: int64(10*i + 9)}.key())
		points = append(points, Range{Low: k, High: key.Next(k)})
	}
	overlap := &memSource{rows: numbered("a", 0, 400, 3, 3), part: 100}
	for _, request := range []Request{
		{},
		{Desc: true},
		{Filter: between{colNum, 1, 1}},
		{Ranges: points},
	} {
		request.Mem, request.Key, request.Types, request.Columns = b.mem, testKey, typesNow, allColumns
		s, err := NewScan(b.t.Context(), request, []Source{overlap, r.Source(3)})
		require.NoError(b.t, err)
		if request.Filter != nil {
			require.NoError(b.t, s.Close())
			s, err = NewScan(b.t.Context(), request, []Source{r.Source(3)})
			require.NoError(b.t, err)
		}
		var batch *Batch
		for batch, err = s.Next(); err == nil; batch, err = s.Next() {
			batch.Release()
		}
		if closed := s.Close(); err == io.EOF {
			err = closed
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func TestDamageIsReportedAsDataLoss(t *testing.T) {
	b := newBed(t)
	b.blockRows, b.leafBlocks = 16, 2
	r := b.run(numbered("a", 0, 100, 1, 1), typesNow, false)
	require.NoError(t, b.read(r))
	check := func(what string, at []byte) {
		b.cache = NewCache(1 << 20)
		damaged := Open(r.o)
		damaged.o.Cache = b.cache
		err := b.read(damaged)
		require.Error(t, err, "%s %x", what, at)
		found := fault.Of(err)
		require.NotNil(t, found, err)
		require.Equal(t, fault.DataLoss, found.Kind)
		require.Equal(t, "CHECKSUM_FAILED", found.Reason)
		require.Contains(t, err.Error(), `table "t", slice 3`)

		var wrong []string
		damaged.o.Cache = NewCache(1 << 20)
		require.NoError(t, damaged.Verify(t.Context(), 3, func(what string) { wrong = append(wrong, what) }))
		require.NotEmpty(t, wrong, "%s %x", what, at)
	}
	for _, at := range b.values(r) {
		flipped := bytes.Clone(at.value)
		flipped[len(flipped)/2] ^= 0x10
		require.NoError(t, b.db.Set(at.key, flipped, nil))
		check("flipped", at.key)
		require.NoError(t, b.db.Set(at.key, at.value[:len(at.value)-1], nil))
		check("cut", at.key)
		require.NoError(t, b.db.Set(at.key, nil, nil))
		check("empty", at.key)
		require.NoError(t, b.db.Delete(at.key, nil))
		check("missing", at.key)
		require.NoError(t, b.db.Set(at.key, at.value, nil))
	}
	r.o.Cache = NewCache(1 << 20)
	require.NoError(t, b.read(r))
}

// What Pebble itself finds wrong is reported in the same words, and only by
// reads that touch it.
func TestADamagedFileIsReportedAsDataLoss(t *testing.T) {
	b := newBed(t)
	b.blockRows = 100
	r := b.run(numbered("a", 0, 400, 1, 1), typesNow, false)
	all := b.values(r)
	names, err := b.fs.List("db")
	require.NoError(t, err)
	for _, name := range names {
		if len(name) < 4 || name[len(name)-4:] != ".sst" {
			continue
		}
		f, err := b.fs.OpenReadWrite("db/"+name, "test")
		require.NoError(t, err)
		stat, err := f.Stat()
		require.NoError(t, err)
		data := make([]byte, stat.Size())
		_, err = f.ReadAt(data, 0)
		require.NoError(t, err)
		at := bytes.Index(data, all[7].value) // the fourth block: each has a filter before it
		require.Positive(t, at)
		_, err = f.WriteAt([]byte{data[at+100] ^ 1}, int64(at+100))
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	// A new process has nothing in its cache.
	require.NoError(t, b.db.Close())
	b.db, err = pebble.Open("db", &pebble.Options{
		FS: b.fs, FormatMajorVersion: pebble.FormatFlushableIngestExcises, Logger: quiet{},
		EventListener: &pebble.EventListener{DataCorruption: func(pebble.DataCorruptionInfo) {}},
	})
	require.NoError(t, err)
	r.o.DB, r.o.Cache = b.db, NewCache(1<<20)

	err = b.read(r)
	require.True(t, fault.Is(err, "CHECKSUM_FAILED"), "%v", err)
	got, _ := b.scan(Request{Limit: 300}, r.Source(3))
	require.Len(t, got, 300, "the other blocks are still readable")
	var wrong []string
	require.NoError(t, r.Verify(t.Context(), 3, func(what string) { wrong = append(wrong, what) }))
	require.Len(t, wrong, 1)
}

func TestVerifyFindsBlocksThatChangedPlaces(t *testing.T) {
	b := newBed(t)
	r := b.run(numbered("a", 0, 12, 1, 1), typesNow, false)
	all := b.values(r)
	require.NoError(t, b.db.Set(all[1].key, all[3].value, nil))
	require.NoError(t, b.db.Set(all[3].key, all[1].value, nil))
	var wrong []string
	require.NoError(t, r.Verify(t.Context(), 3, func(what string) { wrong = append(wrong, what) }))
	require.NotEmpty(t, wrong)
	require.Contains(t, wrong[0], "first and last key are not what the index says")
}

func TestASliceThatIsNotThere(t *testing.T) {
	b := newBed(t)
	r := b.run(numbered("a", 0, 12, 1, 1), typesNow, false)
	s, err := NewScan(t.Context(), Request{Mem: b.mem, Key: testKey, Types: typesNow}, []Source{r.Source(4)})
	require.NoError(t, err)
	_, err = s.Next()
	require.True(t, fault.Is(err, "CHECKSUM_FAILED"), "%v", err)
	require.NoError(t, s.Close())
}
