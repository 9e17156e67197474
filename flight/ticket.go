package flight

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards/run"
)

// ticketMagic begins the tickets that this server makes. Its first byte occurs
// in no UTF-8 text, so they are told from JSON, names and SQL.
const ticketMagic = "\xfeSHF\x01"

// ticket is a part of a query's result: the query as the client sent it, and
// what GetFlightInfo decided about it.
type ticket struct {
	query    []byte      // empty only with kept
	kept     string      // id of what is kept: the query, or a whole ticket in place of this one
	snapshot string      // "": the newest state
	slices   []int       // nil: all that the plan touches
	ranges   []run.Range // nil: all of the plan's
}

// encode is the ticket's bytes. A ticket that is too large stays on the server;
// the bytes then name it.
func (t ticket) encode(kept *keptQueries) []byte {
	raw := t.append([]byte(ticketMagic))
	raw = sealed("ticket", raw)
	if len(raw) <= limits.TicketBytes {
		return raw
	}
	small := ticket{kept: kept.keep(raw), snapshot: t.snapshot} // snapshot: for CancelFlightInfo
	return sealed("ticket", small.append([]byte(ticketMagic)))
}

func (t ticket) append(dst []byte) []byte {
	for _, text := range [][]byte{t.query, []byte(t.kept), []byte(t.snapshot)} {
		dst = appendBytes(dst, text)
	}
	dst = binary.AppendUvarint(dst, listLength(t.slices == nil, len(t.slices)))
	for _, slice := range t.slices {
		dst = binary.AppendUvarint(dst, uint64(slice))
	}
	dst = binary.AppendUvarint(dst, listLength(t.ranges == nil, len(t.ranges)))
	for _, r := range t.ranges {
		dst = binary.AppendUvarint(dst, uint64(r.Slice+1))
		for _, bound := range [][]byte{r.Low, r.High} {
			dst = binary.AppendUvarint(dst, listLength(bound == nil, len(bound)))
			dst = append(dst, bound...)
		}
	}
	return dst
}

// listLength tells an absent list, 0, from an empty one, 1.
func listLength(absent bool, length int) uint64 {
	if absent {
		return 0
	}
	return uint64(length) + 1
}

func appendBytes(dst, value []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(value))), value...)
}

// isTicket reports whether the bytes claim to be a ticket of this server.
func isTicket(raw []byte) bool { return bytes.HasPrefix(raw, []byte(ticketMagic)) }

// openTicket reads a ticket that isTicket, and what is kept for it.
func openTicket(raw []byte, kept *keptQueries) (ticket, error) {
	t, err := decodeTicket(raw)
	for err == nil && t.kept != "" {
		var text []byte
		if text, err = kept.use(t.kept); err != nil {
			break
		}
		if !isTicket(text) {
			t.query, t.kept = text, ""
			return t, nil
		}
		// A kept ticket names no further kept ticket, at most a query.
		t, err = decodeTicket(text)
	}
	if err != nil {
		return ticket{}, err
	}
	return t, nil
}

func decodeTicket(raw []byte) (ticket, error) {
	body, err := unsealed("ticket", raw)
	if err != nil {
		return ticket{}, errTicket
	}
	in := fieldReader{rest: body[len(ticketMagic):]}
	t := ticket{query: in.bytes(), kept: string(in.bytes()), snapshot: string(in.bytes())}
	if count, present := in.list(); present {
		t.slices = make([]int, 0, min(count, limits.MaxSlices))
		for range count {
			t.slices = append(t.slices, in.slice())
			if in.err != nil {
				break
			}
		}
	}
	if count, present := in.list(); present {
		t.ranges = []run.Range{}
		for range count {
			r := run.Range{Slice: in.slice() - 1}
			r.Low, r.High = in.bound(), in.bound()
			if in.err != nil {
				break
			}
			t.ranges = append(t.ranges, r)
		}
	}
	if in.err != nil || len(in.rest) > 0 || (len(t.query) == 0) == (t.kept == "") || isTicket(t.query) {
		return ticket{}, errTicket
	}
	return t, nil
}

var errTicket = fault.Invalid("TICKET_INVALID", "the ticket is damaged: pass on the bytes that GetFlightInfo gave unchanged")

var errShort = errors.New("the ticket ends too early")

// fieldReader reads what ticket.append wrote; after an error it reads zeros.
type fieldReader struct {
	rest []byte
	err  error
}

func (r *fieldReader) number() uint64 {
	value, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.err, r.rest = errShort, nil
		return 0
	}
	r.rest = r.rest[n:]
	return value
}

func (r *fieldReader) bytes() []byte { return r.take(r.number()) }

func (r *fieldReader) take(length uint64) []byte {
	if length > uint64(len(r.rest)) {
		r.err, r.rest = errShort, nil
		return nil
	}
	value := r.rest[:length:length]
	r.rest = r.rest[length:]
	return value
}

// list is the length of a list that may be absent. Each element takes a byte at
// least, which bounds what is made for it.
func (r *fieldReader) list() (count int, present bool) {
	length := r.number()
	if length == 0 {
		return 0, false
	}
	if length-1 > uint64(len(r.rest)) {
		r.err = errShort
		return 0, true
	}
	return int(length - 1), true
}

func (r *fieldReader) slice() int {
	value := r.number()
	if value > limits.MaxSlices {
		r.err = errShort
		return 0
	}
	return int(value)
}

func (r *fieldReader) bound() []byte {
	length := r.number()
	if length == 0 {
		return nil
	}
	return r.take(length - 1)
}
