package flight_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	arrowflight "github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/sheaf-db/sheaf/flight"
	"github.com/sheaf-db/sheaf/shards"
)

// A server on a store, and what any Arrow Flight client does with it: write
// batches, which makes the table, and read a filter's rows back in key order.
func ExampleServer() {
	ctx := context.Background()
	store, err := shards.Open(ctx, "store", shards.Options{FS: vfs.NewMem()})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server := flight.New(store, flight.Options{})
	go func() { _ = server.Serve(listener) }()
	defer server.Stop(ctx)

	client, err := arrowflight.NewClientWithMiddleware(listener.Addr().String(), nil, nil, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	schema := arrow.NewSchema([]arrow.Field{
		{Name: "device", Type: arrow.BinaryTypes.String},
		{Name: "at", Type: arrow.PrimitiveTypes.Int64},
		{Name: "value", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	}, nil)
	batch, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(`[
		{"device": "d7", "at": 2, "value": 0.5}, {"device": "d9", "at": 1, "value": 3}, {"device": "d7", "at": 1, "value": null}]`))
	if err != nil {
		log.Fatal(err)
	}
	put, err := client.DoPut(ctx)
	if err != nil {
		log.Fatal(err)
	}
	writer := arrowflight.NewRecordWriter(put, ipc.WithSchema(schema))
	writer.SetFlightDescriptor(&arrowflight.FlightDescriptor{
		Type: arrowflight.DescriptorCMD,
		Cmd:  []byte(`{"table": "readings", "sharding_key": ["device"], "sorting_key": ["at"]}`),
	})
	if err := writer.Write(batch); err != nil {
		log.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		log.Fatal(err)
	}
	if err := put.CloseSend(); err != nil {
		log.Fatal(err)
	}
	for {
		if _, err := put.Recv(); err != nil {
			break // the last acknowledgement has come: the rows are durable
		}
	}

	get, err := client.DoGet(ctx, &arrowflight.Ticket{Ticket: []byte(`{"table": "readings", "where": [["device", "=", "d7"]], "order": "asc"}`)})
	if err != nil {
		log.Fatal(err)
	}
	reader, err := arrowflight.NewRecordReader(get)
	if err != nil {
		log.Fatal(err)
	}
	defer reader.Release()
	for reader.Next() {
		for row := range int(reader.RecordBatch().NumRows()) {
			columns := reader.RecordBatch().Columns()
			fmt.Println(columns[0].ValueStr(row), columns[1].ValueStr(row), columns[2].ValueStr(row))
		}
	}
	// Output:
	// d7 1 (null)
	// d7 2 0.5
}
