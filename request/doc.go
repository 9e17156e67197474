// Package request reads the JSON that clients send: queries (tickets and
// descriptor commands), DoPut commands and action bodies.
//
// It is strict, so that a misspelt field is an error and never a wider answer:
// field names are exact, unknown and repeated fields are refused by name, null
// is not "absent", text must be UTF-8, nesting is bounded before anything
// recurses, numbers keep their exact text. What flows in is bytes; what flows
// out is a plain struct, or a *fault.Error that names the field.
//
// The package knows no table: filters, keys and markers stay raw JSON for
// package pushdown, which knows the columns; names are checked by the store.
// Fields of the contract that are not built answer UNIMPLEMENTED.
package request
