package request

import "github.com/sheaf-db/sheaf/limits"

// MaxResumeBytes bounds the id that a client chooses for a resumable stream.
const MaxResumeBytes = 255

// Command is the descriptor command of a DoPut.
type Command struct {
	Table       string
	Mode        string   // "" where absent; the names are checked by package ingest
	ShardingKey []string // nil: absent; empty: a table without key
	SortingKey  []string // nil: absent
	Slices      int      // 0: absent
	Atomic      bool
	AddColumns  bool
	Resume      string // "" where absent
}

// ParseCommand reads the JSON of a DoPut descriptor's command.
func ParseCommand(body []byte) (*Command, error) {
	command := &Command{}
	var slices int64
	err := object("command", body, fields{
		"table":        filled(&command.Table),
		"mode":         filled(&command.Mode),
		"sharding_key": names(&command.ShardingKey),
		"sorting_key":  names(&command.SortingKey),
		"slices":       whole(&slices, 1, limits.MaxSlices),
		"atomic":       flag(&command.Atomic),
		"add_columns":  flag(&command.AddColumns),
		"resume":       short(&command.Resume, MaxResumeBytes),
		"stage":        unbuilt("stage"),
		"transaction":  unbuilt("transaction"),
		"if":           unbuilt("if"),
		"ttl":          unbuilt("ttl"),
		"returning":    unbuilt("returning"),
	})
	if err != nil {
		return nil, err
	}
	command.Slices = int(slices)
	if command.Table == "" {
		return nil, missing("command", "table")
	}
	return command, nil
}
