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
// Scans give them in the order of keys, so full primary keys are looked up in
// groups and their rows put in order afterwards; a part of a key, whose rows may
// be many, is a scan of its own.

// groupKeys and groupBytes bound what is looked up, and held, at once.
const (
	groupKeys  = 4096
	groupBytes = 32 << 20
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
		lookup.vectors = append(lookup.vectors, block.NewVector(s.scanMemory, dt))
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
	width := len(l.read.schema.KeyColumns())
	keys = slices.DeleteFunc(slices.Clone(keys), func(k pushdown.KeyPrefix) bool {
		_, found := slices.BinarySearch(l.read.plan.Slices, k.Slice)
		return !found
	})
	for len(keys) > 0 {
		points := 0
		for points < len(keys) && points < groupKeys && keys[points].Columns == width {
			points++
		}
		var err error
		if points > 1 {
			err = l.group(keys[:points])
		} else {
			points = 1
			err = l.prefix(keys[0])
		}
		if err != nil {
			return err
		}
		keys = keys[points:]
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

// group appends the rows of full primary keys in the order of keys. Rows that
// are too large together are looked up in halves.
func (l *keyLookup) group(keys []pushdown.KeyPrefix) error {
	request := l.server.request(l.read)
	pick := l.read.withKeys(&request)
	found := map[string]block.Ref{}
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
			found[string(encoded.At(row))] = block.Ref{Batch: uint32(batches), Row: uint32(row)}
		}
		for i := range columns {
			batch.Columns[i].Retain()
			columns[i] = append(columns[i], batch.Columns[i])
			bytes += rowBytes(batch.Columns[i].Data(), 0, batch.Rows, false)
		}
		batches++
		if bytes > groupBytes && len(keys) > 1 {
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
	refs := make([]block.Ref, 0, len(keys))
	for _, k := range keys {
		if ref, ok := found[string(k.Encoded)]; ok {
			refs = append(refs, ref)
		}
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
