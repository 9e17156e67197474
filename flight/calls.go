package flight

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"

	"github.com/sheaf-db/sheaf/fault"
)

const flightService = "/arrow.flight.protocol.FlightService/"

// panicked is a recovered panic; it reaches the client as INTERNAL, its stack
// only the log.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// recovered turns a panic of the function that defers it into an error.
func recovered(err *error) {
	if value := recover(); value != nil {
		*err = &panicked{value, debug.Stack()}
	}
}

// guard runs f; a panic in it is an error. Every goroutine of a call runs inside
// one, since gRPC recovers nothing.
func guard(f func() error) (err error) {
	defer recovered(&err)
	return f()
}

func (s *Server) aroundUnary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (response any, err error) {
	start := time.Now()
	err = guard(func() (err error) {
		response, err = handler(ctx, request)
		return err
	})
	if err = s.finish(ctx, info.FullMethod, start, err); err != nil {
		return nil, err
	}
	return response, nil
}

func (s *Server) aroundStream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	start := time.Now()
	err := guard(func() error {
		if strings.HasPrefix(info.FullMethod, flightService) {
			if s.openStreams.Add(1) > int64(s.maxStreams) {
				s.openStreams.Add(-1)
				return fault.New(fault.ResourceExhausted, "STREAM_LIMIT",
					"%d streams are open, the limit of this server (--max-streams): end some or try again later", s.maxStreams)
			}
			defer s.openStreams.Add(-1)
		}
		return handler(server, stream)
	})
	return s.finish(stream.Context(), info.FullMethod, start, err)
}

// finish logs a call and gives its error the shape that travels.
func (s *Server) finish(ctx context.Context, method string, start time.Time, err error) error {
	code, level := codes.OK, slog.LevelDebug
	var attrs []slog.Attr
	if err != nil {
		if ctx.Err() != nil && fault.Of(err) == nil {
			err = ctx.Err() // whatever failed, it failed because the client left
		}
		state, incident := answer(err)
		code = state.Code()
		switch {
		case incident != "":
			level = slog.LevelError
			attrs = append(attrs, slog.String("incident", incident))
		case code == codes.DataLoss || code == codes.Internal:
			level = slog.LevelError
		case code != codes.Canceled:
			level = slog.LevelInfo
		}
		attrs = append(attrs, slog.String("error", err.Error()))
		if broken, ok := err.(*panicked); ok {
			attrs = append(attrs, slog.String("stack", string(broken.stack)))
		}
		err = state.Err()
	}
	if s.log.Enabled(ctx, level) {
		attrs = append(attrs, slog.String("code", code.String()), slog.Duration("took", time.Since(start)))
		if from, ok := peer.FromContext(ctx); ok {
			attrs = append(attrs, slog.String("peer", from.Addr.String()))
		}
		s.log.LogAttrs(ctx, level, strings.TrimPrefix(method, flightService), attrs...)
	}
	return err
}
