package shards

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/shards/block"
)

// failure latches a store read-only. Once a write below failed, nobody knows
// what of it is on disk; so no later write is acknowledged, and reads go on from
// what was visible. Only a restart, which reads the log again, ends it.
type failure struct {
	logger *slog.Logger
	once   sync.Once
	err    atomic.Pointer[fault.Error]
	failed chan struct{} // closed by the first failure
	stuck  atomic.Bool   // Pebble cannot be closed any more (logfs.go)
}

func newFailure(logger *slog.Logger) *failure {
	return &failure{logger: logger, failed: make(chan struct{})}
}

// latch is idempotent: the first cause stays.
func (f *failure) latch(cause error) {
	f.once.Do(func() {
		err := fault.New(fault.Unavailable, "STORE_READ_ONLY", "a write to the disk failed (%w); the store "+
			"goes on with reads but takes no writes until it is restarted: see to the disk, then restart", cause)
		if errors.Is(cause, syscall.ENOSPC) {
			err = fault.New(fault.ResourceExhausted, "STORE_READ_ONLY", "the disk is full and a write failed (%w); "+
				"the store goes on with reads but takes no writes until it is restarted: free space, then restart", cause)
		}
		f.err.Store(err)
		close(f.failed)
		f.logger.Error("the store is read-only from now on", "cause", cause)
	})
}

// get is nil or the error that every write gets.
func (f *failure) get() error {
	if err := f.err.Load(); err != nil {
		return err
	}
	return nil
}

// guard runs a write of Pebble's and waits for it, unless the store fails
// meanwhile: then the write may never return (Pebble's own locks are not
// released on every fatal path) and is left behind with its goroutine. A panic
// in it latches the store too.
func (f *failure) guard(what string, write func() error) error {
	if err := f.get(); err != nil {
		return err
	}
	result := make(chan error, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				err, ok := r.(error)
				if !ok {
					err = fmt.Errorf("%v", r)
				}
				f.latch(fmt.Errorf("%s: %w", what, err))
			}
		}()
		result <- write()
	}()
	select {
	case err := <-result:
		return err
	case <-f.failed:
		// The write may have ended all the same; what it did decides nothing,
		// since nobody may rely on it any more.
		return f.get()
	}
}

// pebbleLogger passes Pebble's messages on. Its Fatalf latches the store and
// ends the calling goroutine: it must not return, for Pebble would then report
// success after a failed write. It is the second line of defence: failures of
// log and manifest do not get so far (logfs.go). Goexit runs the deferred
// unlocks on the stack, which blocking for ever would not. The one fatal path
// that Goexit does not suit, flushable ingests, is turned off in settings.go.
type pebbleLogger struct{ failure *failure }

func (l pebbleLogger) Infof(format string, args ...any) {
	if l.failure.logger.Enabled(context.Background(), slog.LevelDebug) {
		l.failure.logger.Debug("pebble", "message", fmt.Sprintf(format, args...))
	}
}

func (l pebbleLogger) Errorf(format string, args ...any) {
	l.failure.logger.Warn("pebble", "message", fmt.Sprintf(format, args...))
}

func (l pebbleLogger) Fatalf(format string, args ...any) {
	l.failure.latch(fatalCause(format, args))
	runtime.Goexit()
}

// fatalCause keeps an error among the arguments in the chain, so that a full
// disk is told from a broken one.
func fatalCause(format string, args []any) error {
	for _, arg := range args {
		if err, ok := arg.(error); ok {
			return &fatalError{text: fmt.Sprintf(format, args...), cause: err}
		}
	}
	return fmt.Errorf(format, args...)
}

type fatalError struct {
	text  string
	cause error
}

func (e *fatalError) Error() string { return e.text }
func (e *fatalError) Unwrap() error { return e.cause }

// isCorrupt reports whether Pebble or a block's checksum found damaged bytes.
func isCorrupt(err error) bool {
	return err != nil && (pebble.IsCorruptionError(err) || errors.Is(err, block.ErrCorrupt))
}
