package pushdown

import (
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/shards"
	"github.com/sheaf-db/sheaf/shards/block"
)

// column is a column that a filter names, found in a schema.
type column struct {
	id        uint32
	name      string
	declared  arrow.DataType // for messages
	canonical arrow.DataType
	domain    domain
	key       int  // place in the primary key, or -1
	notNull   bool // no row has a null there
}

// findColumn finds a column by its exact name. The hidden id of a table without
// key and the rows' version are columns too.
func findColumn(schema *shards.Schema, name string) (*column, error) {
	if name == shards.CommitName {
		dt := arrow.PrimitiveTypes.Uint64
		return &column{
			id: block.ColumnCommit, name: name, declared: dt, canonical: dt, domain: domainOf(dt),
			key: -1, notNull: true,
		}, nil
	}
	if name == shards.ExpiresName {
		return nil, fault.New(fault.Unimplemented, "NOT_IMPLEMENTED", "column %s is not implemented by this version: no row expires", name)
	}
	i, ok := schema.Column(name)
	if !ok {
		return nil, ColumnNotFound(schema, name)
	}
	c := &schema.Columns[i]
	key := slices.Index(schema.KeyColumns(), i)
	return &column{
		id: c.ID, name: name, declared: c.Field.Type, canonical: c.Canonical, domain: domainOf(c.Canonical),
		key: key, notNull: key >= 0,
	}, nil
}

// ColumnNotFound is the error for a column name that the table does not have;
// it names up to three that are spelt much like it.
func ColumnNotFound(schema *shards.Schema, name string) error {
	missing := fault.Invalid("COLUMN_NOT_FOUND", "there is no column %q", clip(name))
	names := make([]string, len(schema.Columns))
	for i, c := range schema.Columns {
		names[i] = c.Field.Name
	}
	var quoted []string
	for _, near := range shards.Nearest(name, names) {
		quoted = append(quoted, identifier(near))
	}
	if len(quoted) > 0 {
		return missing.With("; did you mean %s?", strings.Join(quoted, " or "))
	}
	for _, shown := range names[:min(10, len(names))] {
		quoted = append(quoted, identifier(shown))
	}
	if len(names) > 10 {
		quoted = append(quoted, "…")
	}
	return missing.With("; the columns are %s", strings.Join(quoted, ", "))
}

// identifier is a name as SQL writes it: bare where that is unambiguous.
func identifier(name string) string {
	bare := name != ""
	for i := range len(name) {
		c := name[i]
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		bare = bare && (letter || i > 0 && c >= '0' && c <= '9')
	}
	if bare {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}
