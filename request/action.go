package request

import (
	"bytes"
	"encoding/base64"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/limits"
)

// CreateTable is the body of the action of that name.
type CreateTable struct {
	Table       string
	Schema      []byte   // encapsulated IPC schema message
	ShardingKey []string // nil: absent; empty: a table without key
	SortingKey  []string // nil: absent
	Slices      int      // 0: absent
	IfNotExists bool
}

// ParseCreateTable reads the body of CreateTable.
func ParseCreateTable(body []byte) (*CreateTable, error) {
	const what = "body of CreateTable"
	create := &CreateTable{}
	var slices int64
	err := object(what, body, fields{
		"table":         filled(&create.Table),
		"schema":        base64Bytes(&create.Schema),
		"sharding_key":  names(&create.ShardingKey),
		"sorting_key":   names(&create.SortingKey),
		"slices":        whole(&slices, 1, limits.MaxSlices),
		"ttl":           unbuilt("ttl"),
		"if_not_exists": flag(&create.IfNotExists),
	})
	if err != nil {
		return nil, err
	}
	create.Slices = int(slices)
	if create.Table == "" {
		return nil, missing(what, "table")
	}
	if create.Schema == nil {
		return nil, missing(what, "schema")
	}
	return create, nil
}

// ParseTable reads a body that holds a table's name only; action names it.
func ParseTable(action string, body []byte) (table string, err error) {
	what := "body of " + action
	if err := object(what, body, fields{"table": filled(&table)}); err != nil {
		return "", err
	}
	if table == "" {
		return "", missing(what, "table")
	}
	return table, nil
}

// ParseDropTable reads the body of DropTable.
func ParseDropTable(body []byte) (table string, ifExists bool, err error) {
	const what = "body of DropTable"
	if err := object(what, body, fields{"table": filled(&table), "if_exists": flag(&ifExists)}); err != nil {
		return "", false, err
	}
	if table == "" {
		return "", false, missing(what, "table")
	}
	return table, ifExists, nil
}

// AlterTable is the body of the action of that name; exactly one of the changes
// is set.
type AlterTable struct {
	Table         string
	AddColumns    []byte // encapsulated IPC schema message
	DropColumns   []string
	RenameColumns map[string]string // old to new
	WidenColumns  []byte            // encapsulated IPC schema message
}

// ParseAlterTable reads the body of AlterTable.
func ParseAlterTable(body []byte) (*AlterTable, error) {
	const what = "body of AlterTable"
	alter := &AlterTable{}
	err := object(what, body, fields{
		"table":          filled(&alter.Table),
		"add_columns":    base64Bytes(&alter.AddColumns),
		"drop_columns":   names(&alter.DropColumns),
		"rename_columns": renames(&alter.RenameColumns),
		"widen_columns":  base64Bytes(&alter.WidenColumns),
		"set":            unbuilt("set"),
	})
	if err != nil {
		return nil, err
	}
	if alter.Table == "" {
		return nil, missing(what, "table")
	}
	changes := 0
	for _, given := range []bool{alter.AddColumns != nil, alter.DropColumns != nil, alter.RenameColumns != nil, alter.WidenColumns != nil} {
		if given {
			changes++
		}
	}
	if changes != 1 {
		return nil, fault.Invalid("FIELD_CONFLICT", "AlterTable takes exactly one of add_columns, drop_columns, rename_columns, widen_columns; %d are given", changes)
	}
	return alter, nil
}

// Delete is the body of the action of that name.
type Delete struct {
	Table string
	Where jsontext.Value // nil only with All
	All   bool
}

// ParseDelete reads the body of Delete. Without a filter it must say "all".
func ParseDelete(body []byte) (*Delete, error) {
	const what = "body of Delete"
	remove := &Delete{}
	known := filters(&remove.Where)
	known["table"] = filled(&remove.Table)
	known["all"] = flag(&remove.All)
	if err := object(what, body, known); err != nil {
		return nil, err
	}
	switch {
	case remove.Table == "":
		return nil, missing(what, "table")
	case remove.Where == nil && !remove.All:
		return nil, fault.Invalid("FIELD_MISSING", `Delete without a filter deletes every row: say "all": true, or give "where"`)
	case remove.Where != nil && remove.All:
		return nil, fault.Invalid("FIELD_CONFLICT", `Delete takes a filter or "all": true, not both`)
	}
	return remove, nil
}

// ParseSnapshot reads the body of RenewSnapshot or ReleaseSnapshot; action
// names it.
func ParseSnapshot(action string, body []byte) (id string, err error) {
	what := "body of " + action
	if err := object(what, body, fields{"snapshot": filled(&id)}); err != nil {
		return "", err
	}
	if id == "" {
		return "", missing(what, "snapshot")
	}
	return id, nil
}

func base64Bytes(to *[]byte) func(jsontext.Value) error {
	return func(value jsontext.Value) error {
		var encoded string
		if text(&encoded)(value) != nil || encoded == "" {
			return must("base64 of an Arrow schema message")
		}
		decoded, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return must("base64 of an Arrow schema message")
		}
		*to = decoded
		return nil
	}
}

// short reads text of at most so many bytes.
func short(to *string, most int) func(jsontext.Value) error {
	return func(value jsontext.Value) error {
		if err := filled(to)(value); err != nil {
			return err
		}
		if len(*to) > most {
			return must("text of at most %d bytes", most)
		}
		return nil
	}
}

func renames(to *map[string]string) func(jsontext.Value) error {
	return func(value jsontext.Value) error {
		want := must(`an object {"old": "new"}`)
		if value.Kind() != '{' {
			return want
		}
		*to = map[string]string{}
		decoder := jsontext.NewDecoder(bytes.NewReader(value))
		if _, err := decoder.ReadToken(); err != nil {
			return err
		}
		for decoder.PeekKind() != '}' {
			old, err := decoder.ReadToken()
			if err != nil {
				return err
			}
			from := old.String()
			renamed, err := decoder.ReadValue()
			if err != nil {
				return err
			}
			var name string
			if filled(&name)(renamed) != nil {
				return want
			}
			(*to)[from] = name
		}
		if len(*to) == 0 {
			return want
		}
		return nil
	}
}
