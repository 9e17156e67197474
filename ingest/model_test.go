package ingest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/fault"
)

// model is table t(k, s, v, w) as a map: what each row does, one by one, in
// stream order, is what a stream must do however its batches are grouped.
type model map[string]map[string]string // "k s" to its columns

type modelRow struct {
	key    string
	values map[string]string // of the columns sent, as JSON
}

// apply is the rows' effect, and whether the mode refuses one.
func (m model) apply(mode Mode, rows []modelRow) bool {
	for _, r := range rows {
		old, exists := m[r.key]
		switch {
		case mode == ModeInsert && exists, mode == ModeUpdate && !exists:
			return false
		case mode == ModeInsertIgnore && exists:
		case mode == ModeDelete:
			delete(m, r.key)
		default:
			next := map[string]string{"v": "null", "w": "null"}
			if (mode == ModeMerge || mode == ModeUpdate) && exists {
				next["v"], next["w"] = old["v"], old["w"]
			}
			for name, value := range r.values {
				next[name] = value
			}
			m[r.key] = next
		}
	}
	return true
}

func (m model) clone() model {
	other := model{}
	for k, row := range m {
		other[k] = row
	}
	return other
}

func (m model) rows() []string {
	list := []string{}
	for k, row := range m {
		list = append(list, fmt.Sprintf("%s %s %s", k, row["v"], strings.Trim(row["w"], `"`)))
	}
	slices.Sort(list)
	return list
}

func TestStreamsDoWhatTheirRowsDo(t *testing.T) {
	rounds := 150
	if testing.Short() {
		rounds = 30
	}
	rng := rand.New(rand.NewPCG(11, 13))
	b := newBed(t)
	const columns = "k:string s:int64 v:int64 w:string"
	table := b.create(columns)
	want := model{}
	for round := range rounds {
		mode := Mode(rng.IntN(len(modeNames)))
		if mode == ModeReplaceTable && rng.IntN(4) > 0 {
			mode = ModeUpsert
		}
		sent := []string{"v", "w"}[:rng.IntN(3)]
		keys := []int{10, 300}[rng.IntN(2)]
		var texts []string
		var batches [][]modelRow
		for range 1 + rng.IntN(6) {
			var rows []modelRow
			var list []string
			for range rng.IntN(1 + []int{3, 300}[rng.IntN(2)]) {
				k, s := fmt.Sprintf("k%d", rng.IntN(keys)), rng.IntN(20)
				r := modelRow{key: fmt.Sprintf("%s %d", k, s), values: map[string]string{}}
				text := fmt.Sprintf(`{"k":%q,"s":%d`, k, s)
				for _, name := range sent {
					value := fmt.Sprint(rng.IntN(1000))
					if name == "w" {
						value = fmt.Sprintf("%q", "w"+value)
					}
					if rng.IntN(5) == 0 {
						value = "null"
					}
					r.values[name] = value
					text += fmt.Sprintf(`,%q:%s`, name, value)
				}
				rows, list = append(rows, r), append(list, text+"}")
			}
			batches, texts = append(batches, rows), append(texts, strings.Join(list, ","))
		}
		stream := "k:string s:int64"
		for _, name := range sent {
			stream += map[string]string{"v": " v:int64", "w": " w:string"}[name]
		}
		atomic := rng.IntN(3) == 0
		describe := fmt.Sprintf("round %d: %s, columns %s, atomic %v, %d batches", round, mode, stream, atomic, len(batches))

		refused := -1
		before := want.clone()
		if mode == ModeReplaceTable {
			want = model{}
		}
		for i, rows := range batches {
			next := want.clone()
			if !next.apply(mode, rows) {
				refused = i
				break
			}
			want = next
		}
		if refused >= 0 && atomic {
			want = before
		}

		s := b.mustOpen(schemaOf(stream), Options{Mode: mode, Atomic: atomic})
		var err error
		for len(texts) > 0 && err == nil {
			n := 1 + rng.IntN(len(texts))
			err = s.write(texts[:n]...)
			texts = texts[n:]
		}
		if err == nil {
			err = s.finish()
		}
		s.Abort()
		if refused < 0 {
			require.NoError(t, err, describe)
			require.Equal(t, uint64(len(batches)), s.Progress().Batches, describe)
		} else {
			require.NotNil(t, fault.Of(err), "%s: %v", describe, err)
			require.ErrorContains(t, err, fmt.Sprintf("batch %d, row ", refused), describe)
			if !atomic {
				require.Equal(t, uint64(refused), s.Progress().Batches, describe)
			}
		}
		if rng.IntN(10) == 0 {
			require.NoError(t, table.Fold(t.Context()))
		}
		got := b.rows()
		slices.Sort(got)
		require.Equal(t, want.rows(), got, describe)
	}
}
