package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sheaf-db/sheaf/fault"
)

// The exit codes, as `sheaf --help` lists them.
const (
	exitOK          = 0
	exitError       = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitUnavailable = 4
	exitDamage      = 5
	exitInterrupted = 130
)

// usageError is a mistake in the command line or the environment.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// damageError says that doctor found something.
type damageError struct{ findings int }

func (e damageError) Error() string {
	return counted(e.findings, "finding") + ": the data directory is damaged"
}

// report tells the user what went wrong, in one line, and returns the exit code.
func report(errs io.Writer, command *cobra.Command, err error) int {
	if errors.Is(err, syscall.EPIPE) { // the reader of our output has gone: its right
		return exitOK
	}
	code := exitCode(err)
	if code == exitInterrupted {
		fmt.Fprintln(errs, "sheaf: interrupted")
		return code
	}
	fmt.Fprintf(errs, "sheaf: %s\n", message(err))
	var usage usageError
	if errors.As(err, &usage) {
		fmt.Fprintf(errs, "Try: %s --help\n", command.CommandPath())
	}
	return code
}

// message is the text of an error as a user should see it: a status without
// its gRPC wrapping, everything else as it is.
func message(err error) string {
	var fromGateway gatewayError
	if errors.As(err, &fromGateway) && fromGateway.code() == codes.Unavailable {
		return fmt.Sprintf("no gateway answers at %s: %s (start one with `sheaf serve --data DIR`, or name it with --server)",
			fromGateway.address, networkReason(status.Convert(fromGateway.error).Message()))
	}
	if errors.As(err, &fromGateway) {
		return fromGateway.prefix + status.Convert(fromGateway.error).Message() + fromGateway.hint
	}
	return err.Error()
}

// networkReason is what the system said, out of gRPC's wrapping.
func networkReason(text string) string {
	if _, inner, wrapped := strings.Cut(text, `desc = "`); wrapped {
		text = strings.TrimSuffix(inner, `"`)
	}
	return strings.TrimPrefix(text, "transport: Error while dialing: ")
}

func exitCode(err error) int {
	var (
		usage       usageError
		damage      damageError
		fromGateway gatewayError
	)
	switch {
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &damage):
		return exitDamage
	case errors.As(err, &fromGateway):
		return exitOfCode(fromGateway.code())
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	if found := fault.Of(err); found != nil {
		return exitOfKind(found.Kind)
	}
	return exitError
}

func exitOfCode(code codes.Code) int {
	switch code {
	case codes.InvalidArgument, codes.FailedPrecondition, codes.AlreadyExists, codes.Unimplemented:
		return exitUsage
	case codes.NotFound:
		return exitNotFound
	case codes.Unavailable:
		return exitUnavailable
	case codes.DataLoss:
		return exitDamage
	case codes.Canceled:
		return exitInterrupted
	}
	return exitError
}

func exitOfKind(kind fault.Kind) int {
	switch kind {
	case fault.InvalidArgument, fault.FailedPrecondition, fault.AlreadyExists, fault.Unimplemented:
		return exitUsage
	case fault.NotFound:
		return exitNotFound
	case fault.DataLoss:
		return exitDamage
	}
	return exitError
}
