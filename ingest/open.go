package ingest

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/shards"
	"github.com/sheaf-db/sheaf/shards/canonical"
)

// Open begins a stream of batches with the given schema. It makes the table if
// it does not exist and keys are named, and binds the columns. The caller calls
// Finish, or Abort, at the end. All errors are *fault.Error but those of the
// storage and of ctx.
func Open(ctx context.Context, store *shards.Store, target Target, schema *arrow.Schema, options Options) (*Writer, error) {
	stream := canonical.PlainSchema(schema)
	if err := checkNames(stream); err != nil {
		return nil, err
	}
	table, err := openTable(ctx, store, target, stream, options.Mode)
	if err != nil {
		return nil, err
	}
	w := &Writer{table: table, stream: stream, options: options.withDefaults()}
	if err := w.bind(ctx); err != nil {
		return nil, err
	}
	if w.options.Resume != "" {
		if err := w.resume(); err != nil {
			return nil, err
		}
	}
	w.queue = w.options.Streams.join(table.ID())
	return w, nil
}

// openTable finds the table, whose keys must not be contradicted, or makes it.
func openTable(ctx context.Context, store *shards.Store, target Target, stream *arrow.Schema, mode Mode) (*shards.Table, error) {
	said, err := KeysFromMetadata(stream.Metadata())
	if err != nil {
		return nil, err
	}
	keys := target.Keys.Over(said)
	for {
		table, err := store.Table(target.Name)
		switch {
		case err == nil:
			return table, keys.Agree(target.Name, table.Schema())
		case !fault.Is(err, "TABLE_NOT_FOUND"):
			return nil, err
		case keys.Sharding == nil && keys.Sorting == nil:
			return nil, fault.Of(err).With("; to make it by writing, %s", howToName)
		}
		if keys.Sharding != nil && len(keys.Sharding) == 0 {
			if err := mode.allowed(target.Name, true); err != nil {
				return nil, err
			}
		}
		table, err = Create(ctx, store, target.Name, stream, keys)
		if err == nil || !fault.Is(err, "TABLE_EXISTS") {
			return table, err
		}
		// Another writer made it meanwhile: look again.
	}
}

// bind matches the stream with the table's newest schema; unknown columns are
// added first if the stream asks for it.
func (w *Writer) bind(ctx context.Context) error {
	for {
		schema := w.table.Schema()
		unknown := unknownColumns(schema, w.stream)
		if len(unknown) == 0 || !w.options.AddColumns {
			b, err := bind(w.table.Name(), schema, w.stream, w.options.Mode)
			if err != nil {
				return err
			}
			w.binding.Store(b)
			return nil
		}
		_, err := w.table.Alter(ctx, shards.Change{AddColumns: arrow.NewSchema(unknown, nil)})
		if err != nil && !fault.Is(err, "COLUMN_EXISTS") {
			return err
		}
	}
}

// resume takes the stream's id over and goes on behind what is durable.
func (w *Writer) resume() error {
	if err := shards.CheckResume(w.options.Resume); err != nil {
		return err
	}
	id := streamID{w.table.ID(), w.options.Resume}
	w.fence = w.options.Streams.enter(id)
	position, commit, err := w.table.ResumePosition(w.options.Resume)
	if err != nil {
		w.options.Streams.leave(id, w.fence)
		return err
	}
	w.durable = Progress{Batches: position.Batches, Rows: position.Rows, Commit: commit}
	w.received, w.resumed = w.durable, w.durable
	return nil
}
