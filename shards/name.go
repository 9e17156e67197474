package shards

import (
	"strings"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/limits"
)

// DefaultNamespace holds the tables that are named without a namespace.
const DefaultNamespace = "main"

// Name is a table's full name; the namespace is never empty.
type Name struct{ Namespace, Table string }

// ParseName reads "table" or "namespace.table". What breaks the rules of names
// is an INVALID_ARGUMENT error NAME_INVALID.
func ParseName(text string) (Name, error) {
	namespace, table, dotted := strings.Cut(text, ".")
	if !dotted {
		namespace, table = DefaultNamespace, text
	}
	n := Name{Namespace: namespace, Table: table}
	return n, n.check()
}

// String is the name as users write it: without the namespace if that is main.
func (n Name) String() string {
	if n.Namespace == DefaultNamespace {
		return n.Table
	}
	return n.Namespace + "." + n.Table
}

func (n Name) check() error {
	for _, part := range []string{n.Namespace, n.Table} {
		if !validName(part) {
			return fault.Invalid("NAME_INVALID", "%.300q is no table name: write table or namespace.table, "+
				"each of letters, digits and _, not beginning with a digit, at most %d bytes",
				n.Namespace+"."+n.Table, limits.NameBytes)
		}
	}
	return nil
}

func validName(s string) bool {
	if s == "" || len(s) > limits.NameBytes || s[0] >= '0' && s[0] <= '9' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}

// nearest is the up to three names closest to the one asked for, for messages.
func nearest(asked string, names []string) []string {
	type near struct {
		name     string
		distance int
	}
	var found []near
	for _, name := range names {
		if d := editDistance(strings.ToLower(asked), strings.ToLower(name)); d <= 1+len(asked)/3 {
			found = append(found, near{name, d})
		}
	}
	var out []string
	for len(out) < 3 && len(found) > 0 {
		best := 0
		for i, f := range found {
			if f.distance < found[best].distance {
				best = i
			}
		}
		out = append(out, found[best].name)
		found = append(found[:best], found[best+1:]...)
	}
	return out
}

// editDistance counts the single-byte insertions, deletions and replacements
// between two names (Levenshtein, two rows of the table).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
