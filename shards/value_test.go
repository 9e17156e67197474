package shards

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/sheaf-db/sheaf/shards/run"
)

// FuzzRecords: no bytes from the disk make a decoder panic, and what decodes
// encodes again to something that decodes to the same. All but the catalog entry
// are tried with a right checksum: the Arrow schema in the entry is decoded by
// arrow-go, which allocates what damaged bytes ask for.
func FuzzRecords(f *testing.F) {
	schema, err := parseFields("k:string s:int64! v:dict")
	if err != nil {
		f.Fatal(err)
	}
	e, err := newEntry(Name{"main", "t"}, Spec{Schema: schema, Sharding: []string{"k"}, Sorting: []string{"s"}, Slices: 7})
	if err != nil {
		f.Fatal(err)
	}
	value, err := e.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(value)
	for _, sealed := range [][]byte{(&listing{schema: 3, of: 4, written: 2, bytes: 1000, sequence: 5, perRow: true, least: 7, greatest: 9, slices: []run.SliceInfo{
		{Slice: 1, Rows: 10, Tombstones: 1, Bytes: 500, Plain: 900, Blocks: 2, First: []byte("a"), Last: []byte("b")},
	}}).encode(), (&listing{schema: 3, of: 4, written: 2, bytes: 1000, sequence: 5, commit: 8, least: 8, greatest: 8, slices: []run.SliceInfo{
		{Slice: 1, Rows: 10, Bytes: 500, Plain: 900, Blocks: 2, First: []byte("a"), Last: []byte("b")},
		{Slice: 3, Rows: 1, Bytes: 50, Plain: 90, Blocks: 1, First: []byte("c"), Last: []byte("c")},
	}, cuts: []cut{{1, 9, nil}, {3, 9, []byte("c")}}}).encode(), encodeGenerations([]generationCount{{1, 2, 1, 300}, {9, 1, 0, 20}}),
		encodeStream(Progress{3, 4}, 5), encodeCommit(1 << 60)} {
		f.Add(sealed[:len(sealed)-sealBytes])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if e, err := decodeEntry(data); err == nil {
			value, err := e.encode()
			if err != nil {
				t.Fatal(err)
			}
			again, err := decodeEntry(value)
			if err != nil || again.name != e.name || len(again.schemas) != len(e.schemas) ||
				!again.current().Arrow().Equal(e.current().Arrow()) {
				t.Fatalf("a catalog entry came back as %+v: %v", again, err)
			}
		}
		sealed := (&record{data: data}).seal()
		if l, err := decodeListing(1, sealed); err == nil {
			if again, err := decodeListing(1, l.encode()); err != nil || !reflect.DeepEqual(again, l) {
				t.Fatalf("a manifest entry came back as %+v: %v", again, err)
			}
		}
		if list, err := decodeGenerations(sealed); err == nil {
			if again, err := decodeGenerations(encodeGenerations(list)); err != nil || !reflect.DeepEqual(again, list) {
				t.Fatalf("a list of generations came back as %+v: %v", again, err)
			}
		}
		if p, commit, err := decodeStream(sealed); err == nil {
			if q, c, err := decodeStream(encodeStream(p, commit)); err != nil || p != q || c != commit {
				t.Fatal("a stream's position came back changed", err)
			}
		}
		if n, err := decodeCommit(sealed); err == nil {
			if m, err := decodeCommit(encodeCommit(n)); err != nil || n != m {
				t.Fatal("a commit number came back changed", err)
			}
		}
		if _, block, err := splitPayload(data); err == nil && !bytes.HasSuffix(data, block) {
			t.Fatal("a payload's block is not its end")
		}
		if row, deleted, err := rowNumber(data); err == nil && !deleted && row < 0 {
			t.Fatal("a row before the first")
		}
	})
}

// TestDamagedRecords: any changed bit of a record is noticed.
func TestDamagedRecords(t *testing.T) {
	value := encodeStream(Progress{3, 4}, 5)
	for i := range 8 * len(value) {
		damaged := bytes.Clone(value)
		damaged[i/8] ^= 1 << (i % 8)
		if _, _, err := decodeStream(damaged); !errors.Is(err, errBadRecord) {
			t.Errorf("bit %d changed: %v", i, err)
		}
	}
}
