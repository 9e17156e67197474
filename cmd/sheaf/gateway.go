package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// gRPC's defaults (64 KiB windows, 32 KiB reads) hold a bulk stream back.
const (
	windowBytes = 8 << 20
	bufferBytes = 1 << 20
)

// gateway is a connection to a running gateway.
type gateway struct {
	flight.Client
	address string
}

// gatewayError is an answer of the gateway, or the lack of one. prefix says
// what this side was doing and hint what it can do, where that helps.
type gatewayError struct {
	error
	address string
	prefix  string
	hint    string
}

func (e gatewayError) Unwrap() error    { return e.error }
func (e gatewayError) code() codes.Code { return status.Code(e.error) }

// serverFlag adds --server to a client command.
func serverFlag(command *cobra.Command) *string {
	return command.Flags().String("server", defaultAddress, "address of the gateway, host:port")
}

// dial prepares a connection; the first call finds out whether anybody answers.
func dial(address string) (*gateway, error) {
	for _, scheme := range []string{"grpc://", "grpc+tcp://"} {
		address = strings.TrimPrefix(address, scheme)
	}
	client, err := flight.NewClientWithMiddleware(address, nil, nil,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.MaxCallSendMsgSize(math.MaxInt32)),
		grpc.WithInitialWindowSize(windowBytes), grpc.WithInitialConnWindowSize(windowBytes),
		grpc.WithReadBufferSize(bufferBytes), grpc.WithWriteBufferSize(bufferBytes))
	if err != nil {
		return nil, usageError{fmt.Errorf("--server %q: %w", address, err)}
	}
	return &gateway{Client: client, address: address}, nil
}

// failed marks err, unless nil, as the gateway's.
func (g *gateway) failed(err error) error { return g.failedWhile("", err) }

// failedWhile is failed with a text that goes before the message.
func (g *gateway) failedWhile(prefix string, err error) error {
	if err == nil {
		return nil
	}
	return gatewayError{error: err, address: g.address, prefix: prefix}
}

// act runs one JSON action and decodes its result into result, unless nil.
func (g *gateway) act(ctx context.Context, kind string, body, result any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	stream, err := g.DoAction(ctx, &flight.Action{Type: kind, Body: encoded})
	if err != nil {
		return g.failed(err)
	}
	answer, err := stream.Recv()
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("action %s: the gateway sent no result", kind)
	}
	if err != nil {
		return g.failed(err)
	}
	if raw, wanted := result.(*json.RawMessage); wanted {
		*raw = answer.Body
	} else if result != nil {
		if err := json.Unmarshal(answer.Body, result); err != nil {
			return fmt.Errorf("action %s: result %q: %w", kind, answer.Body, err)
		}
	}
	_, err = stream.Recv() // the end of the call, so that a late error is seen
	if errors.Is(err, io.EOF) {
		return nil
	}
	return g.failed(err)
}

// get redeems a ticket and hands every batch, with the metadata that came with
// it, to each; the batch is valid until each returns. begin gets the schema first.
func (g *gateway) get(ctx context.Context, ticket []byte, begin func(*arrow.Schema) error,
	each func(batch arrow.RecordBatch, metadata []byte) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop() // ends the call when each or begin fails
	stream, err := g.DoGet(ctx, &flight.Ticket{Ticket: ticket})
	if err != nil {
		return g.failed(err)
	}
	reader, err := flight.NewRecordReader(stream)
	if err != nil {
		return g.failed(err)
	}
	defer reader.Release()
	if err := begin(reader.Schema()); err != nil {
		return err
	}
	for reader.Next() {
		if err := each(reader.RecordBatch(), reader.LatestAppMetadata()); err != nil {
			return err
		}
	}
	if err := reader.Err(); err != nil && !errors.Is(err, io.EOF) {
		return g.failed(err)
	}
	return nil
}
