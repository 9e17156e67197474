package ingest

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards"
)

// Target is the table a stream goes to, and what its command says about keys.
type Target struct {
	Name shards.Name
	Keys Keys
}

// Options of a Writer. The zero value upserts.
type Options struct {
	Mode       Mode
	Atomic     bool     // the stream is one commit, published by Finish
	AddColumns bool     // unknown columns are added to the table
	Resume     string   // the client's id of a resumable stream; empty: none
	Streams    *Streams // the server's open streams; nil: the stream knows no others

	Mem      memory.Allocator // nil: memory.DefaultAllocator
	Vectors  memory.Allocator // of what is written before it is read, so need not be zeroed; nil: Mem
	MaxBatch int64            // what one batch may take decoded; 0: limits.MessageBytes
	// Committed is told after each commit what is durable. It must not block.
	Committed func(Progress)

	lookingBytes int64 // 0: the constant of this name
}

func (o Options) withDefaults() Options {
	if o.Mem == nil {
		o.Mem = memory.DefaultAllocator
	}
	if o.Vectors == nil {
		o.Vectors = o.Mem
	}
	if o.MaxBatch == 0 {
		o.MaxBatch = limits.MessageBytes
	}
	if o.Streams == nil {
		o.Streams = &Streams{}
	}
	if o.lookingBytes == 0 {
		o.lookingBytes = lookingBytes
	}
	if o.Committed == nil {
		o.Committed = func(Progress) {}
	}
	return o
}

// Progress is what of a stream is durable: batches and rows from its first one,
// in all streams of its resume id; and the last commit that it made, 0 if none.
type Progress struct {
	Batches uint64 `json:"batches"`
	Rows    uint64 `json:"rows"`
	Commit  uint64 `json:"commit"`
}

// String is how errors say it.
func (p Progress) String() string {
	return fmt.Sprintf("(durable: %d batches, %d rows, commit %d)", p.Batches, p.Rows, p.Commit)
}
