package pushdown

import (
	"fmt"
	"strings"
)

// maxListed is how many values of a list a plan shows, maxText about how many
// bytes of a whole filter.
const (
	maxListed = 8
	maxText   = 4096
)

// writer writes an expression as SQL. What goes beyond maxText is left out.
type writer struct{ strings.Builder }

// String is the expression as SQL text, for messages and plans: long lists and
// literals are shortened.
func String(e Expr) string {
	w := &writer{}
	e.render(w)
	return w.String()
}

func (e constant) render(w *writer) {
	if e {
		w.WriteString("TRUE")
	} else {
		w.WriteString("FALSE")
	}
}

func (e *and) render(w *writer) { w.join(e.args, " AND ") }

func (e *or) render(w *writer) { w.join(e.args, " OR ") }

func (w *writer) join(args []Expr, operator string) {
	for i, arg := range args {
		if i > 0 {
			w.WriteString(operator)
		}
		if w.Len() > maxText {
			fmt.Fprintf(w, "… %d more", len(args)-i)
			return
		}
		switch arg.(type) {
		case *and, *or:
			w.WriteByte('(')
			arg.render(w)
			w.WriteByte(')')
		default:
			arg.render(w)
		}
	}
}

func (e *nullTest) render(w *writer) {
	w.WriteString(identifier(clip(e.column.name)))
	if e.except {
		w.WriteString(" IS NOT NULL")
	} else {
		w.WriteString(" IS NULL")
	}
}

func (e *comparison) render(w *writer) {
	name := identifier(clip(e.column.name))
	not := ""
	if e.except {
		not = "NOT "
	}
	switch e.op {
	case in:
		w.WriteString(name + " " + not + "IN ")
		w.list(len(e.values), func(i int) { w.WriteString(e.values[i].String()) })
	case between:
		w.WriteString(name + " " + not + "BETWEEN " + e.values[0].String() + " AND " + e.values[1].String())
	case startsWith:
		w.WriteString(not + "starts_with(" + name + ", " + e.values[0].String() + ")")
	case Equal:
		operator := " = "
		if e.except {
			operator = " != "
		}
		w.WriteString(name + operator + e.values[0].String())
	default:
		operator := [...]string{Less: " < ", LessEqual: " <= ", Greater: " > ", GreaterEqual: " >= "}[e.op]
		text := name + operator + e.values[0].String()
		if e.except {
			text = "NOT (" + text + ")"
		}
		w.WriteString(text)
	}
}

func (e *rowIn) render(w *writer) {
	w.list(len(e.columns), func(i int) { w.WriteString(identifier(clip(e.columns[i].name))) })
	if e.except {
		w.WriteString(" NOT")
	}
	w.WriteString(" IN ")
	w.list(len(e.rows), func(row int) {
		w.list(len(e.columns), func(i int) { w.WriteString(e.rows[row][i].String()) })
	})
}

// list writes (a, b, … 12 more).
func (w *writer) list(n int, item func(i int)) {
	w.WriteByte('(')
	for i := range n {
		if i > 0 {
			w.WriteString(", ")
		}
		if i == maxListed && n > maxListed+1 {
			fmt.Fprintf(w, "… %d more", n-maxListed)
			break
		}
		item(i)
	}
	w.WriteByte(')')
}
