package shards

import (
	"cmp"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards/layout"
)

// positionsLook is how many positions of streams go by between two looks at
// how many ids a table has.
const positionsLook = 1024

// forgetPositions is called behind a commit with n resume ids. Of more ids than
// limits.ResumeIDs those whose last commit is oldest are forgotten.
func (t *Table) forgetPositions(n int) error {
	if now := t.resumed.Add(uint64(n)); now/positionsLook == (now-uint64(n))/positionsLook {
		return nil
	}
	return t.trimPositions(limits.ResumeIDs)
}

func (t *Table) trimPositions(most int) error {
	type position struct {
		key    []byte
		commit uint64
	}
	var list []position
	low, high := layout.StreamsSpan(t.id)
	err := t.store.each(low, high, func(key, value []byte) error {
		_, commit, err := decodeStream(value)
		list = append(list, position{slices.Clone(key), commit})
		return err
	})
	if err != nil || len(list) <= most {
		return err
	}
	slices.SortFunc(list, func(a, b position) int { return cmp.Compare(a.commit, b.commit) })
	// No commit moves a position while it is looked at again and removed.
	t.commits.Lock()
	defer t.commits.Unlock()
	if err := t.ready(); err != nil {
		return err
	}
	batch := t.store.db.NewBatch()
	defer batch.Close()
	for _, p := range list[:len(list)-most] {
		value, closer, err := t.store.db.Get(p.key)
		if err != nil {
			return err
		}
		_, commit, err := decodeStream(value)
		closer.Close()
		if err == nil && commit == p.commit {
			err = batch.Delete(p.key, nil)
		}
		if err != nil {
			return err
		}
	}
	// Nothing waits for it: what a crash brings back is forgotten later.
	return t.store.guard("forgetting resume ids", func() error { return t.store.db.Apply(batch, pebble.NoSync) })
}
