package flight

import (
	"context"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/go-json-experiment/json"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/pushdown"
	"github.com/sheaf-db/sheaf/request"
	"github.com/sheaf-db/sheaf/shards"
	"github.com/sheaf-db/sheaf/shards/run"
)

// GetSchema is the schema that DoGet of the same descriptor streams.
func (s *Server) GetSchema(_ context.Context, descriptor *flight.FlightDescriptor) (*flight.SchemaResult, error) {
	a, err := s.askOfDescriptor(descriptor)
	if err != nil {
		return nil, err
	}
	r, err := s.open(a)
	if err != nil {
		return nil, err
	}
	defer r.close()
	return &flight.SchemaResult{Schema: s.schemaMessage(r.result)}, nil
}

// GetFlightInfo plans a query and hands out its tickets.
func (s *Server) GetFlightInfo(ctx context.Context, descriptor *flight.FlightDescriptor) (info *flight.FlightInfo, err error) {
	a, err := s.askOfDescriptor(descriptor)
	if err != nil {
		return nil, err
	}
	if isTicket(descriptor.GetCmd()) {
		return nil, fault.Invalid("DESCRIPTOR_INVALID", "the command is a ticket: redeem it by DoGet")
	}
	r, err := s.open(a)
	if err != nil {
		return nil, err
	}
	defer r.close()
	if a.Snapshot == "" && (a.Pin || !a.Split.One()) {
		pin, err := r.snapshot.Pin(s.snapshotTTL)
		if err != nil {
			return nil, err
		}
		defer func() {
			if info == nil {
				_ = s.store.Unpin(pin.ID) // it may have been released meanwhile
			}
		}()
		a.Snapshot, r.pin = pin.ID, &pin
	}
	return s.info(ctx, descriptor, a, r)
}

// planText is a FlightInfo's app_metadata.
type planText struct {
	pushdown.Report
	Snapshot string `json:"snapshot,omitzero"`
}

// endpointText is an endpoint's app_metadata.
type endpointText struct {
	Slice         *int   `json:"slice"`
	Slices        int    `json:"slices"`
	RowsEstimate  uint64 `json:"rows_estimate"`
	BytesEstimate uint64 `json:"bytes_estimate"`
}

func (s *Server) info(ctx context.Context, descriptor *flight.FlightDescriptor, a *ask, r *read) (*flight.FlightInfo, error) {
	text, err := json.Marshal(planText{r.report(), a.Snapshot})
	if err != nil {
		return nil, err
	}
	info := &flight.FlightInfo{
		FlightDescriptor: descriptor,
		Schema:           s.schemaMessage(r.result),
		Ordered:          a.Order != request.OrderAny,
		TotalRecords:     r.knownRows(),
		TotalBytes:       -1,
		AppMetadata:      text,
	}
	parts, err := s.parts(ctx, a, r)
	if err != nil {
		return nil, err
	}
	expires := timestamppb.New(time.Now().Add(s.snapshotTTL))
	if r.pin != nil {
		expires = timestamppb.New(r.pin.Expires)
	}
	total := uint64(0)
	for _, part := range parts {
		estimate := endpointText{Slices: r.schema.Slices}
		if a.Split.Slices && len(part.slices) == 1 {
			estimate.Slice = &part.slices[0]
		}
		if !r.plan.Empty() {
			ranges := part.ranges
			if ranges == nil {
				ranges = r.ranges(part.slices)
			}
			if estimate.RowsEstimate, estimate.BytesEstimate, err = r.snapshot.Estimate(ctx, ranges); err != nil {
				return nil, err
			}
		}
		total += estimate.BytesEstimate
		text, err := json.Marshal(estimate)
		if err != nil {
			return nil, err
		}
		info.Endpoint = append(info.Endpoint, &flight.FlightEndpoint{
			Ticket: &flight.Ticket{Ticket: s.ticketBytes(part)}, ExpirationTime: expires, AppMetadata: text,
		})
	}
	info.TotalBytes = int64(total)
	return info, nil
}

// ticketBytes: what is small and says it all by itself stays as the client sent
// it, so that it can be read.
func (s *Server) ticketBytes(part ticket) []byte {
	if part.snapshot == "" && part.kept == "" && part.slices == nil && part.ranges == nil && len(part.query) <= limits.TicketBytes {
		return part.query
	}
	return part.encode(s.kept)
}

// sharedQuery: a longer query is kept on the server once where several tickets
// need it, so that a FlightInfo of many endpoints stays small.
const sharedQuery = 256

// parts cuts a read into its endpoints.
func (s *Server) parts(ctx context.Context, a *ask, r *read) ([]ticket, error) {
	all := ticket{query: a.text, snapshot: a.Snapshot}
	if a.Split.One() {
		return []ticket{all}, nil
	}
	if r.plan.Empty() {
		all.slices = []int{}
		return []ticket{all}, nil
	}
	if len(a.text) > sharedQuery {
		all.query, all.kept = nil, s.kept.keep(a.text)
	}
	var parts []ticket
	if a.Split.Slices {
		for _, slice := range r.plan.Slices {
			part := all
			part.slices = []int{slice}
			parts = append(parts, part)
		}
		return parts, nil
	}
	cuts, err := r.snapshot.Cuts(ctx, r.ranges(nil), a.Split.Count)
	if err != nil {
		return nil, err
	}
	for _, ranges := range cuts {
		part := all
		part.ranges = ranges
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		all.ranges = []run.Range{}
		parts = append(parts, all)
	}
	return parts, nil
}

// ranges are the plan's ranges in the given slices (nil: in all of its own);
// nil is everything.
func (r *read) ranges(only []int) []run.Range {
	if only == nil {
		if len(r.plan.Slices) == r.schema.Slices {
			return r.plan.Ranges
		}
		only = r.plan.Slices
	}
	return within(r.plan.Ranges, only)
}

// knownRows is the exact number of rows, if it is known without scanning, else
// -1.
func (r *read) knownRows() int64 {
	rows := int64(-1)
	switch {
	case r.plan.Empty(), r.query.Limit == 0:
		return 0
	case r.query.Keys != nil:
		return -1
	case r.whole():
		if count, exact := r.snapshot.Rows(); exact {
			rows = int64(count)
		}
	}
	if rows >= 0 && r.query.Limit >= 0 {
		rows = min(rows, r.query.Limit)
	}
	return rows
}

// report is what Explain says about the plan.
func (r *read) report() pushdown.Report {
	columns := make([]string, r.result.NumFields())
	for i, field := range r.result.Fields() {
		columns[i] = field.Name
	}
	return r.plan.Report(r.table.Name().String(), columns)
}

// ListFlights lists the tables whose name begins with the criteria.
func (s *Server) ListFlights(criteria *flight.Criteria, stream flight.FlightService_ListFlightsServer) error {
	for _, table := range s.store.Tables(string(criteria.GetExpression())) {
		info, err := s.tableInfo(stream.Context(), table)
		if fault.Is(err, "TABLE_NOT_FOUND") {
			continue // dropped since the list was made
		}
		if err != nil {
			return err
		}
		if err := stream.Send(info); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) tableInfo(ctx context.Context, table *shards.Table) (*flight.FlightInfo, error) {
	name := table.Name()
	path := []string{name.Table}
	if name.Namespace != shards.DefaultNamespace {
		path = []string{name.Namespace, name.Table}
	}
	a := &ask{Query: request.Whole(name.String()), text: []byte(name.String())}
	r, err := s.open(a)
	if err != nil {
		return nil, err
	}
	defer r.close()
	return s.info(ctx, &flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: path}, a, r)
}
