package flight

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/go-json-experiment/json"

	"github.com/sheaf-db/sheaf/fault"
)

// action is one kind of DoAction.
type action struct {
	name        string
	description string
	run         func(s *Server, ctx context.Context, body []byte) ([]byte, error)
}

// actions are what ListActions lists.
var actions = []action{
	{"CreateTable", `Make a table. Body {"table", "schema" (base64 of the IPC schema message), "sharding_key", "sorting_key", "slices", "if_not_exists"}; result as DescribeTable.`, answered((*Server).createTable)},
	{"DescribeTable", `Columns, keys and size of a table. Body {"table"}.`, answered((*Server).describeTable)},
	{"DropTable", `Remove a table and its rows. Body {"table", "if_exists"}.`, answered((*Server).dropTable)},
	{"AlterTable", `Change a table's columns. Body {"table", one of "add_columns", "drop_columns", "rename_columns", "widen_columns"}; result as DescribeTable.`, answered((*Server).alterTable)},
	{"Delete", `Delete the rows of a filter. Body {"table", "where"} or {"table", "all": true}; result {"rows", "commit"}.`, answered((*Server).deleteRows)},
	{"Explain", `The plan of a query. Body: the query; with "analyze": true it is run and counted.`, answered((*Server).explain)},
	{"Stats", `Rows, bytes, runs and delta per slice, largest sharding keys, snapshots. Body {"table"}.`, answered((*Server).stats)},
	{"Fold", `Merge what a table has written since its last fold, and wait for it. Body {"table"}.`, answered((*Server).fold)},
	{"RenewSnapshot", `Start a snapshot's clock again. Body {"snapshot"}.`, answered((*Server).renewSnapshot)},
	{"ReleaseSnapshot", `Give a snapshot up. Body {"snapshot"}.`, answered((*Server).releaseSnapshot)},
	{flight.RenewFlightEndpointActionType, "Start the clock of an endpoint's ticket again. Body RenewFlightEndpointRequest, result FlightEndpoint (protobuf).", (*Server).renewEndpoint},
	{flight.CancelFlightInfoActionType, "Give up what a FlightInfo's tickets keep. Body CancelFlightInfoRequest, result CancelFlightInfoResult (protobuf).", (*Server).cancelInfo},
}

// unbuiltActions are those of the contract that this version does not have.
var unbuiltActions = map[string]string{"Update": "Update is not implemented by this version: write the changed columns with mode merge or update"}

var actionsByName = func() map[string]action {
	byName := map[string]action{}
	for _, a := range actions {
		byName[a.name] = a
	}
	return byName
}()

// answered makes an action of a method with a JSON answer.
func answered[T any](method func(*Server, context.Context, []byte) (T, error)) func(*Server, context.Context, []byte) ([]byte, error) {
	return func(s *Server, ctx context.Context, body []byte) ([]byte, error) {
		result, err := method(s, ctx, body)
		if err != nil {
			return nil, err
		}
		return json.Marshal(result)
	}
}

// DoAction runs one action and sends its one result.
func (s *Server) DoAction(given *flight.Action, stream flight.FlightService_DoActionServer) error {
	found, ok := actionsByName[given.GetType()]
	if !ok {
		if text, planned := unbuiltActions[given.GetType()]; planned {
			return fault.New(fault.Unimplemented, "NOT_IMPLEMENTED", "%s", text)
		}
		return fault.New(fault.Unimplemented, "ACTION_UNKNOWN", "there is no action %.100q; there are %s",
			given.GetType(), strings.Join(slices.Sorted(maps.Keys(actionsByName)), ", "))
	}
	result, err := found.run(s, stream.Context(), given.GetBody())
	if err != nil {
		return err
	}
	return stream.Send(&flight.Result{Body: result})
}

// ListActions describes the actions.
func (s *Server) ListActions(_ *flight.Empty, stream flight.FlightService_ListActionsServer) error {
	for _, a := range actions {
		if err := stream.Send(&flight.ActionType{Type: a.name, Description: a.description}); err != nil {
			return err
		}
	}
	return nil
}

// DoExchange is not part of the contract.
func (s *Server) DoExchange(flight.FlightService_DoExchangeServer) error {
	return fault.New(fault.Unimplemented, "NOT_IMPLEMENTED", "DoExchange is not implemented: write with DoPut, read with DoGet")
}

// PollFlightInfo is not part of the contract.
func (s *Server) PollFlightInfo(context.Context, *flight.FlightDescriptor) (*flight.PollInfo, error) {
	return nil, fault.New(fault.Unimplemented, "NOT_IMPLEMENTED", "PollFlightInfo is not implemented: GetFlightInfo answers at once")
}
