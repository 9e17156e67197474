package flight

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/request"
	"github.com/sheaf-db/sheaf/shards"
	"github.com/sheaf-db/sheaf/shards/key"
)

// DoGet streams a query's rows. Every error before the first message is
// returned at once; one in mid-scan ends the stream with that error.
func (s *Server) DoGet(given *flight.Ticket, stream flight.FlightService_DoGetServer) error {
	a, err := s.askOfTicket(given.GetTicket())
	if err != nil {
		return err
	}
	if a.Pin {
		return fault.Invalid("FIELD_CONFLICT", `"snapshot": true asks GetFlightInfo for a snapshot; DoGet reads the newest state, or the snapshot whose id is given`)
	}
	r, err := s.open(a)
	if err != nil {
		return err
	}
	defer r.close()
	r.memory = s.reads.Open()
	defer r.memory.Close()
	return pipe(stream, func(ctx context.Context, emit func(*outbound) error) error {
		out := newMessages(r.result, s.allocator, emit)
		defer out.close()
		switch {
		case r.plan.Empty() || r.query.Limit == 0:
			return out.sendSchema()
		case r.keys != nil:
			return s.sendKeys(ctx, r, out)
		case r.query.Limit > 0 && r.query.Order != request.OrderAny:
			return s.sendPage(ctx, r, out)
		}
		return s.sendAll(ctx, r, out)
	})
}

// request is the scan of the read's columns.
func (s *Server) request(r *read) shards.ScanRequest {
	target, parallel := share(s.reads.Limit(), s.openStreams.Load())
	return shards.ScanRequest{
		Columns: r.ids, Order: scanOrder(r.query.Order), Limit: r.query.Limit,
		TargetBytes: target, Parallel: parallel, Mem: s.memoryOf(r), Memory: r.memory,
	}
}

// memoryOf is the allocator of the read's rows, which counts them where the read
// has a share of the memory.
func (s *Server) memoryOf(r *read) memory.Allocator {
	if r.memory == nil {
		return s.scanMemory
	}
	return r.memory.Allocator(s.scanMemory)
}

// A scan whose client is slow holds what lies ready: readyParallel about, if
// several goroutines work on it, else a few batches.
const (
	readyParallel = 24 << 20
	readyBatches  = 8
	leastTarget   = 64 << 10
)

// share gives a scan that starts beside others its part of the memory for reads,
// of half of it, since what is sent is held until it is written: how large its
// batches are, and if it may use all cores (parallel 0) or one goroutine.
func share(memory, streams int64) (target, parallel int) {
	part := memory / 2 / max(streams, 1)
	if part < readyParallel {
		parallel = 1
	}
	return int(min(max(part/readyBatches, leastTarget), limits.TargetBytes)), parallel
}

func scanOrder(order request.Order) shards.Order {
	switch order {
	case request.OrderAsc:
		return shards.Asc
	case request.OrderDesc:
		return shards.Desc
	}
	return shards.Any
}

// sendAll streams what the scan gives.
func (s *Server) sendAll(ctx context.Context, r *read, out *messages) error {
	if err := out.sendSchema(); err != nil {
		return err
	}
	_, err := s.scanAll(ctx, r, s.request(r), func(batch *shards.Batch) error {
		return out.send(piece{columns: batch.Columns, rows: batch.Rows}, noMetadata)
	})
	return err
}

// scanAll runs a scan of the plan to its end and hands on the batches, which it
// releases.
func (s *Server) scanAll(ctx context.Context, r *read, request shards.ScanRequest, use func(*shards.Batch) error) (shards.Counters, error) {
	scan, err := r.scan(ctx, request)
	if err != nil {
		return shards.Counters{}, err
	}
	defer scan.Close()
	for {
		batch, err := scan.Next()
		if errors.Is(err, io.EOF) {
			return scan.Counters(), nil
		}
		if err != nil {
			return scan.Counters(), err
		}
		err = use(batch)
		batch.Release()
		if err != nil {
			return scan.Counters(), err
		}
	}
}

// sendPage streams one page of an ordered result. Each message carries the
// marker of its last row, but the last message of the last page: so a message is
// sent when it is known whether a row follows, and the scan looks one row beyond
// the limit.
func (s *Server) sendPage(ctx context.Context, r *read, out *messages) error {
	scanned := s.request(r)
	keys := r.withKeys(&scanned)
	left := r.query.Limit
	if scanned.Limit < math.MaxInt64 {
		scanned.Limit++
	}
	if err := out.sendSchema(); err != nil {
		return err
	}
	table := r.table.ID()
	marked := func(more bool) func(piece, bool) ([]byte, error) {
		return func(part piece, final bool) ([]byte, error) {
			if final && !more {
				return nil, nil
			}
			last, err := lastKey(part)
			return markerMetadata(r.query.Order, table, last), err
		}
	}
	var held *shards.Batch // its rows are sent when it is known whether more follow
	defer func() {
		if held != nil {
			held.Release()
		}
	}()
	send := func(rows int, more bool) error {
		p := piece{columns: held.Columns[:len(r.ids)], keys: keys(held.Columns), rows: held.Rows}
		if rows < held.Rows {
			p = p.slice(0, rows)
			defer p.release()
		}
		return out.send(p, marked(more))
	}
	_, err := s.scanAll(ctx, r, scanned, func(batch *shards.Batch) error {
		if held != nil {
			if err := send(held.Rows, true); err != nil {
				return err
			}
			left -= int64(held.Rows)
			held.Release()
		}
		held = &shards.Batch{Columns: retained(batch.Columns), Rows: batch.Rows}
		return nil
	})
	if err != nil || held == nil {
		return err
	}
	more := int64(held.Rows) > left
	return send(int(min(int64(held.Rows), left)), more)
}

// withKeys makes the scan return the primary key too, behind the columns asked,
// and gives the function that picks its columns out of a batch's.
func (r *read) withKeys(request *shards.ScanRequest) (pick func([]arrow.Array) []arrow.Array) {
	request.Columns = slices.Clone(request.Columns)
	var places []int
	for _, column := range r.schema.KeyColumns() {
		id := r.schema.Columns[column].ID
		place := slices.Index(request.Columns, id)
		if place < 0 {
			place = len(request.Columns)
			request.Columns = append(request.Columns, id)
		}
		places = append(places, place)
	}
	return func(columns []arrow.Array) []arrow.Array {
		keys := make([]arrow.Array, len(places))
		for i, place := range places {
			keys[i] = columns[place]
		}
		return keys
	}
}

func retained(arrays []arrow.Array) []arrow.Array {
	for _, arr := range arrays {
		arr.Retain()
	}
	return arrays
}

// lastKey is the encoded primary key of a piece's last row.
func lastKey(p piece) (encoded []byte, err error) {
	for _, column := range p.keys {
		if encoded, err = key.AppendValue(encoded, column, p.rows-1); err != nil {
			return nil, err
		}
	}
	return encoded, nil
}

// unquoted is the text of a JSON string that a decoder has passed.
func unquoted(value jsontext.Value) string {
	text, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return ""
	}
	return string(text)
}
