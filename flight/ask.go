package flight

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/request"
	"github.com/sheaf-db/sheaf/shards"
)

// ask is a read as a client asked for it, by a ticket or a descriptor.
type ask struct {
	*request.Query
	text []byte // the client's bytes, which tickets carry on
	part ticket // the part of the result that a ticket of ours names
}

// askOfTicket reads the ticket of a DoGet.
func (s *Server) askOfTicket(raw []byte) (*ask, error) {
	if !isTicket(raw) {
		query, err := parseQuery(raw)
		return &ask{Query: query, text: raw}, err
	}
	part, err := openTicket(raw, s.kept)
	if err != nil {
		return nil, err
	}
	query, err := parseQuery(part.query)
	if err != nil {
		return nil, err
	}
	query.Pin, query.Snapshot = false, part.snapshot
	return &ask{Query: query, text: part.query, part: part}, nil
}

// askOfDescriptor reads the descriptor of a GetFlightInfo or GetSchema.
func (s *Server) askOfDescriptor(descriptor *flight.FlightDescriptor) (*ask, error) {
	switch descriptor.GetType() {
	case flight.DescriptorPATH:
		name, err := tableOfPath(descriptor.GetPath())
		if err != nil {
			return nil, err
		}
		return &ask{Query: request.Whole(name.String()), text: []byte(name.String())}, nil
	case flight.DescriptorCMD:
		if isTicket(descriptor.GetCmd()) {
			return s.askOfTicket(descriptor.GetCmd())
		}
		query, err := parseQuery(descriptor.GetCmd())
		return &ask{Query: query, text: descriptor.GetCmd()}, err
	}
	return nil, fault.Invalid("DESCRIPTOR_INVALID", "the call has no descriptor: give a path [\"table\"] or a command {\"table\": …}")
}

// tableOfPath is the table that a descriptor's path names.
func tableOfPath(path []string) (shards.Name, error) {
	if len(path) != 1 && len(path) != 2 {
		return shards.Name{}, fault.Invalid("DESCRIPTOR_INVALID", `a descriptor's path is ["table"], ["namespace", "table"] or ["namespace.table"], not %d elements`, len(path))
	}
	if len(path) == 2 && strings.Contains(path[0], ".") {
		return shards.Name{}, fault.Invalid("NAME_INVALID", "%.300q is no namespace: it holds a dot", path[0])
	}
	return shards.ParseName(strings.Join(path, "."))
}

const flightSQLPrefix = "arrow.flight.protocol.sql"

// parseQuery tells apart what the bytes of a ticket or command may be.
func parseQuery(raw []byte) (*request.Query, error) {
	if isFlightSQL(raw) {
		return nil, fault.New(fault.Unimplemented, "NOT_IMPLEMENTED", "Flight SQL is not implemented by this version: send a JSON query")
	}
	text := bytes.TrimLeft(raw, " \t\r\n")
	if len(text) > 0 && text[0] == '{' {
		return request.ParseQuery(text)
	}
	if len(raw) > limits.QueryBytes {
		return nil, fault.New(fault.ResourceExhausted, "QUERY_TOO_LARGE", "the query has %d bytes; the limit is %d (1 MiB)", len(raw), limits.QueryBytes)
	}
	text = bytes.TrimRight(text, " \t\r\n")
	if len(text) == 0 {
		return nil, fault.Invalid("TICKET_INVALID", "the ticket or command is empty: send a JSON query {\"table\": …}, or a table's name")
	}
	if name, err := shards.ParseName(string(text)); err == nil {
		return request.Whole(name.String()), nil
	}
	if !utf8.Valid(text) {
		return nil, fault.Invalid("TICKET_INVALID", "the ticket or command is neither JSON, nor a table's name, nor a ticket of this server")
	}
	if isSelect(text) {
		return nil, fault.New(fault.Unimplemented, "NOT_IMPLEMENTED", "SQL is not implemented by this version: send a JSON query {\"table\": …, \"where\": …}")
	}
	return nil, fault.Invalid("TICKET_INVALID", "%q is neither a JSON query {\"table\": …} nor the name of a table", clip(string(text), 100))
}

// isSelect reports whether text begins with the word SELECT.
func isSelect(text []byte) bool {
	const word = "select"
	if len(text) < len(word) || !strings.EqualFold(string(text[:len(word)]), word) {
		return false
	}
	if len(text) == len(word) {
		return true
	}
	c := text[len(word)]
	return c < utf8.RuneSelf && c != '_' && !(c >= '0' && c <= '9') && !(c|0x20 >= 'a' && c|0x20 <= 'z')
}

// isFlightSQL reports whether the bytes are a protobuf Any of Flight SQL.
func isFlightSQL(raw []byte) bool {
	if !bytes.Contains(raw[:min(len(raw), 256)], []byte(flightSQLPrefix)) {
		return false
	}
	var message anypb.Any
	return proto.Unmarshal(raw, &message) == nil && strings.Contains(message.GetTypeUrl(), flightSQLPrefix)
}
