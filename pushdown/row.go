package pushdown

import (
	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards"
)

// Row values are compared as in SQL: column by column for (in)equality, by the
// first column that differs for the order.

// rowIn tests several columns against a list of rows: TRUE if they equal one of
// them, in SQL's sense about nulls; the reverse if except.
type rowIn struct {
	columns []*column
	rows    [][]Literal // bound
	except  bool
}

func (e *rowIn) negate() Expr { return &rowIn{e.columns, e.rows, !e.except} }

// CompareRow compares several columns with as many literals, as row values.
func CompareRow(schema *shards.Schema, names []string, op Op, values []Literal) (Expr, error) {
	columns, err := findRow(schema, names)
	if err != nil {
		return nil, err
	}
	if err := checkRow(columns, values); err != nil {
		return nil, err
	}
	// compare is column i against its value; the operators in front of the last
	// column are strict.
	compare := func(i int, op Op) Expr {
		e, failed := columns[i].compare(op, values[i])
		if failed != nil && err == nil {
			err = failed
		}
		return e
	}
	last := len(columns) - 1
	switch op {
	case Equal, NotEqual:
		args := make([]Expr, len(columns))
		for i := range columns {
			args[i] = compare(i, Equal)
		}
		if err != nil {
			return nil, err
		}
		if op == NotEqual {
			return Not(And(args...)), nil
		}
		return And(args...), nil
	}
	strict := op
	if op == LessEqual {
		strict = Less
	} else if op == GreaterEqual {
		strict = Greater
	}
	result := compare(last, op)
	for i := last - 1; i >= 0 && err == nil; i-- {
		result = Or(compare(i, strict), And(compare(i, Equal), result))
	}
	if err != nil {
		return nil, err
	}
	return result, nil
}

// InRows is TRUE if the columns equal one of the rows. NOT IN is its Not.
func InRows(schema *shards.Schema, names []string, rows [][]Literal) (Expr, error) {
	columns, err := findRow(schema, names)
	if err != nil {
		return nil, err
	}
	if err := checkCount(names[0], len(rows)); err != nil {
		return nil, err
	}
	e := &rowIn{columns: columns}
	for _, row := range rows {
		if err := checkRow(columns, row); err != nil {
			return nil, err
		}
		bound := make([]Literal, len(row))
		for i, c := range columns {
			if bound[i], err = c.bind(row[i]); err != nil {
				return nil, err
			}
		}
		e.rows = append(e.rows, bound)
	}
	if len(rows) == 0 {
		return False(), nil
	}
	return e, nil
}

func findRow(schema *shards.Schema, names []string) ([]*column, error) {
	if len(names) == 0 || len(names) > limits.RowColumns {
		return nil, fault.Invalid("FILTER_INVALID", "a row value has 1 to %d columns, not %d", limits.RowColumns, len(names))
	}
	columns := make([]*column, len(names))
	for i, name := range names {
		var err error
		if columns[i], err = findColumn(schema, name); err != nil {
			return nil, err
		}
	}
	return columns, nil
}

func checkRow(columns []*column, values []Literal) error {
	if len(columns) != len(values) {
		return fault.Invalid("FILTER_INVALID", "a row value of %d columns, from %q on, is compared with %d values",
			len(columns), clip(columns[0].name), len(values))
	}
	return nil
}
