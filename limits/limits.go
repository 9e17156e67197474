// Package limits is the table of limits of docs/wire.md, in one place. A limit
// that is met names itself in the error.
package limits

const (
	// KeyColumns bounds sharding plus sorting columns, KeyBytes the encoded
	// primary key of one row (both as in Aurora DSQL).
	KeyColumns = 8
	KeyBytes   = 1024

	// Slices of a table: doubling 1,024 slices would make block indexes of
	// small tables larger than their rows.
	MaxSlices     = 1024
	DefaultSlices = 16

	// NameBytes bounds table, namespace and column names.
	NameBytes = 255
	// Columns of one table.
	Columns = 4096
	// RowBytes bounds one row, so that a block of one row still fits a message.
	RowBytes = 16 << 20

	// MessageBytes is the largest message received, after IPC decompression.
	MessageBytes = 1 << 30
	// SentBytes bounds a message sent, unless one row is larger: the default
	// limit of gRPC clients.
	SentBytes = 4 << 20
	// TargetBytes is what messages are cut to (1 MiB measured best).
	TargetBytes = 1 << 20
	// CommitBytes is how much of what has arrived on a stream one commit takes.
	CommitBytes = 32 << 20
	// DeltaCommitBytes: smaller commits go to the delta, larger ones make a run.
	DeltaCommitBytes = 1 << 20

	// BlockRows and BlockBytes (of plain Arrow) bound a block: what one point
	// lookup reads, and what a scan decodes at a time.
	BlockRows  = 2048
	BlockBytes = 1 << 20

	// QueryBytes bounds a ticket, command or action body; FilterDepth the
	// nesting of a filter (a Go stack overflow cannot be recovered); InValues
	// one IN list; TicketBytes a ticket that the server hands out.
	QueryBytes  = 1 << 20
	FilterDepth = 100
	InValues    = 100_000
	// ListedValues bounds the values in all lists of one filter, RowColumns the
	// columns of one row value: a comparison by order nests once per column.
	ListedValues = 2 * InValues
	RowColumns   = 64
	TicketBytes  = 4 << 10

	// OpenStreams and OpenSnapshots bound what clients hold open at once.
	OpenStreams   = 1000
	OpenSnapshots = 100

	// ResumeIDs of one table are remembered; of more, those whose last commit is
	// oldest are forgotten.
	ResumeIDs = 10_000
)
