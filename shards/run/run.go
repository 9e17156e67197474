package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/layout"
)

// Options describe a run that is listed in a store.
type Options struct {
	DB     pebble.Reader
	Cache  *Cache // of tails; shared by all runs of a store
	Table  uint64
	Run    uint64
	Key    KeyColumns
	Stored Types // of the schema version that the run was written under
	// Version is the version of all rows, unless each row has its own (PerRow):
	// then Least and Greatest bound them, as in Info.
	Version         uint64
	PerRow          bool
	Least, Greatest uint64
	// Label says in errors which table it is about: `table "trips"`.
	Label string
}

// Run is one run, open for reading. It holds no resources, so there is nothing
// to close; it must not be used any more once the run may leave the disk.
type Run struct {
	o      Options
	prefix []byte
}

// Open makes a Run. It reads nothing.
func Open(o Options) *Run {
	if !o.PerRow {
		o.Least, o.Greatest = o.Version, o.Version
	}
	return &Run{o: o, prefix: layout.RunPrefix(o.Table, o.Run)}
}

// Source is the rows of one slice. The caller knows which slices a run has: a
// slice that is not there is reported as DATA_LOSS once a cursor looks for it.
func (r *Run) Source(slice int) Source { return &source{run: r, slice: slice} }

type source struct {
	run   *Run
	slice int
}

func (s *source) Versions() (least, greatest uint64) { return s.run.o.Least, s.run.o.Greatest }

func (s *source) Cursor(o CursorOptions) (Cursor, error) {
	return newCursor(s.run, s.slice, o), nil
}

// damaged makes a user's error of what is wrong with the bytes of a slice; other
// errors pass.
func (r *Run) damaged(slice int, err error) error {
	if err == nil || fault.Of(err) != nil {
		return err
	}
	if pebble.IsCorruptionError(err) || errors.Is(err, errTail) || errors.Is(err, block.ErrCorrupt) {
		return fault.New(fault.DataLoss, "CHECKSUM_FAILED",
			"%s, slice %d: stored data is damaged (run %d): %w; other rows are still readable: run sheaf doctor, then restore this table from a copy",
			r.o.Label, slice, r.o.Run, brief{err})
	}
	return fmt.Errorf("%s, slice %d, run %d: %w", r.o.Label, slice, r.o.Run, err)
}

// brief is an error whose text is one line: Pebble's corruption errors say
// everything twice.
type brief struct{ error }

func (b brief) Error() string {
	line, _, _ := strings.Cut(b.error.Error(), "\n")
	return line
}

func (b brief) Unwrap() error { return b.error }

// tail is a part of a slice's tail, decoded, from the cache or from disk; what
// is read is added to counters, if there are any. open gets bytes of its own.
func tail[T any](r *Run, k tailKey, counters *Counters, open func([]byte) (T, error), size func(T) int64) (T, error) {
	if v, ok := r.o.Cache.get(k).(T); ok {
		return v, nil
	}
	var none T
	slice := int(k.slice)
	var name []byte
	if k.kind == tailIndex {
		name = layout.AppendRunIndex(nil, r.prefix, slice, int(k.part))
	} else {
		name = layout.AppendRunZones(nil, r.prefix, slice, int(k.part), int(k.sub))
	}
	value, closer, err := r.o.DB.Get(name)
	if errors.Is(err, pebble.ErrNotFound) {
		return none, r.damaged(slice, tailError("kind %d part %d.%d is missing", k.kind, k.part, k.sub))
	}
	if err != nil {
		return none, r.damaged(slice, err)
	}
	own := bytes.Clone(value)
	if err := closer.Close(); err != nil {
		return none, r.damaged(slice, err)
	}
	if counters != nil {
		counters.BytesRead += uint64(len(own))
	}
	v, err := open(own)
	if err != nil {
		return none, r.damaged(slice, err)
	}
	r.o.Cache.put(k, v, size(v))
	return v, nil
}

func (r *Run) index(slice, part int, counters *Counters) (*index, error) {
	k := tailKey{r.o.Table, r.o.Run, uint16(slice), tailIndex, uint32(part), 0}
	x, err := tail(r, k, counters, parseIndex, func(x *index) int64 { return x.bytes })
	if err == nil && part > 0 && x.root {
		return nil, r.damaged(slice, tailError("index part %d is a root", part))
	}
	return x, err
}

func (r *Run) zones(slice, part, group int, counters *Counters) (*zoneMap, error) {
	k := tailKey{r.o.Table, r.o.Run, uint16(slice), tailZones, uint32(part), uint32(group)}
	return tail(r, k, counters, openZones, func(z *zoneMap) int64 { return z.bytes })
}

// Total is what the block index says of a whole slice; Bytes are those of the
// blocks without the tail.
func (r *Run) Total(slice int) (SliceInfo, error) {
	root, err := r.index(slice, 0, nil)
	if err != nil {
		return SliceInfo{}, err
	}
	e := sum(root.entries)
	return SliceInfo{
		Slice: slice, Rows: e.rows, Tombstones: e.tombstones, Bytes: e.encoded, Plain: e.plain,
		Blocks: int(e.blocks), First: e.first, Last: e.last,
	}, nil
}

// Piece is a piece of a slice as its block index knows it: its keys are <= Last
// and greater than the Last of the piece before.
type Piece struct {
	Last             []byte // not to be changed
	Rows, Tombstones uint64
	Encoded, Plain   uint64 // bytes on disk, and about as plain Arrow
}

// coarsePieces: a slice of more leaves than this is cut at leaves instead of
// blocks, so that cutting a scan never loads a whole huge index.
const coarsePieces = 64

// Pieces appends the pieces of one slice that overlap [low, high), nil open, by
// the block index only: to cut scans into equal parts and to estimate. A piece
// at either end may reach out of the range.
func (r *Run) Pieces(ctx context.Context, dst []Piece, slice int, low, high []byte) ([]Piece, error) {
	root, err := r.index(slice, 0, nil)
	if err != nil {
		return dst, err
	}
	from, to := root.seek(low), root.seekBack(high)
	if !root.root || to-from > coarsePieces {
		return appendPieces(dst, root, low, high), nil
	}
	for part := from; part <= to; part++ {
		if err := ctx.Err(); err != nil {
			return dst, err
		}
		leaf, err := r.index(slice, part+1, nil)
		if err != nil {
			return dst, err
		}
		dst = appendPieces(dst, leaf, low, high)
	}
	return dst, nil
}

func appendPieces(dst []Piece, x *index, low, high []byte) []Piece {
	from, to := x.seek(low), x.seekBack(high)
	dst = slices.Grow(dst, max(0, to-from+1))
	for i := from; i <= to; i++ {
		e := &x.entries[i]
		dst = append(dst, Piece{e.last, e.rows, e.tombstones, e.encoded, e.plain})
	}
	return dst
}
