package request

import (
	"math"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/limits"
)

// MaxEndpoints bounds how many tickets one GetFlightInfo hands out.
const MaxEndpoints = 10_000

// Order is how a query wants its rows.
type Order uint8

// By the whole primary key, forwards or backwards, or any order.
const (
	OrderAny Order = iota
	OrderAsc
	OrderDesc
)

// Split is how GetFlightInfo cuts a result into endpoints.
type Split struct {
	Slices bool // one endpoint per slice touched
	Count  int  // else about so many; 1 is the default
}

// One reports whether the result has a single endpoint.
func (s Split) One() bool { return !s.Slices && s.Count == 1 }

// Query is a read of one table. Raw JSON values are for package pushdown; nil
// means that the field was not given.
type Query struct {
	Table    string
	Columns  []string       // nil: all; empty: rows without columns
	Where    jsontext.Value // list of conditions or of lists of conditions
	Keys     jsontext.Value // list of primary keys or leading parts
	Order    Order
	Limit    int64          // -1: none
	After    jsontext.Value // a marker (JSON string) or a list of key values
	Slices   []int          // nil: all; sorted, distinct, 0 to limits.MaxSlices-1
	Snapshot string         // id, or "" for the newest state
	Pin      bool           // "snapshot": true
	Split    Split
	Analyze  bool // Explain only
}

// Whole is the query for every row and column of a table.
func Whole(table string) *Query {
	return &Query{Table: table, Limit: -1, Split: Split{Count: 1}}
}

// ParseQuery reads the JSON of a ticket or of a descriptor's command.
func ParseQuery(body []byte) (*Query, error) {
	query := Whole("")
	return query, query.parse("query", body, query.fields())
}

// ParseExplain reads the body of the action Explain: a query and "analyze".
func ParseExplain(body []byte) (*Query, error) {
	query := Whole("")
	known := query.fields()
	known["analyze"] = flag(&query.Analyze)
	return query, query.parse("body of Explain", body, known)
}

func (q *Query) fields() fields {
	known := filters(&q.Where)
	known["table"] = filled(&q.Table)
	known["columns"] = names(&q.Columns)
	known["keys"] = raw(&q.Keys, "[", "a list of keys")
	known["sql"] = unbuilt("sql")
	known["order"] = func(value jsontext.Value) error {
		var order string
		if text(&order)(value) == nil && order == "asc" {
			q.Order = OrderAsc
		} else if order == "desc" {
			q.Order = OrderDesc
		} else {
			return must(`"asc" or "desc"`)
		}
		return nil
	}
	known["limit"] = whole(&q.Limit, 0, math.MaxInt64)
	known["after"] = raw(&q.After, `"[`, "a marker or a list of primary-key values")
	known["slices"] = func(value jsontext.Value) error {
		want := "a list of slice numbers"
		q.Slices = []int{}
		err := elements(value, want, func(value jsontext.Value) error {
			var slice int64
			if whole(&slice, 0, limits.MaxSlices-1)(value) != nil {
				return must("%s from 0 to %d", want, limits.MaxSlices-1)
			}
			q.Slices = append(q.Slices, int(slice))
			return nil
		})
		slices.Sort(q.Slices)
		q.Slices = slices.Compact(q.Slices)
		return err
	}
	known["snapshot"] = func(value jsontext.Value) error {
		if value.Kind() == 't' {
			q.Pin = true
			return nil
		}
		if filled(&q.Snapshot)(value) != nil {
			return must("a snapshot's id, or true")
		}
		return nil
	}
	known["endpoints"] = func(value jsontext.Value) error {
		want := must(`"one", "slices" or a number from 1 to %d`, MaxEndpoints)
		if value.Kind() == '"' {
			var split string
			if err := text(&split)(value); err != nil || split != "one" && split != "slices" {
				return want
			}
			q.Split = Split{Slices: split == "slices", Count: 1}
			return nil
		}
		var count int64
		if whole(&count, 1, MaxEndpoints)(value) != nil {
			return want
		}
		q.Split = Split{Count: int(count)}
		return nil
	}
	return known
}

// filters are the fields that say which rows; they serve Delete too.
func filters(where *jsontext.Value) fields {
	return fields{
		"where":     raw(where, "[", "a list of conditions"),
		"filter":    unbuilt("filter"),
		"substrait": unbuilt("substrait"),
		"params":    unbuilt("params"),
	}
}

func (q *Query) parse(what string, body []byte, known fields) error {
	if err := object(what, body, known); err != nil {
		return err
	}
	switch {
	case q.Table == "":
		return missing(what, "table")
	case q.After != nil && q.Order == OrderAny:
		return fault.Invalid("FIELD_CONFLICT", `"after" needs "order": say "asc" or "desc"`)
	case q.Keys != nil && (q.Order != OrderAny || q.Limit >= 0 || q.After != nil):
		return fault.Invalid("FIELD_CONFLICT", `"keys" gives rows in the order asked: it does not go with "order", "limit" or "after"`)
	case !q.Split.One() && (q.Keys != nil || q.Order != OrderAny || q.Limit >= 0 || q.After != nil):
		return fault.Invalid("FIELD_CONFLICT", `"keys", "order", "limit" and "after" are about one result: they do not go with "endpoints" other than "one"`)
	}
	return nil
}
