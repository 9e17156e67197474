package pushdown

import (
	"slices"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards"
)

// Expr is a predicate over one table's rows with SQL's three truth values. The
// kinds are closed: *and, *or, *constant, and the leaves *comparison, *rowIn and
// *nullTest. It is immutable, and bound to the columns of the schema it was made
// for. Only Not negates, and it does so at once, so no node stands for NOT.
type Expr interface {
	// negate is NOT of the expression.
	negate() Expr
	// render writes the expression as SQL text.
	render(w *writer)
	// boxes is what the expression says about single columns.
	boxes(w *effort) boxes
	// compile makes the expression's evaluator.
	compile(c *compiler) mask
}

type and struct{ args []Expr }
type or struct{ args []Expr }

// constant is TRUE or FALSE for every row.
type constant bool

// comparison tests one column against a set of its values. For a row whose
// column is not null it is TRUE for the members of the set, else FALSE, and the
// reverse if except; for a null it is unknown. A NaN is no member of any set.
// withNull is a NULL among the literals: where the column's value is no member,
// the outcome is unknown.
type comparison struct {
	column   *column
	op       Op
	values   []Literal // as written, for the text
	set      set
	except   bool
	withNull bool
}

// nullTest is IS NULL, or IS NOT NULL if except.
type nullTest struct {
	column *column
	except bool
}

// Op is a comparison operator.
type Op uint8

// The operators of Compare and CompareRow come first.
const (
	Equal Op = iota
	NotEqual
	Less
	LessEqual
	Greater
	GreaterEqual
	in
	between
	startsWith
)

// True and False are the constants.
func True() Expr  { return constant(true) }
func False() Expr { return constant(false) }

// And is TRUE where all arguments are, and TRUE without any.
func And(args ...Expr) Expr {
	var flat []Expr
	for _, arg := range args {
		switch arg := arg.(type) {
		case constant:
			if !arg {
				return arg
			}
		case *and:
			flat = append(flat, arg.args...)
		default:
			flat = append(flat, arg)
		}
	}
	switch len(flat) {
	case 0:
		return True()
	case 1:
		return flat[0]
	}
	return &and{flat}
}

// Or is TRUE where any argument is, and FALSE without any.
func Or(args ...Expr) Expr {
	var flat []Expr
	for _, arg := range args {
		switch arg := arg.(type) {
		case constant:
			if arg {
				return arg
			}
		case *or:
			flat = append(flat, arg.args...)
		default:
			flat = append(flat, arg)
		}
	}
	switch len(flat) {
	case 0:
		return False()
	case 1:
		return flat[0]
	}
	return &or{flat}
}

// Not is SQL's NOT: unknown stays unknown.
func Not(arg Expr) Expr { return arg.negate() }

func (e constant) negate() Expr { return !e }

func (e *and) negate() Expr { return Or(negated(e.args)...) }

func (e *or) negate() Expr { return And(negated(e.args)...) }

func negated(args []Expr) []Expr {
	out := make([]Expr, len(args))
	for i, arg := range args {
		out[i] = arg.negate()
	}
	return out
}

func (e *nullTest) negate() Expr { return &nullTest{e.column, !e.except} }

// negate turns an order comparison round where that is the same, so that it can
// still become a range: not for floats, whose NaNs hold for neither.
func (e *comparison) negate() Expr {
	opposite := *e
	if e.op >= Less && e.op <= GreaterEqual && e.column.domain.kind != float && !e.withNull && !e.except {
		opposite.op = [...]Op{Less: GreaterEqual, LessEqual: Greater, Greater: LessEqual, GreaterEqual: Less}[e.op]
		opposite.set = e.column.domain.complement(e.set)
		return &opposite
	}
	opposite.except = !e.except
	return &opposite
}

// IsNull is the test for null, of a column of any type.
func IsNull(schema *shards.Schema, name string) (Expr, error) {
	c, err := findColumn(schema, name)
	if err != nil {
		return nil, err
	}
	if c.notNull {
		return False(), nil
	}
	return &nullTest{column: c}, nil
}

// Compare is a column compared with a literal by one of the operators Equal to
// GreaterEqual.
func Compare(schema *shards.Schema, name string, op Op, value Literal) (Expr, error) {
	c, err := findColumn(schema, name)
	if err != nil {
		return nil, err
	}
	return c.compare(op, value)
}

func (c *column) compare(op Op, value Literal) (Expr, error) {
	value, err := c.bind(value)
	if err != nil {
		return nil, err
	}
	e := &comparison{column: c, op: op, values: []Literal{value}, except: op == NotEqual}
	if op == NotEqual {
		e.op = Equal
	}
	if c.unknown(value) {
		e.withNull = true
		return e, nil
	}
	e.set = c.domain.compared(e.op, value)
	return e, nil
}

// unknown is true for a literal with which every comparison is unknown.
func (c *column) unknown(value Literal) bool {
	return value.kind == nullLiteral || c.domain.kind == nothing
}

// compared is the set of values for which `value op l` is true.
func (d domain) compared(op Op, l Literal) set {
	from, behind, ok := d.cuts(l)
	if !ok {
		return nil
	}
	switch op {
	case Less:
		return setOf(d.least(), from)
	case LessEqual:
		return setOf(d.least(), behind)
	case Greater:
		return setOf(behind, endCut)
	case GreaterEqual:
		return setOf(from, endCut)
	}
	return setOf(from, behind)
}

// In is TRUE if the column equals one of the values. NOT IN is its Not.
func In(schema *shards.Schema, name string, values []Literal) (Expr, error) {
	c, err := findColumn(schema, name)
	if err != nil {
		return nil, err
	}
	if err := checkCount(c.name, len(values)); err != nil {
		return nil, err
	}
	e := &comparison{column: c, op: in}
	spans := make([]span, 0, len(values))
	for _, value := range values {
		if value, err = c.bind(value); err != nil {
			return nil, err
		}
		e.values = append(e.values, value)
		if c.unknown(value) {
			e.withNull = true
		} else if from, behind, ok := c.domain.cuts(value); ok {
			if s, ok := newSpan(from, behind); ok {
				spans = append(spans, s)
			}
		}
	}
	if len(values) == 0 {
		if c.domain.kind == unordered {
			_, err := c.bind(Null())
			return nil, err
		}
		return False(), nil
	}
	e.set = normalise(spans)
	return e, nil
}

func checkCount(name string, values int) error {
	if values <= limits.InValues {
		return nil
	}
	return fault.New(fault.ResourceExhausted, "IN_LIMIT", "the list for column %q has %d values; the limit is %d: ask in several queries",
		clip(name), values, limits.InValues)
}

// Between is low <= column AND column <= high.
func Between(schema *shards.Schema, name string, low, high Literal) (Expr, error) {
	c, err := findColumn(schema, name)
	if err != nil {
		return nil, err
	}
	from, err := c.compare(GreaterEqual, low)
	if err != nil {
		return nil, err
	}
	to, err := c.compare(LessEqual, high)
	if err != nil {
		return nil, err
	}
	a, b := from.(*comparison), to.(*comparison)
	if a.withNull || b.withNull {
		return And(a, b), nil
	}
	return &comparison{column: c, op: between, values: slices.Concat(a.values, b.values), set: a.set.intersect(b.set)}, nil
}

// StartsWith is TRUE for strings or binary values that begin with the prefix.
func StartsWith(schema *shards.Schema, name string, prefix Literal) (Expr, error) {
	c, err := findColumn(schema, name)
	if err != nil {
		return nil, err
	}
	if !c.domain.bytewise() && c.domain.kind != nothing {
		return nil, fault.Invalid("OPERATOR_TYPE", "column %q is %s; starts_with takes string and binary columns", clip(c.name), c.declared)
	}
	if prefix, err = c.bind(prefix); err != nil {
		return nil, err
	}
	e := &comparison{column: c, op: startsWith, values: []Literal{prefix}}
	if c.unknown(prefix) {
		e.withNull = true
		return e, nil
	}
	e.set = setOf(c.domain.prefixCuts(prefix.text))
	return e, nil
}
