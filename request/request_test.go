package request_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/request"
)

func TestQueryInFull(t *testing.T) {
	query, err := request.ParseQuery([]byte(`{"table": "trips", "columns": ["ts", "fare"],
		"where": [["n", "=", 9007199254740993]], "order": "desc", "limit": 1000,
		"after": ["d7", 1], "slices": [3, 1, 3], "snapshot": "s1"}`))
	require.NoError(t, err)
	require.Equal(t, "trips", query.Table)
	require.Equal(t, []string{"ts", "fare"}, query.Columns)
	require.Equal(t, `[["n", "=", 9007199254740993]]`, string(query.Where), "numbers keep their text")
	require.Equal(t, request.OrderDesc, query.Order)
	require.EqualValues(t, 1000, query.Limit)
	require.Equal(t, `["d7", 1]`, string(query.After))
	require.Equal(t, []int{1, 3}, query.Slices)
	require.Equal(t, "s1", query.Snapshot)
	require.True(t, query.Split.One())
}

func TestAbsentFieldsOfAQuery(t *testing.T) {
	query, err := request.ParseQuery([]byte(`{"table":"t"}`))
	require.NoError(t, err)
	require.Equal(t, request.Whole("t"), query)
	require.Nil(t, query.Columns)

	query, err = request.ParseQuery([]byte(`{"table":"t","columns":[],"slices":[],"where":[]}`))
	require.NoError(t, err)
	require.NotNil(t, query.Columns)
	require.NotNil(t, query.Slices)
	require.Equal(t, "[]", string(query.Where))
}

func TestEndpoints(t *testing.T) {
	for text, want := range map[string]request.Split{
		`"one"`: {Count: 1}, `"slices"`: {Slices: true, Count: 1}, `1`: {Count: 1}, `64`: {Count: 64},
	} {
		query, err := request.ParseQuery([]byte(`{"table":"t","endpoints":` + text + `}`))
		require.NoError(t, err, text)
		require.Equal(t, want, query.Split, text)
	}
}

// Each refusal names the field, so that a client can mend it.
func TestRefusals(t *testing.T) {
	deep := strings.Repeat("[", 101) + strings.Repeat("]", 101)
	query := func(body []byte) error { _, err := request.ParseQuery(body); return err }
	command := func(body []byte) error { _, err := request.ParseCommand(body); return err }
	create := func(body []byte) error { _, err := request.ParseCreateTable(body); return err }
	alter := func(body []byte) error { _, err := request.ParseAlterTable(body); return err }
	remove := func(body []byte) error { _, err := request.ParseDelete(body); return err }
	for _, test := range []struct {
		parse  func([]byte) error
		body   string
		reason string
		names  string
	}{
		{query, ``, "REQUEST_INVALID", "ends"},
		{query, `[]`, "REQUEST_INVALID", "list"},
		{query, `{"table":"t"`, "REQUEST_INVALID", ""},
		{query, `{"table":"t"} {}`, "REQUEST_INVALID", "closing brace"},
		{query, `{"table":"t",}`, "REQUEST_INVALID", ""},
		{query, "{\"table\":\"\xff\"}", "REQUEST_INVALID", "UTF-8"},
		{query, `{"table":"\ud800"}`, "REQUEST_INVALID", ""},
		{query, `{}`, "FIELD_MISSING", "table"},
		{query, `{"table":""}`, "FIELD_INVALID", "table"},
		{query, `{"table":5}`, "FIELD_INVALID", "table"},
		{query, `{"table":null}`, "FIELD_INVALID", "table"},
		{query, `{"table":"t","Limit":1}`, "FIELD_UNKNOWN", "Limit"},
		{query, `{"table":"t","limit":1,"limit":2}`, "FIELD_REPEATED", "limit"},
		{query, `{"table":"t","where":[[{"a":1,"a":2}]]}`, "FIELD_REPEATED", `"a"`},
		{query, `{"table":"t","limit":-1}`, "FIELD_INVALID", "limit"},
		{query, `{"table":"t","limit":1.0}`, "FIELD_INVALID", "limit"},
		{query, `{"table":"t","limit":9223372036854775808}`, "FIELD_INVALID", "limit"},
		{query, `{"table":"t","columns":["a","a"]}`, "FIELD_INVALID", "columns"},
		{query, `{"table":"t","columns":"a"}`, "FIELD_INVALID", "columns"},
		{query, `{"table":"t","columns":[1]}`, "FIELD_INVALID", "columns"},
		{query, `{"table":"t","where":"a"}`, "FIELD_INVALID", "where"},
		{query, `{"table":"t","order":"up"}`, "FIELD_INVALID", "order"},
		{query, `{"table":"t","slices":[1024]}`, "FIELD_INVALID", "slices"},
		{query, `{"table":"t","endpoints":0}`, "FIELD_INVALID", "endpoints"},
		{query, `{"table":"t","endpoints":"many"}`, "FIELD_INVALID", "endpoints"},
		{query, `{"table":"t","snapshot":false}`, "FIELD_INVALID", "snapshot"},
		{query, `{"table":"t","after":"x"}`, "FIELD_CONFLICT", "order"},
		{query, `{"table":"t","keys":[],"limit":3}`, "FIELD_CONFLICT", "keys"},
		{query, `{"table":"t","keys":[],"endpoints":"slices"}`, "FIELD_CONFLICT", "keys"},
		{query, `{"table":"t","order":"asc","endpoints":"slices"}`, "FIELD_CONFLICT", "endpoints"},
		{query, `{"table":"t","limit":3,"endpoints":2}`, "FIELD_CONFLICT", "endpoints"},
		{query, `{"table":"t","analyze":true}`, "FIELD_UNKNOWN", "analyze"},
		{query, `{"table":"t","filter":"a = 1"}`, "NOT_IMPLEMENTED", "filter"},
		{query, `{"table":"t","substrait":"x"}`, "NOT_IMPLEMENTED", "substrait"},
		{query, `{"table":"t","params":[]}`, "NOT_IMPLEMENTED", "params"},
		{query, `{"sql":"select"}`, "NOT_IMPLEMENTED", "sql"},
		{query, `{"table":"t","where":` + deep + `}`, "DEPTH_LIMIT", "100"},
		{query, `{"table":"t","where":` + strings.Repeat("[", 400_000), "DEPTH_LIMIT", "100"},
		{query, `{"table":"t"` + strings.Repeat(" ", 1<<20) + `}`, "QUERY_TOO_LARGE", "1 MiB"},
		{command, `{"mode":"upsert"}`, "FIELD_MISSING", "table"},
		{command, `{"table":"t","slices":0}`, "FIELD_INVALID", "slices"},
		{command, `{"table":"t","slices":1025}`, "FIELD_INVALID", "1024"},
		{command, `{"table":"t","sharding_key":"a"}`, "FIELD_INVALID", "sharding_key"},
		{command, `{"table":"t","atomic":1}`, "FIELD_INVALID", "atomic"},
		{command, `{"table":"t","resume":""}`, "FIELD_INVALID", "resume"},
		{command, `{"table":"t","resume":"` + strings.Repeat("r", 256) + `"}`, "FIELD_INVALID", "resume"},
		{command, `{"table":"t","ttl":{}}`, "NOT_IMPLEMENTED", "ttl"},
		{command, `{"table":"t","if":[]}`, "NOT_IMPLEMENTED", "if"},
		{command, `{"table":"t","stage":"s"}`, "NOT_IMPLEMENTED", "stage"},
		{command, `{"table":"t","transaction":"s"}`, "NOT_IMPLEMENTED", "transaction"},
		{command, `{"table":"t","returning":[]}`, "NOT_IMPLEMENTED", "returning"},
		{create, `{"table":"t"}`, "FIELD_MISSING", "schema"},
		{create, `{"table":"t","schema":"!"}`, "FIELD_INVALID", "schema"},
		{create, `{"table":"t","schema":"AA==","ttl":{}}`, "NOT_IMPLEMENTED", "ttl"},
		{alter, `{"table":"t"}`, "FIELD_CONFLICT", "0 are given"},
		{alter, `{"table":"t","drop_columns":["a"],"rename_columns":{"a":"b"}}`, "FIELD_CONFLICT", "2 are given"},
		{alter, `{"table":"t","rename_columns":{}}`, "FIELD_INVALID", "rename_columns"},
		{alter, `{"table":"t","rename_columns":{"a":1}}`, "FIELD_INVALID", "rename_columns"},
		{alter, `{"table":"t","rename_columns":{"a":"b","a":"c"}}`, "FIELD_REPEATED", "a"},
		{alter, `{"table":"t","set":{"ttl":null}}`, "NOT_IMPLEMENTED", "set"},
		{remove, `{"table":"t"}`, "FIELD_MISSING", "all"},
		{remove, `{"table":"t","all":false}`, "FIELD_MISSING", "all"},
		{remove, `{"table":"t","all":true,"where":[]}`, "FIELD_CONFLICT", "all"},
	} {
		err := test.parse([]byte(test.body))
		found := fault.Of(err)
		shown := test.body[:min(len(test.body), 80)]
		require.NotNil(t, found, shown)
		require.Equal(t, test.reason, found.Reason, shown)
		require.Contains(t, found.Message, test.names, shown)
	}
}

func TestDepthCountsNoTextAndAllowsTheLimit(t *testing.T) {
	brackets := strings.Repeat("[", 500)
	query, err := request.ParseQuery([]byte(`{"table":"t","where":[["v","=","\"` + brackets + `"]]}`))
	require.NoError(t, err)
	require.Contains(t, string(query.Where), brackets)

	_, err = request.ParseQuery([]byte(`{"table":"t","where":` + strings.Repeat("[", 99) + strings.Repeat("]", 99) + `}`))
	require.NoError(t, err)
}

func TestBodies(t *testing.T) {
	command, err := request.ParseCommand([]byte(`{"table":"a.b","mode":"merge","sharding_key":[],"slices":8,"atomic":true,"add_columns":true,"resume":"r"}`))
	require.NoError(t, err)
	require.Equal(t, &request.Command{Table: "a.b", Mode: "merge", ShardingKey: []string{}, Slices: 8, Atomic: true, AddColumns: true, Resume: "r"}, command)

	alter, err := request.ParseAlterTable([]byte(`{"table":"t","rename_columns":{"a":"b","b":"a"}}`))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "b", "b": "a"}, alter.RenameColumns)

	table, ifExists, err := request.ParseDropTable([]byte(`{"table":"t","if_exists":true}`))
	require.NoError(t, err)
	require.True(t, ifExists)
	require.Equal(t, "t", table)

	id, err := request.ParseSnapshot("RenewSnapshot", []byte(`{"snapshot":"s"}`))
	require.NoError(t, err)
	require.Equal(t, "s", id)

	query, err := request.ParseExplain([]byte(`{"table":"t","analyze":true}`))
	require.NoError(t, err)
	require.True(t, query.Analyze)
}

// No input panics, and whatever is refused is refused with a reason.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"table":"t","columns":["a"],"where":[["a","in",[1,2]]],"order":"asc","after":"x"}`))
	f.Add([]byte(`{"table":"t","rename_columns":{"a":"b"}}`))
	f.Add([]byte(`{"table":"t","schema":"AAAA","sharding_key":["a"]}`))
	f.Add([]byte("{\"\\ud800\":\"\xf0\"}"))
	f.Fuzz(func(t *testing.T, body []byte) {
		_, queryErr := request.ParseQuery(body)
		_, commandErr := request.ParseCommand(body)
		_, createErr := request.ParseCreateTable(body)
		_, alterErr := request.ParseAlterTable(body)
		_, deleteErr := request.ParseDelete(body)
		for _, err := range []error{queryErr, commandErr, createErr, alterErr, deleteErr} {
			if err != nil && fault.Of(err) == nil {
				t.Fatalf("not a fault: %v", err)
			}
		}
	})
}
