package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/sheaf-db/sheaf/budget"
	"github.com/sheaf-db/sheaf/flight"
	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards"
)

// heapGrowth is GOGC unless that is set: each collection drops what scans would
// have recycled, and at 100 they come so often that a full scan runs a tenth
// slower. The memory limit bounds what it costs.
const heapGrowth = 200

// defaultDrain is how long running calls may go on after a signal to stop.
const defaultDrain = 20 * time.Second

const serveHelp = `Open a data directory, making it if it is not there, and answer Arrow Flight
until a signal asks to stop (SIGINT, SIGTERM): then running calls get some time,
--drain, to finish. A row that was acknowledged is on disk, however the process ends.

One process owns a data directory at a time. Log lines go to stderr.`

const serveExample = `  sheaf serve --data ./data
  sheaf serve --data /var/lib/sheaf --listen 0.0.0.0:8815 --memory 4GiB --log-format json
  SHEAF_DATA=./data SHEAF_MAX_MESSAGE=64MiB sheaf serve`

type serveFlags struct {
	data, listen        string
	memory, maxMessage  byteSize
	logLevel, logFormat string
	drain               time.Duration
	foldConcurrency     int
	foldBytes           byteSize
}

func newServe() *cobra.Command {
	var f serveFlags
	command := &cobra.Command{
		Use:     "serve --data DIR",
		Short:   "Run a gateway on a data directory",
		Long:    serveHelp,
		Example: serveExample,
		GroupID: groupStore,
		Args:    noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			return f.run(command.Context(), command.ErrOrStderr())
		},
	}
	flags := command.Flags()
	flags.StringVar(&f.data, "data", "", "data directory (required)")
	flags.StringVar(&f.listen, "listen", defaultAddress, "address to listen on, host:port; port 0 takes a free one")
	flags.Var(&f.memory, "memory", "memory of the process: caches, rows being read, messages being received (default a quarter of the machine)")
	flags.Var(&f.maxMessage, "max-message", "largest message taken, after decompression (default 1GiB, or a fifth of --memory if that is less)")
	flags.DurationVar(&f.drain, "drain", defaultDrain, "how long running calls may go on after a signal to stop")
	flags.IntVar(&f.foldConcurrency, "fold-concurrency", runtime.GOMAXPROCS(0), "background folds at a time; 0: none, only sheaf tables fold merges")
	flags.Var(&f.foldBytes, "fold-bytes-per-second", "bytes that folds may move a second beside reads and writes, read and written together; unlimited when there are none (default 16MiB a core)")
	flags.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
	flags.StringVar(&f.logFormat, "log-format", "text", "text or json")
	return command
}

func (f *serveFlags) run(ctx context.Context, errs io.Writer) error {
	if f.data == "" {
		return usageError{fmt.Errorf("say where the data lie: --data DIR")}
	}
	logger, err := newLogger(errs, f.logLevel, f.logFormat)
	if err != nil {
		return err
	}
	if f.foldConcurrency < 0 {
		return usageError{fmt.Errorf("--fold-concurrency %d: give the number of folds at a time, or 0 for none", f.foldConcurrency)}
	}
	// The port first: a second gateway on it fails before it touches the data.
	listener, err := net.Listen("tcp", f.listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("another program listens on %s: choose another address with --listen", f.listen)
	}
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	defer listener.Close()

	shares, err := f.shares()
	if err != nil {
		return err
	}
	// Towards the bound Go collects more eagerly instead of growing.
	debug.SetMemoryLimit(shares.Heap)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(heapGrowth)
	}

	began := time.Now()
	store, err := shards.Open(ctx, f.data, shards.Options{Memory: shares, Logger: logger,
		FoldConcurrency: cmp.Or(f.foldConcurrency, -1), FoldBytes: int64(f.foldBytes)})
	if err != nil {
		return err
	}
	logger.Info("store open", "data", f.data, "tables", len(store.Tables("")), "ms", time.Since(began).Milliseconds())

	server := flight.New(store, flight.Options{
		MaxMessage: int(f.maxMessage), Receiving: shares.Receiving, Reading: shares.Reading, Logger: logger})
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	logger.Info("listening", "address", listener.Addr().String(), "version", version)

	select {
	case err = <-served: // the listener failed
	case <-ctx.Done():
		logger.Info("stopping")
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.drain)
		server.Stop(patience)
		cancel()
		err = <-served
	}
	if closeErr := store.Close(); err == nil {
		err = closeErr
	}
	logger.Info("stopped")
	return err
}

// shares splits --memory, and sets --max-message if it was not given.
func (f *serveFlags) shares() (budget.Shares, error) {
	if f.memory == 0 {
		f.memory = byteSize(budget.Default())
	}
	if f.memory < budget.Least {
		least := byteSize(budget.Least)
		return budget.Shares{}, usageError{fmt.Errorf("--memory %s is too little: a gateway needs %s at least", &f.memory, &least)}
	}
	shares := budget.Split(int64(f.memory))
	if f.maxMessage == 0 {
		f.maxMessage = byteSize(min(limits.MessageBytes, shares.Receiving))
	}
	return shares, nil
}

func newLogger(out io.Writer, level, format string) (*slog.Logger, error) {
	var options slog.HandlerOptions
	var parsed slog.Level
	if err := parsed.UnmarshalText([]byte(level)); err != nil {
		return nil, usageError{fmt.Errorf("--log-level %q: known are debug, info, warn, error", level)}
	}
	options.Level = parsed
	switch format {
	case "json":
		return slog.New(slog.NewJSONHandler(out, &options)), nil
	case "text":
		return slog.New(slog.NewTextHandler(out, &options)), nil
	}
	return nil, usageError{fmt.Errorf("--log-format %q: known are text, json", format)}
}
