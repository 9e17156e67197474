package flight

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"unicode/utf8"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sheaf-db/sheaf/fault"
)

// errorDomain is the domain of the google.rpc.ErrorInfo that goes with errors.
const errorDomain = "sheaf"

// messageBytes bounds an error's text: a gRPC client refuses trailers above
// 8 KiB, the text goes twice, and percent-encoding may triple it.
const messageBytes = 1400

var kindCodes = map[fault.Kind]codes.Code{
	fault.Internal:           codes.Internal,
	fault.InvalidArgument:    codes.InvalidArgument,
	fault.NotFound:           codes.NotFound,
	fault.AlreadyExists:      codes.AlreadyExists,
	fault.FailedPrecondition: codes.FailedPrecondition,
	fault.Unimplemented:      codes.Unimplemented,
	fault.Aborted:            codes.Aborted,
	fault.ResourceExhausted:  codes.ResourceExhausted,
	fault.DataLoss:           codes.DataLoss,
	fault.PermissionDenied:   codes.PermissionDenied,
	fault.Unauthenticated:    codes.Unauthenticated,
	fault.Unavailable:        codes.Unavailable,
	fault.Canceled:           codes.Canceled,
}

// answer is the gRPC status that an error travels as. internal reports that its
// text must not: incident then names it in the answer and in the log.
func answer(err error) (s *status.Status, incident string) {
	if found := fault.Of(err); found != nil {
		code, ok := kindCodes[found.Kind]
		if !ok {
			code = codes.Internal
		}
		return withReason(code, found.Reason, found.Message), ""
	}
	switch {
	case errors.Is(err, context.Canceled):
		return withReason(codes.Canceled, "CANCELED", "the call was cancelled"), ""
	case errors.Is(err, context.DeadlineExceeded):
		return withReason(codes.DeadlineExceeded, "DEADLINE_EXCEEDED", "the call's deadline has passed"), ""
	}
	// What gRPC itself says: a stream that broke, a message it could not take.
	if s, ok := status.FromError(err); ok {
		switch s.Code() {
		case codes.Canceled:
			return withReason(codes.Canceled, "CANCELED", "the call was cancelled"), ""
		case codes.DeadlineExceeded:
			return withReason(codes.DeadlineExceeded, "DEADLINE_EXCEEDED", "the call's deadline has passed"), ""
		case codes.ResourceExhausted:
			return withReason(codes.ResourceExhausted, "MESSAGE_TOO_LARGE", s.Message()), ""
		case codes.Unavailable:
			return withReason(codes.Unavailable, "UNAVAILABLE", s.Message()), ""
		case codes.Unimplemented:
			return withReason(codes.Unimplemented, "NOT_IMPLEMENTED", s.Message()), ""
		}
	}
	incident = newIncident()
	return withReason(codes.Internal, "INTERNAL", "an internal error, "+incident+" in the server's log"), incident
}

func withReason(code codes.Code, reason, message string) *status.Status {
	text := clip("["+reason+"] "+message, messageBytes)
	s := status.New(code, text)
	detailed, err := s.WithDetails(&errdetails.ErrorInfo{Domain: errorDomain, Reason: reason})
	if err != nil {
		return s
	}
	return detailed
}

// clip shortens text to whole characters; invalid UTF-8, which gRPC would refuse
// to send, is replaced.
func clip(text string, most int) string {
	if len(text) > most {
		cut := most
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	if !utf8.ValidString(text) {
		text = string([]rune(text))
	}
	return text
}

func newIncident() string {
	var id [4]byte
	_, _ = rand.Read(id[:]) // never fails
	return "incident " + hex.EncodeToString(id[:])
}

// ignoreEOF makes the end of a stream no error.
func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
