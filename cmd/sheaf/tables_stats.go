package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// tableStats is the result of the action Stats.
type tableStats struct {
	description // table, rows and commit of it; its slices are the count's namesake
	Slices      []struct {
		Slice      int    `json:"slice"`
		Rows       uint64 `json:"rows"`
		Bytes      uint64 `json:"bytes"`
		Runs       int    `json:"runs"`
		DeltaRows  uint64 `json:"delta_rows"`
		DeltaBytes uint64 `json:"delta_bytes"`
	} `json:"slices"`
	LargestKeys []struct {
		Key   string `json:"key"`
		Slice int    `json:"slice"`
		Rows  uint64 `json:"rows"`
		Bytes uint64 `json:"bytes"`
	} `json:"largest_sharding_keys"`
	Folds struct {
		Depth         int     `json:"depth"`
		DeltaBytes    uint64  `json:"delta_bytes"`
		IngestedBytes uint64  `json:"ingested_bytes"`
		FoldedBytes   uint64  `json:"folded_bytes"`
		Amplification float64 `json:"write_amplification"`
		SlowedCommits uint64  `json:"slowed_commits"`
		SlowedSeconds float64 `json:"slowed_s"`
		Delay         float64 `json:"delay_ms"`
		Why           string  `json:"why"`
	} `json:"folds"`
	Snapshots []struct {
		ID          string  `json:"id"`
		HeldBy      string  `json:"held_by"`
		Expires     string  `json:"expires"`
		Commit      uint64  `json:"commit"`
		AgeSeconds  float64 `json:"age_s"`
		PinnedBytes uint64  `json:"pinned_bytes"`
	} `json:"snapshots"`
}

// showStats prints what each slice of a table holds, its largest sharding keys
// and the snapshots that are open on it.
func showStats(ctx context.Context, g *gateway, out io.Writer, name string, asJSON bool) error {
	body := map[string]any{"table": name}
	if asJSON {
		return actAndPrint(ctx, g, out, "Stats", body)
	}
	var found tableStats
	if err := g.act(ctx, "Stats", body, &found); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %s rows, %s, commit %d\n", found.Table, found.rows(), bytesText(found.Bytes), found.Commit)
	f := found.Folds
	fmt.Fprintf(out, "folds: at most %d runs over one key, %s of delta; written %.1f times what arrived (%s arrived, folds wrote %s)\n",
		f.Depth, bytesText(f.DeltaBytes), f.Amplification, bytesText(f.IngestedBytes), bytesText(f.FoldedBytes))
	if f.SlowedCommits > 0 || f.Why != "" {
		fmt.Fprintf(out, "writes slowed: %d commits, %.1f s in all", f.SlowedCommits, f.SlowedSeconds)
		if f.Why != "" {
			fmt.Fprintf(out, "; now %.0f ms each: %s", f.Delay, f.Why)
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintln(out)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SLICE\tROWS\tSIZE\tRUNS\tROWS IN DELTA\tSIZE OF DELTA")
	for _, s := range found.Slices {
		fmt.Fprintf(table, "%d\t%s\t%s\t%d\t%s\t%s\n", s.Slice, grouped(int64(s.Rows)), bytesText(s.Bytes),
			s.Runs, grouped(int64(s.DeltaRows)), bytesText(s.DeltaBytes))
	}
	if len(found.LargestKeys) > 0 {
		fmt.Fprintln(table, "\nLARGEST SHARDING KEYS\tSLICE\tROWS\tSIZE")
		for _, k := range found.LargestKeys {
			fmt.Fprintf(table, "%s\t%d\t~%s\t%s\n", printable(k.Key), k.Slice, grouped(int64(k.Rows)), bytesText(k.Bytes))
		}
	}
	if len(found.Snapshots) > 0 {
		fmt.Fprintln(table, "\nSNAPSHOT\tHELD BY\tCOMMIT\tAGE\tEXPIRES\tKEEPS")
		for _, s := range found.Snapshots {
			age := time.Duration(s.AgeSeconds * float64(time.Second)).Round(time.Second)
			fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\t%s\n", orDash(s.ID), s.HeldBy, s.Commit, age, s.Expires, bytesText(s.PinnedBytes))
		}
	}
	return table.Flush()
}
