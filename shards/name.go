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
