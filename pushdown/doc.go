// Package pushdown turns filters into what a scan needs: key ranges, and a
// residual that is evaluated row by row for what the ranges do not say.
//
// One predicate tree (Expr) serves every form of filter. A form's parser reads
// its own syntax and calls the constructors (Compare, In, Between, StartsWith,
// IsNull, CompareRow, InRows, And, Or, Not) with column names and Literals; the
// constructors find the column, check the literal's kind and turn the
// comparison into a set of the column's values. That is the only place where
// literals meet types, so all forms agree about it. ParseWhere is the parser of
// the JSON `where`; ParseKeys and ParseAfter read primary keys.
//
//	where ─ParseWhere→ Expr ─Build→ Plan ─┬→ Ranges, Slices   for the scan
//	                                      ├→ Filter           run.Filter
//	                                      └→ Report           what Explain says
//
// Negation is pushed down to the leaves when a tree is made, so a tree holds no
// NOT, and "is the filter true for this row" needs no third truth value above
// the leaves: AND and OR of "true" are enough, a null makes its leaf not true.
//
// The rows in a plan's ranges for which its residual is true are exactly the
// filter's rows. Filters are pure functions over arrays and block zones; the
// package does no I/O, keeps no Arrow memory and is safe for use by several
// goroutines once a plan is built. docs/filters.md is its user's view.
package pushdown
