package flight

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/request"
	"github.com/sheaf-db/sheaf/shards/run"
)

func TestTicketsKeepWhatTheyWereMadeOf(t *testing.T) {
	kept := newKeptQueries(time.Minute)
	for _, made := range []ticket{
		{query: []byte("t")},
		{query: []byte(`{"table":"t"}`), snapshot: "s1"},
		{query: []byte("t"), slices: []int{}},
		{query: []byte("t"), slices: []int{0, 7, 1023}},
		{query: []byte("t"), ranges: []run.Range{}},
		{query: []byte("t"), snapshot: "s", ranges: []run.Range{{Slice: -1}, {Slice: 3, Low: []byte{}, High: []byte{0, 255}}}},
		{query: []byte(`{"table":"t","where":[["v","=","` + strings.Repeat("x", 10_000) + `"]]}`), snapshot: "s2"},
	} {
		raw := made.encode(kept)
		require.LessOrEqual(t, len(raw), limits.TicketBytes)
		require.True(t, isTicket(raw))
		opened, err := openTicket(raw, kept)
		require.NoError(t, err)
		require.Equal(t, made, opened)
	}
}

func TestTicketsShareAKeptQuery(t *testing.T) {
	kept := newKeptQueries(time.Minute)
	id := kept.keep([]byte("query"))
	many := make([]run.Range, 1000)
	for i := range many {
		many[i] = run.Range{Slice: i, Low: []byte("low"), High: []byte("that is high")}
	}
	for _, ranges := range [][]run.Range{{{Slice: 1}}, many} {
		raw := ticket{kept: id, ranges: ranges}.encode(kept)
		require.LessOrEqual(t, len(raw), limits.TicketBytes)
		opened, err := openTicket(raw, kept)
		require.NoError(t, err)
		require.Equal(t, ticket{query: []byte("query"), ranges: ranges}, opened)
	}
}

func TestChangedTicketsAreRefused(t *testing.T) {
	kept := newKeptQueries(time.Minute)
	raw := ticket{query: []byte("t"), snapshot: "s", slices: []int{1}}.encode(kept)
	for at := len(ticketMagic); at < len(raw); at++ {
		changed := bytes.Clone(raw)
		changed[at] ^= 1
		_, err := openTicket(changed, kept)
		require.True(t, fault.Is(err, "TICKET_INVALID"), at)
	}
	for cut := len(ticketMagic); cut < len(raw); cut++ {
		_, err := openTicket(raw[:cut], kept)
		require.True(t, fault.Is(err, "TICKET_INVALID"), cut)
	}
}

func TestKeptQueriesLiveFromTheirLastUse(t *testing.T) {
	kept := newKeptQueries(time.Minute)
	now := time.Now()
	kept.now = func() time.Time { return now }
	id := kept.keep([]byte("q"))
	now = now.Add(50 * time.Second)
	_, err := kept.use(id)
	require.NoError(t, err)
	now = now.Add(50 * time.Second)
	text, err := kept.use(id)
	require.NoError(t, err)
	require.Equal(t, "q", string(text))
	now = now.Add(61 * time.Second)
	_, err = kept.use(id)
	require.True(t, fault.Is(err, "TICKET_EXPIRED"))
	require.Equal(t, fault.NotFound, fault.Of(err).Kind)
	require.Zero(t, kept.bytes)
}

func TestKeptQueriesAreBounded(t *testing.T) {
	kept := newKeptQueries(time.Minute)
	first := kept.keep(make([]byte, 1<<20))
	for range keptBytes >> 20 {
		kept.keep(make([]byte, 1<<20))
	}
	require.LessOrEqual(t, kept.bytes, keptBytes)
	_, err := kept.use(first)
	require.True(t, fault.Is(err, "TICKET_EXPIRED"))
}

func TestWhatATicketsBytesMayBe(t *testing.T) {
	for text, want := range map[string]*request.Query{
		"trips":                request.Whole("trips"),
		" \n trips\n":          request.Whole("trips"),
		"a.b":                  request.Whole("a.b"),
		"main.b":               request.Whole("b"),
		" \t{\"table\":\"x\"}": request.Whole("x"),
	} {
		query, err := parseQuery([]byte(text))
		require.NoError(t, err, text)
		require.Equal(t, want, query, text)
	}
	sql, err := proto.Marshal(&anypb.Any{TypeUrl: "type.googleapis.com/arrow.flight.protocol.sql.CommandStatementQuery", Value: []byte{10, 1, 'x'}})
	require.NoError(t, err)
	foreign, err := anypb.New(durationpb.New(time.Second))
	require.NoError(t, err)
	foreignBytes, err := proto.Marshal(foreign)
	require.NoError(t, err)
	for text, reason := range map[string]string{
		"":                       "TICKET_INVALID",
		"  ":                     "TICKET_INVALID",
		"a.b.c":                  "TICKET_INVALID",
		"no such thing":          "TICKET_INVALID",
		"\x80\x81\x82\xff":       "TICKET_INVALID",
		string(foreignBytes):     "TICKET_INVALID",
		"selection of":           "TICKET_INVALID",
		"SELECT * FROM t":        "NOT_IMPLEMENTED",
		"select\n*":              "NOT_IMPLEMENTED",
		string(sql):              "NOT_IMPLEMENTED",
		`{"table":5}`:            "FIELD_INVALID",
		ticketMagic + "whatever": "TICKET_INVALID",
	} {
		_, err := parseQuery([]byte(text))
		require.True(t, fault.Is(err, reason), "%q: %v", text, err)
	}
}

func TestMarkersAreBound(t *testing.T) {
	key := []byte{0, 1, 255, 'x'}
	text := markerText(request.OrderAsc, 7, key)
	got, err := readMarker(text, request.OrderAsc, 7)
	require.NoError(t, err)
	require.Equal(t, key, got)

	_, err = readMarker(text, request.OrderDesc, 7)
	require.ErrorContains(t, err, "other order")
	_, err = readMarker(text, request.OrderAsc, 8)
	require.ErrorContains(t, err, "another table")
	for at := range text {
		for _, with := range []byte{'A', 'b', '_', '='} {
			changed := []byte(text)
			if changed[at] == with {
				continue
			}
			changed[at] = with
			_, err := readMarker(string(changed), request.OrderAsc, 7)
			require.True(t, fault.Is(err, "MARKER_INVALID"), "%d %c", at, with)
		}
	}
}

func TestRangesOfTicketsAreChecked(t *testing.T) {
	b := func(text string) []byte { return []byte(text) }
	for _, test := range []struct {
		ranges []run.Range
		ok     bool
	}{
		{nil, true},
		{[]run.Range{{Slice: -1, Low: b("a"), High: b("b")}, {Slice: -1, Low: b("b")}}, true},
		{[]run.Range{{Slice: 3, High: b("b")}, {Slice: 2, Low: b("a")}}, true},
		{[]run.Range{{Slice: 4}}, false},
		{[]run.Range{{Slice: -2}}, false},
		{[]run.Range{{Slice: 1, Low: b("b"), High: b("b")}}, false},
		{[]run.Range{{Slice: 1, Low: b("b")}, {Slice: 1, Low: b("c")}}, false},
		{[]run.Range{{Slice: 1, Low: b("b"), High: b("d")}, {Slice: 1, Low: b("c")}}, false},
		{[]run.Range{{Slice: -1}, {Slice: 1}}, false},
	} {
		require.Equal(t, test.ok, ordered(test.ranges, 4), "%v", test.ranges)
	}
}

// Whatever bytes a ticket, command or marker has, the answer is a query or a
// fault.
func FuzzTicket(f *testing.F) {
	kept := newKeptQueries(time.Minute)
	f.Add(ticket{query: []byte("t"), snapshot: "s", slices: []int{1}, ranges: []run.Range{{Slice: 2, Low: []byte("a")}}}.append([]byte(ticketMagic)))
	f.Add([]byte(`{"table":"t"}`))
	f.Add([]byte("SELECT"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, body := range [][]byte{raw, sealed("ticket", append([]byte(ticketMagic), raw...))} {
			var err error
			if isTicket(body) {
				_, err = openTicket(body, kept)
			} else {
				_, err = parseQuery(body)
			}
			if err != nil && fault.Of(err) == nil {
				t.Fatalf("not a fault: %v", err)
			}
		}
		if _, err := readMarker(string(raw), request.OrderAsc, 1); err != nil && fault.Of(err) == nil {
			t.Fatalf("not a fault: %v", err)
		}
	})
}
