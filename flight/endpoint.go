package flight

import (
	"context"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sheaf-db/sheaf/fault"
)

// renewEndpoint is Flight's own action RenewFlightEndpoint: what the ticket
// keeps, a snapshot or a query, lives on.
func (s *Server) renewEndpoint(_ context.Context, body []byte) ([]byte, error) {
	var renew flight.RenewFlightEndpointRequest
	if err := proto.Unmarshal(body, &renew); err != nil {
		return nil, fault.Invalid("REQUEST_INVALID", "the body is not a RenewFlightEndpointRequest: %v", err)
	}
	raw := renew.GetEndpoint().GetTicket().GetTicket()
	if len(raw) == 0 {
		return nil, errNoTicket
	}
	expires := time.Now().Add(s.snapshotTTL)
	if isTicket(raw) {
		opened, err := openTicket(raw, s.kept)
		if err != nil {
			return nil, err
		}
		if opened.snapshot != "" {
			pin, err := s.store.Renew(opened.snapshot)
			if err != nil {
				return nil, err
			}
			expires = pin.Expires
		}
	}
	endpoint := renew.GetEndpoint()
	endpoint.ExpirationTime = timestamppb.New(expires)
	return proto.Marshal(endpoint)
}

// cancelInfo is Flight's own action CancelFlightInfo: snapshots and queries that
// the tickets keep are given up.
func (s *Server) cancelInfo(_ context.Context, body []byte) ([]byte, error) {
	var cancel flight.CancelFlightInfoRequest
	if err := proto.Unmarshal(body, &cancel); err != nil {
		return nil, fault.Invalid("REQUEST_INVALID", "the body is not a CancelFlightInfoRequest: %v", err)
	}
	status := flight.CancelStatusNotCancellable
	released := map[string]bool{}
	for _, endpoint := range cancel.GetInfo().GetEndpoint() {
		raw := endpoint.GetTicket().GetTicket()
		if !isTicket(raw) {
			continue // a query as text keeps nothing
		}
		opened, err := decodeTicket(raw)
		if err != nil {
			return nil, err
		}
		status = flight.CancelStatusCancelled
		s.kept.drop(opened.kept)
		if id := opened.snapshot; id != "" && !released[id] {
			released[id] = true
			// Released or expired already is as good.
			if err := s.store.Unpin(id); err != nil && !fault.Is(err, "SNAPSHOT_NOT_FOUND") {
				return nil, err
			}
		}
	}
	return proto.Marshal(&flight.CancelFlightInfoResult{Status: status})
}
