package request_test

import (
	"fmt"

	"github.com/sheaf-db/sheaf/request"
)

// What is misspelt is refused by name, never ignored.
func ExampleParseQuery() {
	query, err := request.ParseQuery([]byte(`{"table": "trips", "columns": ["ts"], "limit": 10}`))
	fmt.Println(query.Table, query.Columns, query.Limit, err)
	_, err = request.ParseQuery([]byte(`{"table": "trips", "Limit": 10}`))
	fmt.Println(err)
	// Output:
	// trips [ts] 10 <nil>
	// [FIELD_UNKNOWN] the query has no field "Limit"; its fields are after, columns, endpoints, filter, keys, limit, order, params, slices, snapshot, sql, substrait, table, where
}
