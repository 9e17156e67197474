package shards

import (
	"bytes"
	"context"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sheaf-db/sheaf/shards/run"
)

// folded is what one step of a fold wrote and what it left of its inputs.
type folded struct {
	runs []*listing
	into uint64        // the sequence of runs
	left []*foldedLeft // of each input; nil: nothing
}

// foldedLeft is what is left of one run's share of the slice.
type foldedLeft struct {
	info run.SliceInfo
	low  []byte
}

// limitStep bounds a step: of large inputs it takes the delta alone, or the rows
// below a key that it chooses by the block indexes.
func (t *Table) limitStep(ctx context.Context, in *foldInput) error {
	step := int64(t.store.policy.stepBytes)
	if in.bytes() <= step+step/4 || len(in.runs) == 0 {
		return nil
	}
	if len(in.generations) > 0 {
		in.later, in.runs = in.runs, nil
		return nil
	}
	sorted := slices.Clone(in.runs)
	slices.SortFunc(sorted, func(a, b sliceRun) int { return bytes.Compare(a.info.First, b.info.First) })
	var marks []mark
	for _, r := range sorted {
		if high := highOf(marks, uint64(step), r.info.First); high != nil {
			in.high = high
			return nil
		}
		pieces, err := r.run.run.Pieces(ctx, nil, in.slice, r.low(), nil)
		if err != nil {
			return err
		}
		for _, p := range pieces {
			marks = append(marks, mark{last: p.Last, encoded: p.Encoded})
		}
		slices.SortFunc(marks, func(a, b mark) int { return bytes.Compare(a.last, b.last) })
	}
	in.high = highOf(marks, uint64(step), nil)
	return nil
}

// highOf is the key behind the first marks that hold so many bytes, if it is not
// above below (nil: open) and not behind all of them; else nil.
func highOf(marks []mark, size uint64, below []byte) []byte {
	var sum uint64
	for i, m := range marks {
		if below != nil && bytes.Compare(m.last, below) >= 0 {
			return nil
		}
		if sum += m.encoded; sum >= size {
			if below == nil && i == len(marks)-1 {
				return nil
			}
			return append(bytes.Clone(m.last), 0) // the least key above last
		}
	}
	return nil
}

func (in *foldInput) bytes() int64 {
	n := bytesOf(in.runs)
	for _, g := range in.generations {
		n += g.size.Load()
	}
	return int64(n)
}

func (in *foldInput) rows() uint64 {
	var n uint64
	for _, r := range in.runs {
		n += r.info.Rows
	}
	return n
}

// merge writes the outputs, ingests them, and returns their manifest entries.
// On an error nothing of them is left.
func (t *Table) merge(ctx context.Context, in *foldInput) (*folded, error) {
	s := in.snapshot
	var sources []run.Source
	raw := make([]bool, len(in.generations))
	var passed uint64
	for i := len(in.generations) - 1; i >= 0; i-- {
		sources = append(sources, t.deltaSource(in.generations[i], s.version.commit, in.rows(), nil))
	}
	for _, r := range s.version.runs.of(in.slice, t.slices) { // newest listed first
		if slices.ContainsFunc(in.runs, func(other sliceRun) bool { return other.run.id == r.run.id }) {
			sources = append(sources, r.source())
			ok, err := t.passes(r.run, s.version.schema)
			if err != nil {
				return nil, err
			}
			raw = append(raw, ok)
		}
	}
	first, last, err := deltaRange(t, in.generations, s.version.commit)
	if err != nil {
		return nil, err
	}
	out := &folded{into: in.into}
	if out.left, err = t.leave(ctx, in); err != nil {
		return nil, err
	}
	request := run.FoldRequest{
		Mem: t.store.options.Allocator, Key: t.key,
		Types: s.version.schema.CanonicalByID, Columns: s.version.schema.IDs(), Slice: in.slice, High: in.high,
		Raw: raw, Passed: &passed,
		DropTombstones: !keepsTombstones(s.version, in.slice, t.slices, in.runs, in.high, in.generations, first, last),
		MaxBytes:       int64(t.store.policy.runBytes),
		Pace: func(ctx context.Context, bytes uint64) error {
			if t.folds.pressed() {
				return ctx.Err()
			}
			return t.store.pace.wait(ctx, bytes)
		},
	}
	files, infos, err := t.foldFiles(ctx, request, sources)
	if err != nil {
		return nil, t.store.space.met(err)
	}
	t.work.passed.Add(passed)
	if out.into == 0 && (len(files) > 0 || in.high != nil) {
		if out.into, err = t.sequence(files); err != nil {
			return nil, err
		}
	}
	if len(files) == 0 {
		return out, nil
	}
	var paths []string
	for i, f := range files {
		paths = append(paths, f.path)
		l := listingOf(f.id, s.version.schema, infos[i])
		l.sequence = out.into
		out.runs = append(out.runs, l)
	}
	return out, t.store.ingest(ctx, paths)
}

// passes reports whether blocks of a run can be passed on as they are stored: a
// fold encoded them, more densely than commits do, and every column of theirs is
// still there in the same type.
func (t *Table) passes(r *tableRun, schema *Schema) (bool, error) {
	stored, err := t.schemaVersion(r.schema)
	if err != nil || !r.perRow {
		return false, err
	}
	for _, c := range stored.Columns {
		if now, ok := schema.CanonicalByID(c.ID); !ok || !arrow.TypeEqual(now, c.Canonical) {
			return false, nil
		}
	}
	return true, nil
}

// sequence is a number for what a fold writes: the id of its first run.
func (t *Table) sequence(files []*runFile) (uint64, error) {
	if len(files) > 0 {
		return files[0].id, nil
	}
	return t.store.runIDs.take(1)
}

// foldFiles merges into new files; unless it succeeds, none of them is left.
func (t *Table) foldFiles(ctx context.Context, r run.FoldRequest, sources []run.Source) (files []*runFile, infos []run.Info, err error) {
	done := false
	defer func() {
		for _, f := range files {
			if !done { // after an error or a panic
				_ = t.store.fs.Remove(f.path) // the next start removes what is left
			}
		}
	}()
	r.Create = func() (*run.Writer, error) {
		f, err := t.createRun()
		if err != nil {
			return nil, err
		}
		files = append(files, f)
		return f.Writer, nil
	}
	infos, err = run.Fold(ctx, r, sources)
	done = err == nil
	return files, infos, err
}

// leave is what the step leaves of each input.
func (t *Table) leave(ctx context.Context, in *foldInput) ([]*foldedLeft, error) {
	all := make([]*foldedLeft, len(in.runs))
	for i, r := range in.runs {
		switch {
		case in.high == nil || bytes.Compare(r.info.Last, in.high) < 0:
		case bytes.Compare(r.info.First, in.high) >= 0:
			all[i] = &foldedLeft{*r.info, r.low()}
		default:
			info, err := r.run.run.Trim(ctx, t.store.options.Allocator, in.slice, in.high)
			if err != nil {
				return nil, err
			}
			if info.Rows > 0 {
				all[i] = &foldedLeft{info, in.high}
			}
		}
	}
	return all, nil
}

// left is the runs for the next step.
func (in *foldInput) left(out *folded) []sliceRun {
	var runs []sliceRun
	for i, l := range out.left {
		if l != nil {
			runs = append(runs, in.runs[i])
		}
	}
	if len(in.later) == 0 {
		return runs
	}
	for _, l := range out.runs {
		runs = append(runs, sliceRun{run: &tableRun{listing: l}, info: l.slice(in.slice)})
	}
	return append(runs, in.later...)
}
