package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
)

// query is the JSON of a ticket, as docs/wire.md describes it.
type query struct {
	Table     string          `json:"table"`
	Columns   *[]string       `json:"columns,omitempty"`
	Where     json.RawMessage `json:"where,omitempty"`
	Keys      json.RawMessage `json:"keys,omitempty"`
	Order     string          `json:"order,omitempty"`
	Limit     *int64          `json:"limit,omitempty"`
	After     json.RawMessage `json:"after,omitempty"`
	Slices    []int           `json:"slices,omitempty"`
	Snapshot  any             `json:"snapshot,omitempty"`
	Endpoints any             `json:"endpoints,omitempty"`
	Analyze   bool            `json:"analyze,omitempty"`
}

// queryFlags are the flags of every command that asks a question.
type queryFlags struct {
	columns                  []string
	where                    []string
	keys, after              string
	order, snapshot          string
	limit                    int64
	slices                   []int
	limitGiven, columnsGiven func() bool
}

const queryHelp = `
--where takes JSON as docs/wire.md has it: one condition ["column", op, value], a
list of conditions that must all hold, or a list of such lists, of which any may
hold. It may be given several times; then all must hold. Operators: = != < <= >
>= in, not in, between, starts_with, is null, is not null.

  --where '["device", "=", "d7"]' --where '["ts", ">=", "2026-01-01T00:00:00Z"]'
  --where '[["device", "in", ["d7", "d8"]], ["fare", ">", 10.5]]'
  --where '[[["device", "=", "d7"]], [["fare", "is null"]]]'`

func (f *queryFlags) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringSliceVar(&f.columns, "columns", nil, "columns wanted, in this order (default all)")
	flags.StringArrayVar(&f.where, "where", nil, "condition as JSON; repeat it for more that must hold")
	flags.StringVar(&f.keys, "keys", "", "primary keys as a JSON list, read in the order given")
	flags.StringVar(&f.order, "order", "", "asc or desc, by the whole primary key (default any order)")
	flags.Int64Var(&f.limit, "limit", 0, "at most so many rows (0: no limit)")
	flags.StringVar(&f.after, "after", "", "go on behind a row: a marker, or its primary key as a JSON list")
	flags.IntSliceVar(&f.slices, "slice", nil, "read only this slice; repeat it, or give a list, for several")
	flags.StringVar(&f.snapshot, "snapshot", "", "read as of the snapshot of this id")
	f.limitGiven = func() bool { return flags.Changed("limit") }
	f.columnsGiven = func() bool { return flags.Changed("columns") }
}

// query checks the flags and makes the question of them.
func (f *queryFlags) query(table string) (*query, error) {
	where, err := joinConditions(f.where)
	if err != nil {
		return nil, err
	}
	q := &query{Table: table, Where: where, Order: f.order, Slices: f.slices}
	if f.columnsGiven() {
		q.Columns = &f.columns
	}
	if f.limit < 0 {
		return nil, usageError{fmt.Errorf("--limit %d is negative", f.limit)}
	}
	if f.limit > 0 {
		q.Limit = &f.limit
	}
	if f.snapshot != "" {
		q.Snapshot = f.snapshot
	}
	if f.keys != "" {
		if !json.Valid([]byte(f.keys)) {
			return nil, usageError{fmt.Errorf("--keys is not JSON: %s", f.keys)}
		}
		q.Keys = json.RawMessage(f.keys)
	}
	if f.after != "" {
		q.After = jsonOrText(f.after)
	}
	return q, nil
}

// jsonOrText is text itself where it is a JSON list or string, else text as a
// JSON string: markers need no quotes of their own on the command line.
func jsonOrText(text string) json.RawMessage {
	if json.Valid([]byte(text)) && (text[0] == '[' || text[0] == '"') {
		return json.RawMessage(text)
	}
	quoted, _ := json.Marshal(text) // strings always encode
	return quoted
}

// joinConditions makes one `where` of the values of all --where flags.
func joinConditions(given []string) (json.RawMessage, error) {
	var all []json.RawMessage
	for _, text := range given {
		var list []json.RawMessage
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			return nil, usageError{fmt.Errorf("--where must be a JSON list, as [\"column\", \"=\", 5]: %s: %w", text, err)}
		}
		switch {
		case isCondition(list):
			all = append(all, json.RawMessage(text))
		case len(given) == 1:
			return json.RawMessage(text), nil
		case everyCondition(list):
			all = append(all, list...)
		default:
			return nil, usageError{fmt.Errorf("--where with alternatives cannot be joined with another --where: %s", text)}
		}
	}
	if all == nil {
		return nil, nil
	}
	text := []byte{'['}
	for i, condition := range all { // as given: what json.Marshal would do to < is no help
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, condition...)
	}
	return append(text, ']'), nil
}

// isCondition tells [column, operator, …] from a list of such: the operator is
// a string.
func isCondition(list []json.RawMessage) bool {
	var operator string
	return len(list) >= 2 && len(list) <= 3 && json.Unmarshal(list[1], &operator) == nil
}

func everyCondition(list []json.RawMessage) bool {
	for _, item := range list {
		var inner []json.RawMessage
		if json.Unmarshal(item, &inner) != nil || !isCondition(inner) {
			return false
		}
	}
	return true
}
