package flight

import (
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// encoded is a schema as bodies carry it.
func encoded(schema *arrow.Schema) string {
	return base64.StdEncoding.EncodeToString(flight.SerializeSchema(schema, memory.DefaultAllocator))
}

func TestATableFromItsMakingToItsEnd(t *testing.T) {
	w := newWorld(t, Options{})
	create := fmt.Sprintf(`{"table":"ns.t","schema":%q,"sharding_key":["k"],"sorting_key":["s"],"slices":4}`, encoded(tripsSchema))
	made := w.acts("CreateTable", create)
	require.Equal(t, "ns.t", made["table"])
	require.Equal(t, []any{"k"}, made["sharding_key"])
	require.Equal(t, []any{"s"}, made["sorting_key"])
	require.EqualValues(t, 4, made["slices"])
	require.EqualValues(t, 0, made["rows"])
	require.Equal(t, true, made["rows_exact"])
	require.Equal(t, []any{
		map[string]any{"name": "k", "type": "string", "nullable": false, "key": "sharding"},
		map[string]any{"name": "s", "type": "int64", "nullable": false, "key": "sorting"},
		map[string]any{"name": "v", "type": "int64", "nullable": true, "key": nil},
	}, made["columns"])
	message, err := base64.StdEncoding.DecodeString(made["schema"].(string))
	require.NoError(t, err)
	schema, err := flight.DeserializeSchema(message, memory.DefaultAllocator)
	require.NoError(t, err)
	slices, _ := schema.Metadata().GetValue("sheaf.slices")
	require.Equal(t, "4", slices)

	_, err = w.act("CreateTable", create)
	fails(t, err, codes.AlreadyExists, "TABLE_EXISTS")
	w.acts("CreateTable", strings.Replace(create, "{", `{"if_not_exists":true,`, 1))
	other := strings.Replace(create, `"slices":4`, `"slices":8`, 1)
	_, err = w.act("CreateTable", strings.Replace(other, "{", `{"if_not_exists":true,`, 1))
	fails(t, err, codes.FailedPrecondition, "KEY_CONFLICT")

	w.putTrips("ns.t", `[{"k":"a","s":1,"v":1},{"k":"a","s":2,"v":2},{"k":"b","s":1,"v":3}]`)
	added := arrow.NewSchema([]arrow.Field{{Name: "w", Type: arrow.PrimitiveTypes.Int32, Nullable: true}}, nil)
	require.Len(t, w.acts("AlterTable", fmt.Sprintf(`{"table":"ns.t","add_columns":%q}`, encoded(added)))["columns"], 4)
	wider := arrow.NewSchema([]arrow.Field{{Name: "w", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	w.acts("AlterTable", fmt.Sprintf(`{"table":"ns.t","widen_columns":%q}`, encoded(wider)))
	w.acts("AlterTable", `{"table":"ns.t","rename_columns":{"v":"value","k":"key"}}`)
	require.Equal(t, []string{"a 1 1 (null)", "a 2 2 (null)", "b 1 3 (null)"}, w.rows(`{"table":"ns.t","order":"asc"}`))
	described := w.acts("AlterTable", `{"table":"ns.t","drop_columns":["value"]}`)
	require.Equal(t, []any{"key"}, described["sharding_key"])
	_, err = w.act("AlterTable", `{"table":"ns.t","drop_columns":["key"]}`)
	fails(t, err, codes.FailedPrecondition, "KEY_IMMUTABLE")

	require.Equal(t, map[string]any{"rows": 1.0, "commit": 2.0}, w.acts("Delete", `{"table":"ns.t","where":[["key","=","a"],["s",">",1]]}`))
	require.EqualValues(t, 0, w.acts("Delete", `{"table":"ns.t","where":[["key","=","zz"]]}`)["rows"])
	_, err = w.act("Delete", `{"table":"ns.t"}`)
	fails(t, err, codes.InvalidArgument, "FIELD_MISSING")
	require.Empty(t, w.acts("Fold", `{"table":"ns.t"}`))
	described = w.acts("DescribeTable", `{"table":"ns.t"}`)
	require.EqualValues(t, 2, described["rows"])
	require.Equal(t, true, described["rows_exact"])
	require.EqualValues(t, 2, w.acts("Delete", `{"table":"ns.t","all":true}`)["rows"])

	require.Empty(t, w.acts("DropTable", `{"table":"ns.t"}`))
	_, err = w.act("DropTable", `{"table":"ns.t"}`)
	fails(t, err, codes.NotFound, "TABLE_NOT_FOUND")
	require.Empty(t, w.acts("DropTable", `{"table":"ns.t","if_exists":true}`))
}

func TestExplainSaysWhatAQueryTouches(t *testing.T) {
	w := newWorld(t, Options{})
	w.putTrips("t", trips(20, 50))
	w.acts("Fold", `{"table":"t"}`)
	for query, access := range map[string]string{
		`{"table":"t"}`: "full",
		`{"table":"t","where":[["k","=","k01"]]}`:                      "shard",
		`{"table":"t","where":[["k","=","k01"],["s",">",5]]}`:          "range",
		`{"table":"t","where":[["k","=","k01"],["s","in",[1,2]]]}`:     "point",
		`{"table":"t","where":[["k","=","k01"],["k","=","k02"]]}`:      "none",
		`{"table":"t","keys":[["k01",3],["k01",1]]}`:                   "point",
		`{"table":"t","where":[["v","=",3]],"columns":[],"limit":100}`: "full",
	} {
		plan := w.acts("Explain", query)
		require.Equal(t, access, plan["access"], query)
		require.EqualValues(t, 16, plan["of"])
		require.NotContains(t, plan, "rows_scanned")
		analysed := w.acts("Explain", strings.Replace(query, "{", `{"analyze":true,`, 1))
		require.EqualValues(t, len(w.rows(query)), analysed["rows_returned"], query)
		require.Contains(t, analysed, "blocks_pruned")
		require.Contains(t, analysed, "bytes_read")
		require.Contains(t, analysed, "ms")
	}
	plan := w.acts("Explain", `{"table":"t","where":[["k","=","k01"],["v","=",3]],"columns":["v"]}`)
	require.Len(t, plan["slices"], 1)
	require.Equal(t, []any{"v"}, plan["columns"])
	require.Contains(t, plan["residual"], "v")
	require.Len(t, plan["pushed"], 1)
}

func TestStatsNameSlicesKeysAndSnapshots(t *testing.T) {
	w := newWorld(t, Options{})
	w.putTrips("t", trips(3, 50))
	stats := w.acts("Stats", `{"table":"t"}`)
	require.Len(t, stats["slices"], 16)
	require.EqualValues(t, 150, stats["rows"])
	require.Empty(t, stats["snapshots"])
	rows := 0.0
	for _, slice := range stats["slices"].([]any) {
		rows += slice.(map[string]any)["delta_rows"].(float64)
	}
	require.EqualValues(t, 150, rows)
	w.acts("Fold", `{"table":"t"}`)
	stats = w.acts("Stats", `{"table":"t"}`)
	require.NotEmpty(t, stats["largest_sharding_keys"])
	require.Contains(t, stats["largest_sharding_keys"].([]any)[0].(map[string]any)["key"], "k0")
}

func TestActionsThatAreNone(t *testing.T) {
	w := newWorld(t, Options{})
	_, err := w.act("Vacuum", `{}`)
	fails(t, err, codes.Unimplemented, "ACTION_UNKNOWN")
	_, err = w.act("Update", `{"table":"t","set":{"v":1},"all":true}`)
	fails(t, err, codes.Unimplemented, "NOT_IMPLEMENTED")
	_, err = w.act("Stats", ``)
	fails(t, err, codes.InvalidArgument, "REQUEST_INVALID")
	for _, body := range []string{`{"table":"t","schema":"AAAA"}`, `{"table":"t","schema":"/////3gAAAAQAAAAAAAKAA=="}`} {
		_, err = w.act("CreateTable", body)
		fails(t, err, codes.InvalidArgument, "SCHEMA_INVALID")
	}
	_, err = w.act(flight.CancelFlightInfoActionType, "\xff\xff")
	fails(t, err, codes.InvalidArgument, "REQUEST_INVALID")
	_, err = w.act(flight.RenewFlightEndpointActionType, "")
	fails(t, err, codes.InvalidArgument, "TICKET_INVALID")
}

func TestListActionsNamesThemAll(t *testing.T) {
	w := newWorld(t, Options{})
	stream, err := w.client.ListActions(t.Context(), &flight.Empty{})
	require.NoError(t, err)
	var names []string
	for {
		action, err := stream.Recv()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		require.NotEmpty(t, action.GetDescription())
		names = append(names, action.GetType())
	}
	require.ElementsMatch(t, []string{"CreateTable", "DescribeTable", "DropTable", "AlterTable", "Delete", "Explain", "Stats", "Fold",
		"RenewSnapshot", "ReleaseSnapshot", "RenewFlightEndpoint", "CancelFlightInfo"}, names)
}
