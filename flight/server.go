package flight

import (
	"context"
	"log/slog"
	"math"
	"net"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	genflight "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/sheaf-db/sheaf/budget"
	"github.com/sheaf-db/sheaf/ingest"
	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards"
)

// DefaultSnapshotTTL is how long a snapshot, or a query kept for a ticket, lives
// after its last use.
const DefaultSnapshotTTL = 15 * time.Minute

// Options of a Server. The zero value is usable.
type Options struct {
	MaxMessage  int              // bytes of one received message; 0: limits.MessageBytes
	MaxStreams  int              // open Flight streams; 0: limits.OpenStreams
	Receiving   int64            // bytes of received messages held at once; 0: a share of 1 GiB, see package budget
	Reading     int64            // bytes of rows on their way out; 0: likewise
	SnapshotTTL time.Duration    // 0: DefaultSnapshotTTL
	Logger      *slog.Logger     // nil: nothing is logged
	Allocator   memory.Allocator // Arrow memory of reads and received messages; nil: a recycling one
}

// Server serves one store as an Arrow Flight service.
type Server struct {
	flight.BaseFlightServer

	store       *shards.Store
	allocator   memory.Allocator
	scanMemory  memory.Allocator // of vectors and received bodies, which are written whole: need not be zeroed
	log         *slog.Logger
	reads       *budget.Gate
	maxMessage  int
	maxStreams  int
	snapshotTTL time.Duration
	received    *admission
	openStreams atomic.Int64
	kept        *keptQueries
	writers     ingest.Streams // open resumable streams

	grpc   *grpc.Server
	health *health.Server
}

// New makes a server for the store, which must outlive it. The caller runs Serve
// and later Stop.
func New(store *shards.Store, o Options) *Server {
	s := &Server{
		store: store, allocator: o.Allocator, log: o.Logger,
		maxMessage: o.MaxMessage, maxStreams: o.MaxStreams, snapshotTTL: o.SnapshotTTL,
	}
	s.scanMemory = s.allocator
	if s.allocator == nil {
		s.allocator, s.scanMemory = memory.DefaultAllocator, newRecycler()
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.maxMessage <= 0 {
		s.maxMessage = limits.MessageBytes
	}
	if s.maxStreams <= 0 {
		s.maxStreams = limits.OpenStreams
	}
	if s.snapshotTTL <= 0 {
		s.snapshotTTL = DefaultSnapshotTTL
	}
	shares := budget.Split(1 << 30)
	if o.Receiving <= 0 {
		o.Receiving = shares.Receiving
	}
	if o.Reading <= 0 {
		o.Reading = shares.Reading
	}
	s.received, s.reads = newAdmission(o.Receiving), budget.NewGate(o.Reading, 0)
	s.kept = newKeptQueries(s.snapshotTTL)

	s.grpc = grpc.NewServer(s.grpcOptions()...)
	s.health = health.NewServer()
	grpc_health_v1.RegisterHealthServer(s.grpc, s.health)
	s.Register(s.grpc)
	reflection.Register(s.grpc)
	return s
}

// grpcOptions are what carries a full scan: see BenchmarkWire.
func (s *Server) grpcOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(newCodec()),
		grpc.UnaryInterceptor(s.aroundUnary),
		grpc.StreamInterceptor(s.aroundStream),
		// Beyond the limit that receive refuses with its own words, so that a
		// client hears those; but never without bound.
		grpc.MaxRecvMsgSize(min(2*s.maxMessage+64<<20, math.MaxInt32)),
		grpc.MaxSendMsgSize(math.MaxInt32),
		grpc.WriteBufferSize(writeBuffer),
		grpc.ReadBufferSize(readBuffer),
		grpc.InitialWindowSize(streamWindow),
		grpc.InitialConnWindowSize(connectionWindow),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: time.Minute, Timeout: 20 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
	}
}

// Sizes of gRPC's buffers and HTTP/2 windows.
const (
	writeBuffer      = 256 << 10
	readBuffer       = 128 << 10
	streamWindow     = 4 << 20
	connectionWindow = 8 << 20
)

// Register adds the Flight service to a registrar. New does it for the server's
// own gRPC server; another one must use the codec of this package.
func (s *Server) Register(registrar grpc.ServiceRegistrar) {
	genflight.RegisterFlightServiceServer(registrar, s)
}

// Serve answers calls on the listener until Stop; it closes the listener.
func (s *Server) Serve(listener net.Listener) error {
	s.health.Resume()
	return s.grpc.Serve(listener)
}

// Stop takes no new calls and waits for the running ones; when the context ends
// it cancels them.
func (s *Server) Stop(ctx context.Context) {
	s.health.Shutdown()
	stopped := make(chan struct{})
	go func() {
		s.grpc.GracefulStop()
		close(stopped)
	}()
	select {
	case <-stopped:
	case <-ctx.Done():
		s.grpc.Stop()
		<-stopped
	}
	s.kept.close()
}

// Handshake accepts everybody: an open server has no accounts. What the client
// sent is echoed, since some clients wait for an answer.
func (s *Server) Handshake(stream flight.FlightService_HandshakeServer) error {
	for {
		request, err := stream.Recv()
		if err != nil {
			return ignoreEOF(err)
		}
		if err := stream.Send(&flight.HandshakeResponse{ProtocolVersion: request.GetProtocolVersion(), Payload: request.GetPayload()}); err != nil {
			return err
		}
	}
}
