package shards

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
	"github.com/sheaf-db/sheaf/shards/layout"
	"github.com/sheaf-db/sheaf/shards/run"
)

// TestScripts runs the scripts in testdata; each is a story about one thing.
//
//	create t fields="k:string s:int64 v:int64" key=k sort=s slices=4
//	put t [run]          one row a line: values of the columns, - for null
//	delete t [run]       one key a line, as a row
//	prepare t name [run] as put, but not published; publish t names… [replace] [resume=id rows=n]
//	scan t [columns=] [order=] [limit=] [slices=] [low= high=] [snapshot=]
//	snapshot t name, release name, fold t, background, reopen, garbage
//	alter t add= | drop= | rename=a:b | widen=
//	stats t, runs t, tables, drop t
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		sc := &script{bed: newBed(t), snapshots: map[string]*Snapshot{}, prepared: map[string]*Prepared{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out, err := sc.run(d)
			if err != nil {
				return out + "error: " + err.Error() + "\n"
			}
			if out == "" {
				return "ok\n"
			}
			return out
		})
		for _, s := range sc.snapshots {
			s.Release()
		}
		sc.s.janitor.wait()
	})
}

type script struct {
	*bed
	snapshots map[string]*Snapshot
	prepared  map[string]*Prepared
}

func (sc *script) run(d *datadriven.TestData) (string, error) {
	ctx := context.Background()
	arg := func(name string) string {
		var text string
		d.MaybeScanArgs(sc.t.(*testing.T), name, &text)
		return text
	}
	has := func(name string) bool { return d.HasArg(name) }
	switch d.Cmd {
	case "create":
		slices := 4
		d.MaybeScanArgs(sc.t.(*testing.T), "slices", &slices)
		_, err := sc.tryCreate(d.CmdArgs[0].Key, list(d, "fields"), list(d, "key"), list(d, "sort"), slices)
		return "", err
	case "tables":
		var out strings.Builder
		for _, t := range sc.s.Tables(arg("prefix")) {
			fmt.Fprintf(&out, "%s %s\n", t.Name(), describe(t.Schema()))
		}
		return out.String(), nil
	case "drop":
		n, err := ParseName(d.CmdArgs[0].Key)
		if err != nil {
			return "", err
		}
		return "", sc.s.DropTable(ctx, n)
	case "reopen":
		for name, s := range sc.snapshots {
			s.Release()
			delete(sc.snapshots, name)
		}
		sc.reopen()
		return "", nil
	case "garbage":
		sc.s.janitor.wait()
		return sc.onDisk(), nil
	case "release":
		sc.snapshots[d.CmdArgs[0].Key].Release()
		delete(sc.snapshots, d.CmdArgs[0].Key)
		return "", nil
	}
	n, err := ParseName(d.CmdArgs[0].Key)
	if err != nil {
		return "", err
	}
	t, err := sc.s.Table(n)
	if err != nil {
		return "", err
	}
	if has("run") {
		sc.s.deltaCommitBytes = 0
		defer func() { sc.s.deltaCommitBytes = 1 << 20 }()
	}
	switch d.Cmd {
	case "put", "delete":
		commit := sc.publish(t, PublishOptions{}, sc.prepare(t, sc.input(t, d.Input), d.Cmd == "delete"))
		return fmt.Sprintf("commit %d\n", commit), nil
	case "prepare":
		sc.prepared[d.CmdArgs[1].Key] = sc.prepare(t, sc.input(t, d.Input), has("delete"))
		return "", nil
	case "publish":
		return sc.publishNamed(t, d)
	case "resume":
		p, commit, err := t.ResumePosition(d.CmdArgs[1].Key)
		return fmt.Sprintf("batches %d, rows %d, commit %d\n", p.Batches, p.Rows, commit), err
	case "snapshot":
		sc.snapshots[d.CmdArgs[1].Key] = sc.snapshot(t)
		return "", nil
	case "scan":
		return sc.scanText(t, d)
	case "fold":
		// As Table.Fold, but one slice behind the other: the numbers of runs are
		// part of what scripts expect.
		for slice := range t.slices {
			if err := t.foldWhole(ctx, slice); err != nil {
				return "", err
			}
		}
		return "", nil
	case "background":
		return sc.foldOnce(t)
	case "alter":
		return sc.alter(t, d)
	case "stats":
		return sc.stats(t)
	case "runs":
		return sc.runs(t), nil
	case "doctor":
		var out strings.Builder
		err := sc.s.Doctor(ctx, func(f Finding) { fmt.Fprintf(&out, "%s slice %d: %s\n", f.Table, f.Slice, f.What) })
		if err == nil && out.Len() == 0 {
			return "nothing wrong\n", nil
		}
		return out.String(), err
	}
	return "", fmt.Errorf("no command %q", d.Cmd)
}

// list is an argument of several words: key=(a b).
func list(d *datadriven.TestData, name string) string {
	for _, a := range d.CmdArgs {
		if a.Key == name {
			return strings.Join(a.Vals, " ")
		}
	}
	return ""
}

func describe(s *Schema) string {
	var fields []string
	for _, c := range s.Columns {
		text := fmt.Sprintf("%d:%s:%s", c.ID, c.Field.Name, c.Field.Type)
		if c.Hidden {
			text = "hidden:" + c.Field.Name
		}
		fields = append(fields, text)
	}
	return fmt.Sprintf("key %s slices %d version %d [%s]", s.keyText(), s.Slices, s.Version, strings.Join(fields, " "))
}

// input reads rows; columns that a line lacks are null.
func (sc *script) input(t *Table, text string) []values {
	var rows []values
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		var row values
		for i, word := range strings.Fields(line) {
			row = append(row, parseValue(sc.t, t.Schema().Columns[i], word))
		}
		rows = append(rows, row)
	}
	return rows
}

func parseValue(tb testing.TB, c Column, word string) any {
	if word == "-" {
		return nil
	}
	switch c.Canonical.Name() {
	case "utf8":
		return word
	case "float64":
		f, err := strconv.ParseFloat(word, 64)
		if err != nil {
			tb.Fatal(err)
		}
		return f
	}
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

func (sc *script) publishNamed(t *Table, d *datadriven.TestData) (string, error) {
	var prepared []*Prepared
	o := PublishOptions{Replace: d.HasArg("replace")}
	var position Position
	for _, a := range d.CmdArgs[1:] {
		switch a.Key {
		case "replace":
		case "resume":
			position.Resume = a.Vals[0]
		case "rows":
			position.Rows, _ = strconv.ParseUint(a.Vals[0], 10, 64)
			position.Batches = 1
		default:
			prepared = append(prepared, sc.prepared[a.Key])
		}
	}
	if position.Resume != "" {
		o.Positions = []Position{position}
	}
	commit, err := t.Publish(context.Background(), prepared, o)
	if err != nil {
		for _, p := range prepared {
			p.Discard()
		}
		return "", err
	}
	return fmt.Sprintf("commit %d\n", commit), nil
}

func (sc *script) scanText(t *Table, d *datadriven.TestData) (string, error) {
	s := sc.snapshots[list(d, "snapshot")]
	if s == nil {
		s = sc.snapshot(t)
		defer s.Release()
	}
	r := all(s)
	switch list(d, "order") {
	case "asc":
		r.Order = Asc
	case "desc":
		r.Order = Desc
	}
	if d.HasArg("columns") {
		r.Columns = nil
		for _, name := range strings.Fields(list(d, "columns")) {
			if name == CommitName {
				r.Columns = append(r.Columns, block.ColumnCommit)
			} else if i, ok := s.Schema().Column(name); ok {
				r.Columns = append(r.Columns, s.Schema().Columns[i].ID)
			} else {
				return "", fmt.Errorf("no column %q", name)
			}
		}
	}
	for _, word := range strings.Fields(list(d, "slices")) {
		n, err := strconv.Atoi(word)
		if err != nil {
			return "", err
		}
		r.Slices = append(r.Slices, n)
	}
	if text := list(d, "limit"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return "", err
		}
		r.Limit = n
	}
	if low, high := list(d, "low"), list(d, "high"); low != "" || high != "" {
		r.Ranges = []run.Range{{Slice: -1, Low: sc.bound(s, low), High: sc.bound(s, high)}}
	}
	rows, err := sc.tryScan(s, r)
	if err != nil {
		return "", err
	}
	text := format(rows)
	if r.Order == Any {
		lines := strings.SplitAfter(text, "\n")
		sort.Strings(lines)
		text = strings.Join(lines, "")
	}
	if text == "" {
		text = "no rows\n"
	}
	return text, nil
}

// bound encodes leading key values.
func (sc *script) bound(s *Snapshot, text string) []byte {
	if text == "" {
		return nil
	}
	var bound []byte
	for i, word := range strings.Fields(text) {
		c := s.Schema().Columns[s.Schema().KeyColumns()[i]]
		column := buildColumn(sc.t, sc.mem, c.Canonical, []values{{parseValue(sc.t, c, word)}}, 0)
		var err error
		bound, err = key.AppendValue(bound, column, 0)
		column.Release()
		if err != nil {
			sc.t.Fatal(err)
		}
	}
	return bound
}

func (sc *script) alter(t *Table, d *datadriven.TestData) (string, error) {
	var c Change
	var err error
	switch {
	case d.HasArg("add"):
		c.AddColumns, err = parseFields(list(d, "add"))
	case d.HasArg("drop"):
		c.Drop = strings.Fields(list(d, "drop"))
	case d.HasArg("rename"):
		c.Rename = map[string]string{}
		for _, pair := range strings.Fields(list(d, "rename")) {
			from, to, _ := strings.Cut(pair, ":")
			c.Rename[from] = to
		}
	case d.HasArg("widen"):
		c.Widen, err = parseFields(list(d, "widen"))
	}
	if err != nil {
		return "", err
	}
	s, err := t.Alter(context.Background(), c)
	if err != nil {
		return "", err
	}
	return describe(s) + "\n", nil
}

// stats prints counts that do not depend on encodings.
func (sc *script) stats(t *Table) (string, error) {
	s := sc.snapshot(t)
	defer s.Release()
	var out strings.Builder
	n, exact := s.Rows()
	fmt.Fprintf(&out, "commit %d, rows %d, exact %t\n", s.Commit(), n, exact)
	for _, stat := range s.SliceStats() {
		if stat.Runs > 0 || stat.DeltaRows > 0 {
			fmt.Fprintf(&out, "slice %d: %d rows in %d runs, %d in the delta\n", stat.Slice, stat.Rows, stat.Runs, stat.DeltaRows)
		}
	}
	return out.String(), nil
}

func (sc *script) runs(t *Table) string {
	s := sc.snapshot(t)
	defer s.Release()
	return listed(s)
}

// listed is the runs and generations of a snapshot.
func listed(s *Snapshot) string {
	var out strings.Builder
	for _, r := range s.version.runs.list {
		fmt.Fprintf(&out, "run %d: versions %d to %d, slices", r.id, r.least, r.greatest)
		for _, info := range r.slices {
			fmt.Fprintf(&out, " %d(%d rows, %d deletes)", info.Slice, info.Rows, info.Tombstones)
		}
		out.WriteByte('\n')
	}
	for slice, list := range s.version.delta.bySlice {
		for _, g := range list {
			fmt.Fprintf(&out, "generation %d of slice %d: %d entries, %d deletes\n", g.number, slice, g.entries.Load(), g.tombstones.Load())
		}
	}
	if out.Len() == 0 {
		return "none\n"
	}
	return out.String()
}

// foldOnce does what the background policy wants of a table that sees every
// slice as if its delta had passed the size.
func (sc *script) foldOnce(t *Table) (string, error) {
	var out strings.Builder
	s := sc.snapshot(t)
	var picks []foldPick
	for slice := range t.slices {
		p := s.pieces(slice)
		p.deltaSize *= sc.s.policy.deltaBytes
		if pick := sc.s.policy.planSlice(p); !pick.empty() {
			picks = append(picks, pick)
		}
	}
	s.Release()
	for _, pick := range picks {
		fmt.Fprintf(&out, "slice %d: %s, %d runs\n", pick.slice, pick.why, len(pick.runs))
		if err := t.foldSlice(context.Background(), pick); err != nil && !errors.Is(err, errFoldStale) && fault.Of(err) == nil {
			return out.String(), err
		}
	}
	return out.String(), nil
}

// onDisk lists the runs and generations that Pebble holds, listed or not.
func (sc *script) onDisk() string {
	var out strings.Builder
	_ = sc.s.hop([]byte{layout.RegionRun}, []byte{layout.RegionEnd}, func(k []byte) ([]byte, error) {
		_, id, err := layout.SplitRunRegion(k)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "run %d\n", id)
		return key.Next(k[:17]), nil
	})
	_ = sc.s.hop([]byte{layout.RegionDelta}, []byte{layout.RegionRun}, func(k []byte) ([]byte, error) {
		_, slice, number, err := layout.SplitDeltaRegion(k)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "generation %d of slice %d\n", number, slice)
		return key.Next(k[:19]), nil
	})
	if out.Len() == 0 {
		return "nothing\n"
	}
	return out.String()
}
