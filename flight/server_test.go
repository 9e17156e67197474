package flight

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/sheaf-db/sheaf/ingest"
	"github.com/sheaf-db/sheaf/shards"
)

// world is a server on an in-memory store, and a client of it with gRPC's
// default message limit. Unless the options bring an allocator, Arrow memory is
// checked when the test ends.
type world struct {
	t          *testing.T
	store      *shards.Store
	server     *Server
	client     flight.Client
	connection *grpc.ClientConn
	dial       func() *grpc.ClientConn // one more connection
}

func newWorld(t *testing.T, o Options) *world {
	t.Helper()
	return newWorldOn(t, vfs.NewMem(), o)
}

// newWorldOn opens the store of a file system.
func newWorldOn(t *testing.T, files vfs.FS, o Options) *world {
	t.Helper()
	check := func() {}
	if o.Allocator == nil {
		allocator := memory.NewCheckedAllocator(memory.NewGoAllocator())
		o.Allocator, check = allocator, func() {
			// A goroutine that receives ends a moment after its call.
			assert.Eventually(t, func() bool { return allocator.CurrentAlloc() == 0 }, 5*time.Second, time.Millisecond)
			allocator.AssertSize(t, 0)
		}
	}
	store, err := shards.Open(t.Context(), "store", shards.Options{FS: files, FoldConcurrency: -1})
	require.NoError(t, err)
	w := &world{t: t, store: store, server: New(store, o)}
	w.server.scanMemory = poisoned{o.Allocator}
	listener := bufconn.Listen(1 << 20)
	served := make(chan error, 1)
	go func() { served <- w.server.Serve(listener) }()
	w.dial = func() *grpc.ClientConn {
		connection, err := grpc.NewClient("passthrough:bufconn", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
		require.NoError(t, err)
		return connection
	}
	w.connection = w.dial()
	w.client = flight.NewClientFromConn(w.connection, nil)
	t.Cleanup(func() {
		require.NoError(t, w.connection.Close())
		w.server.Stop(context.Background())
		require.NoError(t, <-served)
		require.NoError(t, store.Close())
		check()
	})
	return w
}

var tripsSchema = arrow.NewSchema([]arrow.Field{
	{Name: "k", Type: arrow.BinaryTypes.String},
	{Name: "s", Type: arrow.PrimitiveTypes.Int64},
	{Name: "v", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
}, nil)

// put writes rows, given as a JSON list of objects, as one commit.
func (w *world) put(table string, schema *arrow.Schema, sharding, sorting []string, rows string) {
	w.t.Helper()
	name, err := shards.ParseName(table)
	require.NoError(w.t, err)
	batch, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(rows))
	require.NoError(w.t, err)
	writer, err := ingest.Open(w.t.Context(), w.store, ingest.Target{Name: name, Keys: ingest.Keys{Sharding: sharding, Sorting: sorting}}, schema, ingest.Options{})
	require.NoError(w.t, err)
	require.NoError(w.t, writer.Write(w.t.Context(), []arrow.RecordBatch{batch}))
	require.NoError(w.t, writer.Finish(w.t.Context()))
}

// putTrips writes rows k, s, v.
func (w *world) putTrips(table, rows string) {
	w.t.Helper()
	w.put(table, tripsSchema, []string{"k"}, []string{"s"}, rows)
}

// trips is rows of keys a, b, … with s from 0, and v = s.
func trips(keys, rows int) string {
	var list []string
	for k := range keys {
		for s := range rows {
			list = append(list, fmt.Sprintf(`{"k":"k%02d","s":%d,"v":%d}`, k, s, s))
		}
	}
	return "[" + strings.Join(list, ",") + "]"
}

// answer is what one DoGet gave.
type answerRead struct {
	schema   *arrow.Schema
	rows     []string // values joined by a blank
	messages []int    // rows of each
	metadata []string // app_metadata of each
}

func (w *world) get(ticket []byte) (answerRead, error) {
	stream, err := w.client.DoGet(w.t.Context(), &flight.Ticket{Ticket: ticket})
	if err != nil {
		return answerRead{}, err
	}
	reader, err := flight.NewRecordReader(stream)
	if err != nil {
		return answerRead{}, err
	}
	defer reader.Release()
	read := answerRead{schema: reader.Schema(), rows: []string{}}
	for {
		batch, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return read, nil
		}
		if err != nil {
			return read, err
		}
		read.messages = append(read.messages, int(batch.NumRows()))
		read.metadata = append(read.metadata, string(reader.LatestAppMetadata()))
		for row := range int(batch.NumRows()) {
			values := make([]string, batch.NumCols())
			for i, column := range batch.Columns() {
				values[i] = column.ValueStr(row)
			}
			read.rows = append(read.rows, strings.Join(values, " "))
		}
	}
}

// rows are the rows of a query that must succeed.
func (w *world) rows(query string) []string {
	w.t.Helper()
	read, err := w.get([]byte(query))
	require.NoError(w.t, err, query)
	return read.rows
}

// fails asserts code and reason of an error, and that all places agree on it.
func fails(t *testing.T, err error, code codes.Code, reason string) {
	t.Helper()
	require.Error(t, err)
	s, ok := status.FromError(err)
	require.True(t, ok, err)
	require.Equal(t, code, s.Code(), s.Message())
	require.True(t, strings.HasPrefix(s.Message(), "["+reason+"] "), s.Message())
	require.Len(t, s.Details(), 1)
	info, ok := s.Details()[0].(*errdetails.ErrorInfo)
	require.True(t, ok)
	require.Equal(t, "sheaf", info.Domain)
	require.Equal(t, reason, info.Reason)
}

// act runs an action and decodes its answer.
func (w *world) act(kind, body string) (map[string]any, error) {
	w.t.Helper()
	stream, err := w.client.DoAction(w.t.Context(), &flight.Action{Type: kind, Body: []byte(body)})
	require.NoError(w.t, err)
	result, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	_, err = stream.Recv()
	require.ErrorIs(w.t, err, io.EOF, "an action has one result")
	answer := map[string]any{}
	require.NoError(w.t, json.Unmarshal(result.GetBody(), &answer))
	return answer, nil
}

func (w *world) acts(kind, body string) map[string]any {
	w.t.Helper()
	answer, err := w.act(kind, body)
	require.NoError(w.t, err, "%s %s", kind, body)
	return answer
}

func (w *world) info(query string) *flight.FlightInfo {
	w.t.Helper()
	info, err := w.client.GetFlightInfo(w.t.Context(), &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: []byte(query)})
	require.NoError(w.t, err, query)
	return info
}
