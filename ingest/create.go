package ingest

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards"
)

// Create makes a table of the schema; keys win over the schema's own metadata.
// A mistake in schema or keys is INVALID_ARGUMENT naming the column, a table
// that exists ALREADY_EXISTS.
func Create(ctx context.Context, store *shards.Store, name shards.Name, schema *arrow.Schema, keys Keys) (*shards.Table, error) {
	said, err := KeysFromMetadata(schema.Metadata())
	if err != nil {
		return nil, err
	}
	keys = keys.Over(said)
	switch {
	case len(keys.Sharding) == 0 && len(keys.Sorting) > 0:
		return nil, fault.Invalid("KEY_INVALID", "table %s: a sorting key %s needs a sharding key, inside whose values it sorts; %s",
			name, quoted(keys.Sorting), howToName)
	case keys.Sharding == nil:
		return nil, fault.Invalid("KEY_MISSING", "table %s cannot be made without a sharding key: %s", name, howToName)
	}
	return store.CreateTable(ctx, name, shards.Spec{
		Schema:   schema,
		Sharding: keys.Sharding,
		Sorting:  keys.Sorting,
		NoKey:    len(keys.Sharding) == 0,
		Slices:   keys.Slices,
	})
}

// checkNames refuses a stream without columns, with names that no column can
// have, or with one name twice.
func checkNames(stream *arrow.Schema) error {
	if stream.NumFields() == 0 {
		return fault.Invalid("SCHEMA_EMPTY", "the schema has no fields; rows need at least the key columns")
	}
	seen := make(map[string]bool, stream.NumFields())
	for i, field := range stream.Fields() {
		switch {
		case field.Name == "" || len(field.Name) > limits.NameBytes || !utf8.ValidString(field.Name):
			return fault.Invalid("COLUMN_NAME_INVALID", "column %d is named %.300q; a column's name is UTF-8 of 1 to %d bytes", i, field.Name, limits.NameBytes)
		case strings.HasPrefix(field.Name, shards.ReservedPrefix):
			return fault.Invalid("COLUMN_NAME_RESERVED", "column %q cannot be written: names that begin with %s are the server's own; leave the column out", field.Name, shards.ReservedPrefix)
		case seen[field.Name]:
			return fault.Invalid("COLUMN_REPEATED", "column %q occurs twice; columns are matched by name, so a name may occur once", field.Name)
		}
		seen[field.Name] = true
	}
	return nil
}

func fieldNames(schema *arrow.Schema) []string {
	list := make([]string, schema.NumFields())
	for i, field := range schema.Fields() {
		list[i] = field.Name
	}
	return list
}

// inColumn puts the column's name before the message of a fault.
func inColumn(name string, err error) error {
	found := fault.Of(err)
	if found == nil {
		return fault.Invalid("TYPE_UNSUPPORTED", "column %q: %w", name, err)
	}
	return fault.New(found.Kind, found.Reason, "column %q: %s", name, found.Message)
}
