package shards

import (
	"context"
	"testing"
)

const smallRows = 100

// BenchmarkSmallCommit100: a commit of 100 rows in all slices, durable.
func BenchmarkSmallCommit100(b *testing.B) {
	_, t := benchStore(b)
	c, release := benchCommit(b, t, 0, smallRows)
	defer release()
	b.ReportAllocs()
	for b.Loop() {
		benchPublish(b, t, c)
	}
}

// BenchmarkSmallPrepare: its part outside of the publish section.
func BenchmarkSmallPrepare(b *testing.B) {
	_, t := benchStore(b)
	c, release := benchCommit(b, t, 0, smallRows)
	defer release()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := t.Prepare(context.Background(), c); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSmallCommits64: 64 writers share syncs.
func BenchmarkSmallCommits64(b *testing.B) {
	_, t := benchStore(b)
	c, release := benchCommit(b, t, 0, smallRows)
	defer release()
	b.SetParallelism(32) // times two cores
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			own := c
			own.Slices = append([]Rows(nil), c.Slices...)
			benchPublish(b, t, own)
		}
	})
}
