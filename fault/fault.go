package fault

import (
	"errors"
	"fmt"
)

// Kind is the class of an error, named after the gRPC code it travels as.
type Kind uint8

// The kinds, in the words of docs/wire.md.
const (
	Internal Kind = iota
	InvalidArgument
	NotFound
	AlreadyExists
	FailedPrecondition
	Unimplemented
	Aborted
	ResourceExhausted
	DataLoss
	PermissionDenied
	Unauthenticated
	Unavailable
	Canceled
)

// Error is an error that a user sees: a kind, a stable reason such as
// TABLE_NOT_FOUND, and a message that says what is wrong, where, and what to
// do. It holds neither a stack nor a path of the server's machine.
type Error struct {
	Kind    Kind
	Reason  string
	Message string
	cause   error
}

// New makes an error; format and args are those of fmt.Errorf, %w included.
func New(kind Kind, reason, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: kind, Reason: reason, Message: err.Error(), cause: errors.Unwrap(err)}
}

// Invalid is New(InvalidArgument, …), the commonest kind.
func Invalid(reason, format string, args ...any) *Error {
	return New(InvalidArgument, reason, format, args...)
}

// Error is the text that goes over the wire: "[REASON] message".
func (e *Error) Error() string { return "[" + e.Reason + "] " + e.Message }

// Unwrap is the error that %w named, if any.
func (e *Error) Unwrap() error { return e.cause }

// With is a copy of the error whose message has more text behind it.
func (e *Error) With(format string, args ...any) *Error {
	more := *e
	more.Message += fmt.Sprintf(format, args...)
	return &more
}

// Of is the first *Error in err's chain, or nil.
func Of(err error) *Error {
	var found *Error
	if errors.As(err, &found) {
		return found
	}
	return nil
}

// Is reports whether err carries the given reason.
func Is(err error, reason string) bool {
	found := Of(err)
	return found != nil && found.Reason == reason
}
