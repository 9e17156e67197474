package request_test

import (
	"testing"

	"github.com/sheaf-db/sheaf/request"
)

// BenchmarkParseQuery: a ticket's JSON, without its filter, which waits for the
// table's schema.
func BenchmarkParseQuery(b *testing.B) {
	for name, ticket := range map[string]string{
		"lookup": `{"table": "events", "where": [["device", "=", "device-00042"]]}`,
		"page": `{"table": "ns.events", "columns": ["device", "ts", "load", "message"], "order": "desc", "limit": 1000,
			"after": ["device-00042", "2024-01-05T00:00:00"], "where": [["ts", ">=", "2024-01-01"], ["load", "<", 0.5]]}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := request.ParseQuery([]byte(ticket)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
