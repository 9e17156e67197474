package flight

import (
	"errors"
	"io"
	"net"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
)

// BenchmarkWire streams prepared batches of 1 MiB over TCP to a client that
// drops them: arrow-go's record writer with gRPC's defaults, our codec with the
// same defaults, and our codec with the buffers that the server uses.
func BenchmarkWire(b *testing.B) {
	const columns, rows, batches = 16, 8192, 64
	var fields []arrow.Field
	var arrays []arrow.Array
	for i := range columns {
		builder := array.NewInt64Builder(memory.DefaultAllocator)
		for row := range int64(rows) {
			builder.Append(row)
		}
		arrays = append(arrays, builder.NewArray())
		fields = append(fields, arrow.Field{Name: string(rune('a' + i)), Type: arrow.PrimitiveTypes.Int64})
	}
	schema := arrow.NewSchema(fields, nil)
	batch := array.NewRecordBatch(schema, arrays, rows)
	var pieces []piece
	for range batches {
		pieces = append(pieces, piece{columns: arrays, rows: rows})
	}
	ours := &pieceServer{schema: schema, pieces: pieces, mem: memory.DefaultAllocator}
	codecOption := grpc.ForceServerCodecV2(newCodec())
	for _, test := range []struct {
		name    string
		service flight.FlightServer
		options []grpc.ServerOption
	}{
		{"arrow-go", &batchServer{batch: batch, batches: batches}, nil},
		{"codec", ours, []grpc.ServerOption{codecOption}},
		{"codec+buffers", ours, []grpc.ServerOption{codecOption, grpc.WriteBufferSize(writeBuffer), grpc.ReadBufferSize(readBuffer)}},
	} {
		b.Run(test.name, func(b *testing.B) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			server := grpc.NewServer(test.options...)
			flight.RegisterFlightServiceServer(server, test.service)
			go func() { _ = server.Serve(listener) }()
			defer server.Stop()
			connection, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
				grpc.WithInitialWindowSize(4<<20), grpc.WithInitialConnWindowSize(8<<20), grpc.WithReadBufferSize(128<<10))
			if err != nil {
				b.Fatal(err)
			}
			defer connection.Close()
			b.SetBytes(columns * rows * 8 * batches)
			for b.Loop() {
				drain(b, connection)
			}
		})
	}
}

// drain reads a DoGet and drops what it reads, undecoded.
func drain(b *testing.B, connection *grpc.ClientConn) {
	stream, err := connection.NewStream(b.Context(), &grpc.StreamDesc{ServerStreams: true},
		flightService+"DoGet", grpc.ForceCodecV2(dropping{newCodec()}), grpc.MaxCallRecvMsgSize(64<<20))
	if err != nil {
		b.Fatal(err)
	}
	if err := stream.SendMsg(&flight.Ticket{}); err != nil {
		b.Fatal(err)
	}
	if err := stream.CloseSend(); err != nil {
		b.Fatal(err)
	}
	for {
		if err := stream.RecvMsg(nil); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			b.Fatal(err)
		}
	}
}

// dropping decodes nothing.
type dropping struct{ codec }

func (dropping) Unmarshal(mem.BufferSlice, any) error { return nil }

// batchServer streams a batch again and again by arrow-go's record writer.
type batchServer struct {
	flight.BaseFlightServer
	batch   arrow.RecordBatch
	batches int
}

func (s *batchServer) DoGet(_ *flight.Ticket, stream flight.FlightService_DoGetServer) error {
	writer := flight.NewRecordWriter(stream, ipc.WithSchema(s.batch.Schema()))
	for range s.batches {
		if err := writer.Write(s.batch); err != nil {
			return err
		}
	}
	return writer.Close()
}
