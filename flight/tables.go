package flight

import (
	"bytes"
	"context"
	"encoding/base64"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/ingest"
	"github.com/sheaf-db/sheaf/ingest/ipcread"
	"github.com/sheaf-db/sheaf/pushdown"
	"github.com/sheaf-db/sheaf/request"
	"github.com/sheaf-db/sheaf/shards"
)

// tableText is the answer of DescribeTable.
type tableText struct {
	Table       string       `json:"table"`
	Schema      string       `json:"schema"`
	Columns     []columnText `json:"columns"`
	ShardingKey []string     `json:"sharding_key"`
	SortingKey  []string     `json:"sorting_key"`
	Slices      int          `json:"slices"`
	Rows        uint64       `json:"rows"`
	RowsExact   bool         `json:"rows_exact"`
	Bytes       uint64       `json:"bytes"`
	Commit      uint64       `json:"commit"`
}

type columnText struct {
	Name     string  `json:"name"`
	Type     string  `json:"type"`
	Nullable bool    `json:"nullable"`
	Key      *string `json:"key"`
}

// nothing is the answer {}.
type nothing struct{}

func (s *Server) table(name string) (*shards.Table, error) {
	parsed, err := shards.ParseName(name)
	if err != nil {
		return nil, err
	}
	return s.store.Table(parsed)
}

func (s *Server) createTable(ctx context.Context, body []byte) (*tableText, error) {
	create, err := request.ParseCreateTable(body)
	if err != nil {
		return nil, err
	}
	name, err := shards.ParseName(create.Table)
	if err != nil {
		return nil, err
	}
	schema, err := readSchema("schema", create.Schema)
	if err != nil {
		return nil, err
	}
	keys := ingest.Keys{Sharding: create.ShardingKey, Sorting: create.SortingKey, Slices: create.Slices}
	table, err := ingest.Create(ctx, s.store, name, schema, keys)
	if fault.Is(err, "TABLE_EXISTS") && create.IfNotExists {
		if table, err = s.store.Table(name); err != nil {
			return nil, err
		}
		said, err := ingest.KeysFromMetadata(schema.Metadata())
		if err != nil {
			return nil, err
		}
		if err := keys.Over(said).Agree(name, table.Schema()); err != nil {
			return nil, err
		}
		return s.describe(table)
	}
	if err != nil {
		return nil, err
	}
	return s.describe(table)
}

func (s *Server) describeTable(_ context.Context, body []byte) (*tableText, error) {
	name, err := request.ParseTable("DescribeTable", body)
	if err != nil {
		return nil, err
	}
	table, err := s.table(name)
	if err != nil {
		return nil, err
	}
	return s.describe(table)
}

func (s *Server) describe(table *shards.Table) (*tableText, error) {
	snapshot, err := table.Snapshot()
	if err != nil {
		return nil, err
	}
	defer snapshot.Release()
	schema := snapshot.Schema()
	text := &tableText{
		Table:       table.Name().String(),
		Schema:      base64.StdEncoding.EncodeToString(s.schemaMessage(schema.Arrow())),
		Columns:     []columnText{},
		ShardingKey: []string{}, SortingKey: []string{},
		Slices: schema.Slices, Bytes: snapshot.Bytes(), Commit: snapshot.Commit(),
	}
	text.Rows, text.RowsExact = snapshot.Rows()
	keys := map[int]*string{}
	for _, key := range []struct {
		word    string
		columns []int
		names   *[]string
	}{{"sharding", schema.Sharding, &text.ShardingKey}, {"sorting", schema.Sorting, &text.SortingKey}} {
		for _, column := range key.columns {
			if schema.Columns[column].Hidden {
				continue
			}
			keys[column] = &key.word
			*key.names = append(*key.names, schema.Columns[column].Field.Name)
		}
	}
	for i, column := range schema.Columns {
		if !column.Hidden {
			field := column.Field
			text.Columns = append(text.Columns, columnText{field.Name, TypeText(field.Type), field.Nullable, keys[i]})
		}
	}
	return text, nil
}

func (s *Server) dropTable(ctx context.Context, body []byte) (nothing, error) {
	name, ifExists, err := request.ParseDropTable(body)
	if err != nil {
		return nothing{}, err
	}
	parsed, err := shards.ParseName(name)
	if err != nil {
		return nothing{}, err
	}
	err = s.store.DropTable(ctx, parsed)
	if ifExists && fault.Is(err, "TABLE_NOT_FOUND") {
		err = nil
	}
	return nothing{}, err
}

func (s *Server) alterTable(ctx context.Context, body []byte) (*tableText, error) {
	alter, err := request.ParseAlterTable(body)
	if err != nil {
		return nil, err
	}
	table, err := s.table(alter.Table)
	if err != nil {
		return nil, err
	}
	change := shards.Change{Drop: alter.DropColumns, Rename: alter.RenameColumns}
	if alter.AddColumns != nil {
		if change.AddColumns, err = readSchema("add_columns", alter.AddColumns); err != nil {
			return nil, err
		}
	}
	if alter.WidenColumns != nil {
		if change.Widen, err = readSchema("widen_columns", alter.WidenColumns); err != nil {
			return nil, err
		}
	}
	if _, err := table.Alter(ctx, change); err != nil {
		return nil, err
	}
	return s.describe(table)
}

// changed is the answer of actions that write.
type changed struct {
	Rows   uint64 `json:"rows"`
	Commit uint64 `json:"commit"`
}

func (s *Server) deleteRows(ctx context.Context, body []byte) (changed, error) {
	remove, err := request.ParseDelete(body)
	if err != nil {
		return changed{}, err
	}
	table, err := s.table(remove.Table)
	if err != nil {
		return changed{}, err
	}
	for {
		schema := table.Schema()
		var filter pushdown.Expr
		if remove.Where != nil {
			if filter, err = pushdown.ParseWhere(remove.Where, schema); err != nil {
				return changed{}, err
			}
		}
		plan, err := pushdown.Build(schema, filter)
		if err != nil {
			return changed{}, err
		}
		rows, commit, err := ingest.Delete(ctx, table, plan)
		if fault.Is(err, "SCHEMA_CHANGED") && ctx.Err() == nil {
			continue // the table was altered between the plan and the delete
		}
		return changed{rows, commit}, err
	}
}

func (s *Server) fold(ctx context.Context, body []byte) (nothing, error) {
	name, err := request.ParseTable("Fold", body)
	if err != nil {
		return nothing{}, err
	}
	table, err := s.table(name)
	if err != nil {
		return nothing{}, err
	}
	return nothing{}, table.Fold(ctx)
}

// schemaMessage is a schema as an encapsulated IPC message, what pyarrow's
// schema.serialize() gives.
func (s *Server) schemaMessage(schema *arrow.Schema) []byte {
	payload := ipc.GetSchemaPayload(schema, s.allocator)
	defer payload.Release()
	var message bytes.Buffer
	_, _ = payload.WritePayload(&message) // a buffer takes everything
	return message.Bytes()
}

// readSchema reads such a message out of the named field of a body. The message
// may hold anything.
func readSchema(field string, message []byte) (*arrow.Schema, error) {
	schema, err := ipcread.SerializedSchema(message)
	if found := fault.Of(err); found != nil && found.Reason == "MESSAGE_INVALID" {
		return nil, fault.Invalid("SCHEMA_INVALID", "field %q: %s; give base64 of the IPC schema message, as pyarrow's schema.serialize() makes it", field, found.Message)
	}
	return schema, err
}
