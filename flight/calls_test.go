package flight

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/sheaf-db/sheaf/fault"
)

func TestErrorsAsTheyTravel(t *testing.T) {
	for _, test := range []struct {
		err    error
		code   codes.Code
		reason string
		text   string
	}{
		{fault.Invalid("A_B", "what %d", 1), codes.InvalidArgument, "A_B", "[A_B] what 1"},
		{fmt.Errorf("around: %w", fault.New(fault.DataLoss, "X", "where")), codes.DataLoss, "X", "[X] where"},
		{context.Canceled, codes.Canceled, "CANCELED", "[CANCELED] the call was cancelled"},
		{fmt.Errorf("scan: %w", context.DeadlineExceeded), codes.DeadlineExceeded, "DEADLINE_EXCEEDED", "[DEADLINE_EXCEEDED] the call's deadline has passed"},
		{fault.New(fault.NotFound, "N", "bad \xff text"), codes.NotFound, "N", "[N] bad \uFFFD text"},
	} {
		s, incident := answer(test.err)
		require.Empty(t, incident)
		require.Equal(t, test.text, s.Message())
		fails(t, s.Err(), test.code, test.reason)
	}
	for _, err := range []error{errors.New("open /secret/path: denied"), &panicked{"boom", []byte("stack")}, status.Error(codes.Unknown, "x")} {
		s, incident := answer(err)
		fails(t, s.Err(), codes.Internal, "INTERNAL")
		require.Contains(t, s.Message(), incident)
		require.NotContains(t, s.Message(), "secret")
	}
	s, _ := answer(fault.Invalid("LONG", "%s", strings.Repeat("é", 5000)))
	require.LessOrEqual(t, len(s.Message()), messageBytes+len("…"))
}

// The store is nil, so every call that needs it panics.
func TestAPanicIsOneCallsError(t *testing.T) {
	var logged bytes.Buffer
	w := newWorld(t, Options{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	store := w.server.store
	w.server.store = nil
	_, err := w.get([]byte("t"))
	fails(t, err, codes.Internal, "INTERNAL")
	require.NotContains(t, status.Convert(err).Message(), "goroutine")
	_, err = w.client.GetFlightInfo(t.Context(), &flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: []string{"t"}})
	fails(t, err, codes.Internal, "INTERNAL")
	w.server.store = store
	_, err = w.get([]byte("t"))
	fails(t, err, codes.NotFound, "TABLE_NOT_FOUND")
	require.Equal(t, 2, strings.Count(logged.String(), "level=ERROR"))
	require.Contains(t, logged.String(), "goroutine", "the log has the stack")
}

func TestAPanicInTheProducerEndsItsStreamOnly(t *testing.T) {
	err := pipe(stillborn{}, func(context.Context, func(*outbound) error) error { panic("boom") })
	require.ErrorContains(t, err, "boom")
}

// stillborn is a stream that takes nothing.
type stillborn struct{ grpc.ServerStream }

func (stillborn) Context() context.Context { return context.Background() }
func (stillborn) SendMsg(any) error        { return errors.New("gone") }

func TestAStreamThatTakesNothingStopsItsProducer(t *testing.T) {
	emitted := 0
	err := pipe(stillborn{}, func(_ context.Context, emit func(*outbound) error) error {
		for {
			if err := emit(&outbound{}); err != nil {
				return err
			}
			emitted++
		}
	})
	require.EqualError(t, err, "gone")
	require.LessOrEqual(t, emitted, queued+2)
}

func TestOpenStreamsAreBounded(t *testing.T) {
	w := newWorld(t, Options{MaxStreams: 2})
	for range 2 {
		stream, err := w.client.Handshake(t.Context())
		require.NoError(t, err)
		require.NoError(t, stream.Send(&flight.HandshakeRequest{}))
		_, err = stream.Recv()
		require.NoError(t, err)
	}
	_, err := w.get([]byte("t"))
	fails(t, err, codes.ResourceExhausted, "STREAM_LIMIT")
	health, err := grpc_health_v1.NewHealthClient(w.connection).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	require.NoError(t, err)
	require.Equal(t, grpc_health_v1.HealthCheckResponse_SERVING, health.GetStatus())
	w.server.grpc.Stop() // the handshakes wait for their clients
}

func TestAnyCredentialsAreAccepted(t *testing.T) {
	w := newWorld(t, Options{})
	w.putTrips("t", trips(1, 2))
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer whatever")
	stream, err := w.client.Handshake(ctx)
	require.NoError(t, err)
	require.NoError(t, stream.Send(&flight.HandshakeRequest{Payload: []byte("me")}))
	response, err := stream.Recv()
	require.NoError(t, err)
	require.Equal(t, "me", string(response.GetPayload()))
	require.NoError(t, stream.CloseSend())
	info, err := w.client.GetFlightInfo(ctx, &flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: []string{"t"}})
	require.NoError(t, err)
	require.Len(t, info.GetEndpoint(), 1)
}

func TestReflectionNamesTheService(t *testing.T) {
	w := newWorld(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := grpc_reflection_v1.NewServerReflectionClient(w.connection).ServerReflectionInfo(ctx)
	require.NoError(t, err)
	require.NoError(t, stream.Send(&grpc_reflection_v1.ServerReflectionRequest{
		MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_ListServices{},
	}))
	response, err := stream.Recv()
	require.NoError(t, err)
	require.Contains(t, response.String(), "arrow.flight.protocol.FlightService")
}

func TestWhatIsNotBuiltSaysSo(t *testing.T) {
	w := newWorld(t, Options{})
	exchange, err := w.client.DoExchange(t.Context())
	require.NoError(t, err)
	_, err = exchange.Recv()
	fails(t, err, codes.Unimplemented, "NOT_IMPLEMENTED")
	_, err = w.client.PollFlightInfo(t.Context(), &flight.FlightDescriptor{})
	fails(t, err, codes.Unimplemented, "NOT_IMPLEMENTED")
}

func TestStopLetsRunningReadsFinish(t *testing.T) {
	w := newWorld(t, Options{})
	w.putTrips("t", trips(30, 5000))
	stream, err := w.client.DoGet(t.Context(), &flight.Ticket{Ticket: []byte("t")})
	require.NoError(t, err)
	_, err = stream.Recv()
	require.NoError(t, err)
	stopped := make(chan struct{})
	go func() {
		w.server.Stop(context.Background())
		close(stopped)
	}()
	bytes := 0
	for {
		data, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		bytes += len(data.GetDataBody())
	}
	require.Greater(t, bytes, 150_000*16, "all rows arrive")
	<-stopped
}
