package flight

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/sheaf-db/sheaf/limits"
)

// redeemed are the sorted rows of all endpoints.
func (w *world) redeemed(info *flight.FlightInfo) []string {
	w.t.Helper()
	rows := []string{}
	for _, endpoint := range info.GetEndpoint() {
		require.LessOrEqual(w.t, len(endpoint.GetTicket().GetTicket()), limits.TicketBytes)
		require.Empty(w.t, endpoint.GetLocation())
		require.True(w.t, endpoint.GetExpirationTime().AsTime().After(time.Now()))
		read, err := w.get(endpoint.GetTicket().GetTicket())
		require.NoError(w.t, err)
		rows = append(rows, read.rows...)
	}
	slices.Sort(rows)
	return rows
}

func sorted(rows []string) []string { slices.Sort(rows); return rows }

func TestEndpointsAreDisjointCompleteAndOfOneMoment(t *testing.T) {
	w := newWorld(t, Options{})
	w.putTrips("t", trips(40, 100))
	whole := sorted(w.rows("t"))
	some := sorted(w.rows(`{"table":"t","where":[["k","in",["k01","k02","k01"]],["v",">",50]]}`))
	for _, test := range []struct {
		query string
		rows  []string
		least int
	}{
		{`{"table":"t"}`, whole, 1},
		{`{"table":"t","snapshot":true}`, whole, 1},
		{`{"table":"t","endpoints":"slices"}`, whole, 16},
		{`{"table":"t","endpoints":4}`, whole, 1},
		{`{"table":"t","endpoints":1}`, whole, 1},
		{`{"table":"t","endpoints":"slices","columns":["k","s","v"]` + strings.Repeat(" ", 10_000) + `}`, whole, 16},
		{`{"table":"t","where":[["k","in",["k01","k02","k01"]],["v",">",50]],"endpoints":"slices"}`, some, 1},
		{`{"table":"t","where":[["k","in",["k01","k02","k01"]],["v",">",50]],"endpoints":3}`, some, 1},
		{`{"table":"t","where":[["k","=","none"],["k","=","nothing"]],"endpoints":"slices"}`, []string{}, 1},
	} {
		info := w.info(test.query)
		require.GreaterOrEqual(t, len(info.GetEndpoint()), test.least, test.query)
		require.Equal(t, test.query, string(info.GetFlightDescriptor().GetCmd()))
		require.Equal(t, test.rows, w.redeemed(info), test.query)
		var metadata map[string]any
		require.NoError(t, json.Unmarshal(info.GetAppMetadata(), &metadata))
		require.Equal(t, "t", metadata["table"])
	}

	pinned := w.info(`{"table":"t","endpoints":"slices"}`)
	first, err := w.get(pinned.GetEndpoint()[0].GetTicket().GetTicket())
	require.NoError(t, err)
	w.acts("Delete", `{"table":"t","where":[["s","<",50]]}`)
	w.putTrips("t", `[{"k":"k01","s":7,"v":-1},{"k":"new","s":1,"v":-1}]`)
	w.acts("Fold", `{"table":"t"}`)
	again, err := w.get(pinned.GetEndpoint()[0].GetTicket().GetTicket())
	require.NoError(t, err)
	require.Equal(t, first.rows, again.rows)
	require.Equal(t, whole, w.redeemed(pinned))
	require.Len(t, w.rows("t"), 40*50+2)
}

func TestInfoSaysWhatIsKnown(t *testing.T) {
	w := newWorld(t, Options{})
	w.put("t", tripsSchema, []string{}, nil, trips(1, 30))
	for query, want := range map[string]int64{
		`{"table":"t"}`:                          30,
		`{"table":"t","limit":7}`:                7,
		`{"table":"t","limit":0}`:                0,
		`{"table":"t","where":[["v","=",1]]}`:    -1,
		`{"table":"t","where":[["v","in",[]]]}`:  0,
		`{"table":"t","order":"desc"}`:           30,
		`{"table":"t","columns":[],"limit":100}`: 30,
	} {
		info := w.info(query)
		require.Equal(t, want, info.GetTotalRecords(), query)
		require.Equal(t, strings.Contains(query, "order"), info.GetOrdered(), query)
	}
}

func TestLargeQueriesStayOnTheServer(t *testing.T) {
	w := newWorld(t, Options{})
	w.putTrips("t", trips(40, 2))
	keys := make([]string, 2000)
	for i := range keys {
		keys[i] = fmt.Sprintf("%q", fmt.Sprintf("k%02d", i))
	}
	query := fmt.Sprintf(`{"table":"t","where":[["k","in",[%s]]]}`, strings.Join(keys, ","))
	info := w.info(query)
	ticket := info.GetEndpoint()[0].GetTicket().GetTicket()
	require.Equal(t, sorted(w.rows("t")), w.redeemed(info))
	require.Equal(t, sorted(w.rows("t")), w.redeemed(info), "more than once")

	body, err := proto.Marshal(&flight.CancelFlightInfoRequest{Info: info})
	require.NoError(t, err)
	require.Equal(t, flight.CancelStatusCancelled, w.cancel(body))
	_, err = w.get(ticket)
	fails(t, err, codes.NotFound, "TICKET_EXPIRED")
}

func (w *world) cancel(body []byte) flight.CancelStatus {
	stream, err := w.client.DoAction(w.t.Context(), &flight.Action{Type: flight.CancelFlightInfoActionType, Body: body})
	require.NoError(w.t, err)
	result, err := stream.Recv()
	require.NoError(w.t, err)
	var cancelled flight.CancelFlightInfoResult
	require.NoError(w.t, proto.Unmarshal(result.GetBody(), &cancelled))
	return cancelled.GetStatus()
}

func TestSnapshotsAreRenewedAndReleased(t *testing.T) {
	w := newWorld(t, Options{})
	w.putTrips("t", trips(1, 3))
	info := w.info(`{"table":"t","snapshot":true}`)
	var metadata struct{ Snapshot string }
	require.NoError(t, json.Unmarshal(info.GetAppMetadata(), &metadata))
	require.NotEmpty(t, metadata.Snapshot)
	w.putTrips("t", trips(2, 3))
	require.Len(t, w.rows(fmt.Sprintf(`{"table":"t","snapshot":%q}`, metadata.Snapshot)), 3)
	require.Len(t, w.acts("Stats", `{"table":"t"}`)["snapshots"], 1)

	renewed := w.acts("RenewSnapshot", fmt.Sprintf(`{"snapshot":%q}`, metadata.Snapshot))
	require.Equal(t, metadata.Snapshot, renewed["snapshot"])
	body, err := proto.Marshal(&flight.RenewFlightEndpointRequest{Endpoint: info.GetEndpoint()[0]})
	require.NoError(t, err)
	stream, err := w.client.DoAction(t.Context(), &flight.Action{Type: flight.RenewFlightEndpointActionType, Body: body})
	require.NoError(t, err)
	result, err := stream.Recv()
	require.NoError(t, err)
	var endpoint flight.FlightEndpoint
	require.NoError(t, proto.Unmarshal(result.GetBody(), &endpoint))
	require.Equal(t, info.GetEndpoint()[0].GetTicket().GetTicket(), endpoint.GetTicket().GetTicket())
	require.False(t, endpoint.GetExpirationTime().AsTime().Before(info.GetEndpoint()[0].GetExpirationTime().AsTime()))

	require.Empty(t, w.acts("ReleaseSnapshot", fmt.Sprintf(`{"snapshot":%q}`, metadata.Snapshot)))
	_, err = w.get(info.GetEndpoint()[0].GetTicket().GetTicket())
	fails(t, err, codes.NotFound, "SNAPSHOT_NOT_FOUND")
	_, err = w.act("RenewSnapshot", fmt.Sprintf(`{"snapshot":%q}`, metadata.Snapshot))
	fails(t, err, codes.NotFound, "SNAPSHOT_NOT_FOUND")
}

func TestDroppedTablesTakeTheirTicketsAlong(t *testing.T) {
	w := newWorld(t, Options{})
	w.putTrips("t", trips(1, 3))
	pinned := w.info(`{"table":"t","snapshot":true}`).GetEndpoint()[0].GetTicket().GetTicket()
	plain := w.info(`{"table":"t"}`).GetEndpoint()[0].GetTicket().GetTicket()
	w.acts("DropTable", `{"table":"t"}`)
	for _, ticket := range [][]byte{pinned, plain} {
		_, err := w.get(ticket)
		fails(t, err, codes.NotFound, "TABLE_NOT_FOUND")
	}
	w.putTrips("t", trips(1, 5))
	_, err := w.get(pinned)
	fails(t, err, codes.NotFound, "SNAPSHOT_NOT_FOUND")
}

func TestListFlightsByPrefix(t *testing.T) {
	w := newWorld(t, Options{})
	for _, table := range []string{"trips", "trains", "town.trips", "a.b"} {
		w.putTrips(table, trips(1, 2))
	}
	for prefix, want := range map[string][]string{
		"": {"a.b", "town.trips", "trains", "trips"}, "tr": {"trains", "trips"}, "t": {"town.trips", "trains", "trips"},
		"town.": {"town.trips"}, "x": {}, "trips": {"trips"},
	} {
		stream, err := w.client.ListFlights(t.Context(), &flight.Criteria{Expression: []byte(prefix)})
		require.NoError(t, err)
		got := []string{}
		for {
			info, err := stream.Recv()
			if err == io.EOF {
				break
			}
			require.NoError(t, err)
			got = append(got, strings.Join(info.GetFlightDescriptor().GetPath(), "."))
			require.Len(t, w.redeemed(info), 2)
		}
		require.Equal(t, want, sorted(got), prefix)
	}
}
