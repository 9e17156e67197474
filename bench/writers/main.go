// Command writers puts small batches into a Flight server from many clients at
// once and says how many calls a second were answered, as one line of JSON. Its
// batches are encoded before the clock starts, so that the server is what is
// measured: clients in Python are done at a few writers.
//
// The batches are those of an Arrow IPC stream. Every writer has a connection of
// its own and sends its share of them, again and again. A call is a DoPut of
// schema and batch, ended and answered; with -open a writer keeps one DoPut open,
// and a call is a batch and the acknowledgement that covers it.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

var (
	address  = flag.String("address", "127.0.0.1:8815", "host:port of the server")
	data     = flag.String("data", "", "Arrow IPC stream file with the batches")
	command  = flag.String("command", "", "descriptor: a command; else -path")
	path     = flag.String("path", "drop", "descriptor: a path of one part")
	writers  = flag.Int("writers", 64, "clients at once")
	duration = flag.Duration("for", 3*time.Second, "how long, after as long a quarter unmeasured")
	open     = flag.Bool("open", false, "keep one DoPut open per writer")
)

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "writers:", err)
		os.Exit(1)
	}
}

func run() error {
	schema, batches, err := encode()
	if err != nil {
		return err
	}
	if *writers < 1 || *writers > len(batches) {
		return fmt.Errorf("%d writers need as many batches, %s has %d", *writers, *data, len(batches))
	}
	start := time.Now().Add(*duration / 4)
	times := make([][]time.Duration, *writers)
	errs := make([]error, *writers)
	var all sync.WaitGroup
	for i := range *writers {
		share := batches[i*len(batches) / *writers : (i+1)*len(batches) / *writers]
		all.Go(func() { times[i], errs[i] = write(schema, share, start, start.Add(*duration)) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	took := slices.Concat(times...)
	if len(took) == 0 {
		return fmt.Errorf("no call ended within %v", *duration)
	}
	slices.Sort(took)
	return json.NewEncoder(os.Stdout).Encode(map[string]float64{
		"calls":   float64(len(took)),
		"per_s":   float64(len(took)) / duration.Seconds(),
		"p50_ms":  took[len(took)/2].Seconds() * 1e3,
		"p99_ms":  took[len(took)*99/100].Seconds() * 1e3,
		"most_ms": took[len(took)-1].Seconds() * 1e3,
	})
}

// messages collects what a record writer sends.
type messages []*flight.FlightData

func (m *messages) Send(d *flight.FlightData) error {
	*m = append(*m, &flight.FlightData{
		FlightDescriptor: d.FlightDescriptor, DataHeader: slices.Clone(d.DataHeader), DataBody: slices.Clone(d.DataBody),
	})
	return nil
}

// encode is the file as messages: the schema with the descriptor, and batches.
func encode() (schema *flight.FlightData, batches []*flight.FlightData, err error) {
	file, err := os.Open(*data)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	reader, err := ipc.NewReader(file)
	if err != nil {
		return nil, nil, err
	}
	defer reader.Release()
	var sent messages
	writer := flight.NewRecordWriter(&sent, ipc.WithSchema(plain(reader.Schema())))
	writer.SetFlightDescriptor(descriptor())
	for reader.Next() {
		if err := writer.Write(reader.RecordBatch()); err != nil {
			return nil, nil, err
		}
	}
	if err := cmp.Or(reader.Err(), writer.Close()); err != nil {
		return nil, nil, err
	}
	return sent[0], sent[1:], nil
}

// plain leaves metadata out.
func plain(schema *arrow.Schema) *arrow.Schema { return arrow.NewSchema(schema.Fields(), nil) }

func descriptor() *flight.FlightDescriptor {
	if *command != "" {
		return &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: []byte(*command)}
	}
	return &flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: []string{*path}}
}

// write is one writer. It returns the times of the calls that ended between from
// and until.
func write(schema *flight.FlightData, batches []*flight.FlightData, from, until time.Time) ([]time.Duration, error) {
	client, err := flight.NewClientWithMiddleware(*address, nil, nil, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	call, end := func(b *flight.FlightData) error { return putOnce(client, schema, b) }, func() error { return nil }
	if *open {
		stream, err := openPut(client, schema)
		if err != nil {
			return nil, err
		}
		call, end = stream.put, stream.end
	}
	var times []time.Duration
	for n := 0; ; n++ {
		start := time.Now()
		if !start.Before(until) {
			return times, end()
		}
		if err := call(batches[n%len(batches)]); err != nil {
			return nil, err
		}
		if now := time.Now(); start.After(from) && now.Before(until) {
			times = append(times, now.Sub(start))
		}
	}
}

// putOnce is a call of its own for a batch.
func putOnce(client flight.Client, schema, batch *flight.FlightData) error {
	stream, err := client.DoPut(context.Background())
	if err != nil {
		return err
	}
	// An error of Send is io.EOF: Recv says what it was.
	if stream.Send(schema) == nil && stream.Send(batch) == nil {
		_ = stream.CloseSend()
	}
	for answers := 0; ; answers++ {
		if _, err := stream.Recv(); err == io.EOF && answers > 0 {
			return nil
		} else if err != nil {
			return fmt.Errorf("after %d answers: %w", answers, err)
		}
	}
}

// openStream is a DoPut that stays open.
type openStream struct {
	stream flight.FlightService_DoPutClient
	sent   uint64
}

func openPut(client flight.Client, schema *flight.FlightData) (*openStream, error) {
	stream, err := client.DoPut(context.Background())
	if err == nil {
		err = stream.Send(schema)
	}
	return &openStream{stream: stream}, err
}

// put sends a batch and waits until an acknowledgement covers it.
func (o *openStream) put(batch *flight.FlightData) error {
	_ = o.stream.Send(batch) // Recv says what went wrong
	o.sent++
	for {
		answer, err := o.stream.Recv()
		if err != nil {
			return err
		}
		var said struct{ Batches uint64 }
		if err := json.Unmarshal(answer.AppMetadata, &said); err != nil {
			return err
		}
		if said.Batches >= o.sent {
			return nil
		}
	}
}

func (o *openStream) end() error {
	if err := o.stream.CloseSend(); err != nil {
		return err
	}
	for {
		if _, err := o.stream.Recv(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}
