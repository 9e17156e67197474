package pushdown

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards"
	"github.com/sheaf-db/sheaf/shards/key"
	"github.com/sheaf-db/sheaf/shards/run"
)

// KeyPrefix is one of the keys that a query lists: a primary key, or a leading
// part of one that holds the whole sharding key.
type KeyPrefix struct {
	Encoded []byte
	Slice   int
	Columns int // how many key columns it has
}

// Range has the rows whose primary key begins with the prefix.
func (k KeyPrefix) Range() run.Range {
	return run.Range{Slice: k.Slice, Low: k.Encoded, High: key.Next(k.Encoded)}
}

// ParseKeys reads the JSON of a query's `keys`: a list of lists of values, in
// the order of the primary key's columns; of a sharding key of one column the
// value alone will do. The result is in the order asked, repeated keys included.
func ParseKeys(keys []byte, schema *shards.Schema) ([]KeyPrefix, error) {
	if err := checkSize(keys); err != nil {
		return nil, err
	}
	items, err := listOf(keys, "`keys`")
	if err != nil {
		return nil, err
	}
	if len(items) > limits.InValues {
		return nil, fault.New(fault.ResourceExhausted, "IN_LIMIT", "`keys` has %d keys; the limit is %d: ask in several queries", len(items), limits.InValues)
	}
	columns, err := keyColumns(schema)
	if err != nil {
		return nil, err
	}
	out := make([]KeyPrefix, len(items))
	for i, item := range items {
		parts := []jsontext.Value{item}
		if item.Kind() == '[' {
			if parts, err = listOf(item, "a key"); err != nil {
				return nil, err
			}
		}
		if len(parts) < len(schema.Sharding) || len(parts) > len(columns) {
			return nil, fault.Invalid("KEY_INVALID", "key %d, %s, has %d values; a key has at least the %d of the sharding key and at most the %d of the primary key",
				i, shownValue(item), len(parts), len(schema.Sharding), len(columns))
		}
		encoded, err := encodeKey(columns, parts)
		if err != nil {
			return nil, fault.Of(err).With(" (key %d)", i)
		}
		sharding, err := key.Prefix(schema.KeyTypes(), encoded, len(schema.Sharding))
		if err != nil {
			return nil, err
		}
		out[i] = KeyPrefix{encoded, schema.SliceOf(encoded[:sharding]), len(parts)}
	}
	return out, nil
}

// ParseAfter reads the JSON of a query's `after` that names a row: the list of
// its primary key's values. The result is the encoded key.
func ParseAfter(after []byte, schema *shards.Schema) ([]byte, error) {
	if err := checkSize(after); err != nil {
		return nil, err
	}
	parts, err := listOf(after, "`after`")
	if err != nil {
		return nil, err
	}
	columns, err := keyColumns(schema)
	if err != nil {
		return nil, err
	}
	if len(parts) != len(columns) {
		return nil, fault.Invalid("KEY_INVALID", "`after` has %d values; it names a row by all %d values of its primary key", len(parts), len(columns))
	}
	return encodeKey(columns, parts)
}

func keyColumns(schema *shards.Schema) ([]*column, error) {
	columns := make([]*column, len(schema.KeyColumns()))
	for i, at := range schema.KeyColumns() {
		var err error
		if columns[i], err = findColumn(schema, schema.Columns[at].Field.Name); err != nil {
			return nil, err
		}
	}
	return columns, nil
}

// encodeKey encodes the values of the first key columns, each of which must be
// a value that the column can hold. The error is a *fault.Error.
func encodeKey(columns []*column, parts []jsontext.Value) ([]byte, error) {
	var out []byte
	for i, part := range parts {
		c := columns[i]
		literal, err := parseLiteral(c.name, part)
		if err != nil {
			return nil, err
		}
		if literal.IsNull() {
			return nil, fault.Invalid("KEY_INVALID", "column %q is part of the key and never null", clip(c.name))
		}
		if literal, err = c.bind(literal); err != nil {
			return nil, err
		}
		point := c.domain.compared(Equal, literal)
		if len(point) != 1 {
			return nil, fault.Invalid("KEY_INVALID", "column %q is %s, which cannot hold %s", clip(c.name), c.declared, literal)
		}
		encoded, err := encodeSet(c.domain, point)
		if err != nil {
			return nil, fault.New(fault.Internal, "INTERNAL", "the key column %q cannot be encoded: %w", clip(c.name), err)
		}
		out = append(out, encoded[0].low...)
	}
	return out, nil
}

// BuildKeys plans a list of keys with a filter, nil for none, that their rows
// must pass. The plan is in key order, each row once, whatever the order and
// repetition of the list.
func BuildKeys(schema *shards.Schema, keys []KeyPrefix, e Expr) *Plan {
	p := &Plan{Of: schema.Slices, keys: len(keys)}
	if _, isConstant := e.(constant); !isConstant {
		p.Residual = e
	}
	r := &ranger{schema: schema}
	for _, k := range keys {
		access := RangeAccess
		switch k.Columns {
		case len(schema.KeyColumns()):
			access = Point
		case len(schema.Sharding):
			access = Shard
		}
		found := k.Range()
		r.add(found.Slice, bytes.Clone(found.Low), found.High, access)
	}
	r.gather()
	p.take(r.out)
	if e == False() || len(r.out) == 0 {
		p.nothing()
	}
	return p
}
