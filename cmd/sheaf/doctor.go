package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/sheaf-db/sheaf/shards"
)

const doctorHelp = `Read a whole data directory, without changing it, and verify it: every manifest
entry has its run, every block its checksum, every index and zone map says what
the blocks hold. Findings go to stdout, one a line.

The directory must not be served meanwhile. Exit code 0: nothing found. 5:
findings. Anything else: the directory could not be looked at.`

func newDoctor() *cobra.Command {
	var (
		data   string
		asJSON bool
	)
	command := &cobra.Command{
		Use:     "doctor --data DIR",
		Short:   "Verify a data directory that nobody serves",
		Long:    doctorHelp,
		Example: "  sheaf doctor --data ./data\n  sheaf doctor --data ./data --json",
		GroupID: groupStore,
		Args:    noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if data == "" {
				return usageError{fmt.Errorf("say which directory: --data DIR")}
			}
			return doctor(command, data, asJSON)
		},
	}
	command.Flags().StringVar(&data, "data", "", "data directory (required)")
	command.Flags().BoolVar(&asJSON, "json", false, "print JSON: one object a finding, then a summary")
	return command
}

func doctor(command *cobra.Command, data string, asJSON bool) error {
	ctx, out := command.Context(), command.OutOrStdout()
	if _, err := os.Stat(data); err != nil {
		return fmt.Errorf("no data directory: %w", err)
	}
	store, err := shards.Open(ctx, data, shards.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer store.Close()

	findings := 0
	err = store.Doctor(ctx, func(found shards.Finding) {
		findings++
		if asJSON {
			_ = json.NewEncoder(out).Encode(map[string]any{"table": found.Table, "slice": found.Slice, "what": found.What})
			return
		}
		where := found.Table
		if where == "" {
			where = "store"
		}
		if found.Slice >= 0 {
			where += fmt.Sprintf(" slice %d", found.Slice)
		}
		fmt.Fprintf(out, "%s: %s\n", where, found.What)
	})
	if err != nil {
		return err
	}
	tables := store.Tables("")
	for _, t := range tables {
		if f := t.FoldStats(); !asJSON && f.Ingested > 0 {
			fmt.Fprintf(out, "%s: %s arrived, folds wrote %s: written %.1f times what arrived\n",
				t.Name(), bytesText(f.Ingested), bytesText(f.Folded), f.Amplification())
		}
	}
	if asJSON {
		err = json.NewEncoder(out).Encode(map[string]any{"tables": len(tables), "findings": findings})
	} else {
		_, err = fmt.Fprintf(out, "%s read, %s\n", counted(len(tables), "table"), counted(findings, "finding"))
	}
	if err == nil && findings > 0 {
		err = damageError{findings}
	}
	return err
}
