package shards

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/sheaf-db/sheaf/fault"
)

// TestIdleReadsExpire: a read whose client takes no rows is given up, so that what
// it pinned leaves the disk; one that is used is not.
func TestIdleReadsExpire(t *testing.T) {
	b := newBed(t)
	table := overlapping(b, 20_000, 2)
	s := b.snapshot(table)
	r := all(s)
	r.TargetBytes, r.Parallel = 4<<10, 1
	idle, err := s.Scan(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	batch, err := idle.Next()
	if err != nil {
		t.Fatal(err)
	}
	batch.Release()
	if err := table.Fold(context.Background()); err != nil {
		t.Fatal(err)
	}
	holds := table.Holds()
	if len(holds) != 1 || holds[0].By != "scan" || holds[0].PinnedBytes == 0 || time.Until(holds[0].Expires) > DefaultPinTime {
		t.Fatalf("held is %+v", holds)
	}
	b.s.reads.sweep(time.Now().Add(DefaultPinTime - time.Minute))
	if batch, err = idle.Next(); err != nil {
		t.Fatalf("a scan was given up too early: %v", err)
	}
	batch.Release()
	b.s.reads.sweep(time.Now().Add(DefaultPinTime + time.Minute))
	if _, err := idle.Next(); !fault.Is(err, "SCAN_EXPIRED") {
		t.Errorf("the idle scan says %v", err)
	}
	if _, err := s.Scan(context.Background(), all(s)); !fault.Is(err, "SCAN_EXPIRED") {
		t.Errorf("another scan of its snapshot says %v", err)
	}
	b.s.janitor.wait()
	checkNoGarbage(t, b.s, table)
	if holds := table.Holds(); len(holds) != 0 {
		t.Errorf("still held: %+v", holds)
	}
	s.Release()
}

// TestHoldsNameTickets: pinned snapshots are listed with what they keep.
func TestHoldsNameTickets(t *testing.T) {
	b := newBed(t)
	table := overlapping(b, 3_000, 2)
	pin, err := table.Pin(time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := table.Fold(context.Background()); err != nil {
		t.Fatal(err)
	}
	holds := table.Holds()
	if len(holds) != 1 || holds[0].By != "ticket" || holds[0].ID != pin.ID || holds[0].PinnedBytes == 0 || !holds[0].Expires.Equal(pin.Expires) {
		t.Fatalf("held is %+v", holds)
	}
	b.s.pins.expire(pin.ID) // before its time: it stays
	if len(table.Holds()) != 1 {
		t.Error("a pinned snapshot expired before its time")
	}
}

// TestOldResumeIDsAreForgotten: of too many, those that moved last longest ago.
func TestOldResumeIDsAreForgotten(t *testing.T) {
	b := newBed(t)
	table := b.create("t", "k:string v:int64", "k", "", 1)
	for i := range 30 {
		b.publish(table, PublishOptions{Positions: []Position{{fmt.Sprintf("id %d", i%20), Progress{Batches: uint64(i + 1)}}}},
			b.prepare(table, []values{{"a", int64(i)}}, false))
	}
	if err := table.trimPositions(15); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		p, _, err := table.ResumePosition(fmt.Sprintf("id %d", i))
		if err != nil {
			t.Fatal(err)
		}
		if kept := i < 10 || i >= 15; (p.Batches > 0) != kept {
			t.Errorf("id %d is at %d, should be kept: %t", i, p.Batches, kept)
		}
	}
}

// TestPublishOfAnotherTable: a commit goes to the table that it was prepared for.
func TestPublishOfAnotherTable(t *testing.T) {
	b := newBed(t)
	one, other := b.create("one", "k:string v:int64", "k", "", 1), b.create("other", "k:string v:int64", "k", "", 1)
	p := b.prepare(one, []values{{"a", int64(1)}}, false)
	defer p.Discard()
	if _, err := other.Publish(context.Background(), []*Prepared{p}, PublishOptions{}); err == nil {
		t.Error("a commit was published to another table")
	}
	if rows := b.rows(other); len(rows) > 0 {
		t.Errorf("the other table holds %v", rows)
	}
}
