package flight

import (
	"context"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/pushdown"
	"github.com/sheaf-db/sheaf/shards"
	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
)

// A query by "keys" gives rows in the order of its list, repeated keys again.
// Scans give them in the order of keys, so neighbours in the list that name as
// many key columns are looked up in groups and their rows put in order
// afterwards; a part of a key whose rows are many is a scan of its own.

// groupKeys and groupBytes bound what is looked up, and held, at once.
const (
	groupKeys  = 4096
	groupBytes = 32 << 20
	// foundBytes is about what it takes to know where one row is.
	foundBytes = 64
)

// sendKeys streams the rows of the query's keys.
func (s *Server) sendKeys(ctx context.Context, r *read, out *messages) error {
	if err := out.sendSchema(); err != nil {
		return err
	}
	_, err := s.eachKey(ctx, r, func(batch *shards.Batch) error {
		return out.send(piece{columns: batch.Columns, rows: batch.Rows}, noMetadata)
	})
	return err
}

// eachKey hands on the rows of the keys, in their order, in batches that it
// releases.
func (s *Server) eachKey(ctx context.Context, r *read, use func(*shards.Batch) error) (shards.Counters, error) {
	lookup := &keyLookup{server: s, ctx: ctx, read: r, use: use}
	defer lookup.release()
	for _, id := range r.ids {
		dt, _ := r.schema.CanonicalByID(id) // known since the read was resolved
		lookup.vectors = append(lookup.vectors, block.NewVector(s.memoryOf(r), dt))
	}
	err := lookup.run(r.keys)
	return lookup.counters, err
}

type keyLookup struct {
	server   *Server
	ctx      context.Context
	read     *read
	use      func(*shards.Batch) error
	vectors  []*block.Vector // rows found and not yet handed on
	rows     int
	counters shards.Counters
}

func (l *keyLookup) release() {
	for _, vector := range l.vectors {
		vector.Release()
	}
}

func (l *keyLookup) run(keys []pushdown.KeyPrefix) error {
	keys = slices.DeleteFunc(slices.Clone(keys), func(k pushdown.KeyPrefix) bool {
		_, found := slices.BinarySearch(l.read.plan.Slices, k.Slice)
		return !found
	})
	for len(keys) > 0 {
		n := 1
		for n < len(keys) && n < groupKeys && keys[n].Columns == keys[0].Columns {
			n++
		}
		if err := l.group(keys[:n]); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return l.flush()
}

// prefix appends the rows whose key begins with k.
func (l *keyLookup) prefix(k pushdown.KeyPrefix) error {
	request := l.server.request(l.read)
	request.Parallel = 1
	return l.scan([]pushdown.KeyPrefix{k}, request, func(batch *shards.Batch) error {
		for i, vector := range l.vectors {
			vector.AppendArray(batch.Columns[i], 0, batch.Rows)
		}
		l.rows += batch.Rows
		return l.flushAbove(limits.TargetBytes)
	})
}

// group appends the rows of keys that name as many columns, in the order of keys.
// Rows that are too large together are looked up in halves.
func (l *keyLookup) group(keys []pushdown.KeyPrefix) error {
	if len(keys) == 1 {
		return l.prefix(keys[0])
	}
	request := l.server.request(l.read)
	pick := l.read.withKeys(&request)
	found := map[string][]block.Ref{}
	types := l.read.schema.KeyTypes()
	columns := make([][]arrow.Array, len(l.read.ids)) // by column, then by batch
	release := func() {
		for i, batches := range columns {
			for _, arr := range batches {
				arr.Release()
			}
			columns[i] = nil
		}
	}
	defer release()
	batches, bytes := 0, 0
	err := l.scan(keys, request, func(batch *shards.Batch) error {
		var encoded key.Keys
		if err := key.Encode(&encoded, pick(batch.Columns)); err != nil {
			return err
		}
		for row := range batch.Rows {
			named, err := key.Prefix(types, encoded.At(row), keys[0].Columns)
			if err != nil {
				return err
			}
			prefix := encoded.At(row)[:named]
			found[string(prefix)] = append(found[string(prefix)], block.Ref{Batch: uint32(batches), Row: uint32(row)})
		}
		for i := range columns {
			batch.Columns[i].Retain()
			columns[i] = append(columns[i], batch.Columns[i])
			bytes += rowBytes(batch.Columns[i].Data(), 0, batch.Rows, false)
		}
		batches++
		bytes += batch.Rows * foundBytes
		if bytes > groupBytes {
			return errGroupTooLarge
		}
		return nil
	})
	if err == errGroupTooLarge {
		release()
		if err := l.group(keys[:len(keys)/2]); err != nil {
			return err
		}
		return l.group(keys[len(keys)/2:])
	}
	if err != nil {
		return err
	}
	var refs []block.Ref
	for _, k := range keys { // a key may be repeated, and its rows be many
		if refs = append(refs, found[string(k.Encoded)]...); len(refs) < groupKeys {
			continue
		}
		if err := l.take(columns, refs); err != nil {
			return err
		}
		refs = refs[:0]
	}
	return l.take(columns, refs)
}

type groupTooLarge struct{}

func (groupTooLarge) Error() string { return "the rows of a group of keys are too large" }

var errGroupTooLarge error = groupTooLarge{}

// takeRows bounds the rows appended before the size is looked at: rows asked
// again and again may be large.
const takeRows = 32

func (l *keyLookup) take(columns [][]arrow.Array, refs []block.Ref) error {
	for len(refs) > 0 {
		n := min(takeRows, len(refs))
		for i, vector := range l.vectors {
			vector.AppendRefs(columns[i], refs[:n])
		}
		l.rows += n
		refs = refs[n:]
		if err := l.flushAbove(limits.TargetBytes); err != nil {
			return err
		}
	}
	return nil
}

// scan reads the rows of some of the keys, in key order.
func (l *keyLookup) scan(keys []pushdown.KeyPrefix, request shards.ScanRequest, use func(*shards.Batch) error) error {
	part := *l.read
	part.plan = pushdown.BuildKeys(l.read.schema, keys, l.read.filter)
	if part.plan.Empty() {
		return nil
	}
	counted, err := l.server.scanAll(l.ctx, &part, request, use)
	l.counters.Add(counted)
	return err
}

func (l *keyLookup) flushAbove(most int64) error {
	bytes := int64(0)
	for _, vector := range l.vectors {
		bytes += vector.Bytes()
	}
	if bytes < most {
		return nil
	}
	return l.flush()
}

func (l *keyLookup) flush() error {
	if l.rows == 0 {
		return nil
	}
	batch := &shards.Batch{Rows: l.rows}
	for _, vector := range l.vectors {
		batch.Columns = append(batch.Columns, vector.NewArray())
	}
	l.rows = 0
	defer batch.Release()
	return l.use(batch)
}
