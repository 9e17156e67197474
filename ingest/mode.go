package ingest

import (
	"strings"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/shards"
)

// Mode says what a row does to a key that exists and to one that does not.
type Mode uint8

// The modes, as docs/wire.md names them.
const (
	ModeUpsert Mode = iota
	ModeInsert
	ModeInsertIgnore
	ModeMerge
	ModeUpdate
	ModeDelete
	ModeReplaceTable
)

var modeNames = []string{"upsert", "insert", "insert_ignore", "merge", "update", "delete", "replace_table"}

func (m Mode) String() string { return modeNames[m] }

// ParseMode is the mode of a command; the empty text is upsert.
func ParseMode(text string) (Mode, error) {
	if text == "" {
		return ModeUpsert, nil
	}
	for m, name := range modeNames {
		if text == name {
			return Mode(m), nil
		}
	}
	return 0, fault.Invalid("MODE_UNKNOWN", "mode %.80q is not known; the modes are %s", text, strings.Join(modeNames, ", "))
}

// looksFirst: the outcome depends on which keys exist.
func (m Mode) looksFirst() bool {
	return m == ModeInsert || m == ModeInsertIgnore || m == ModeMerge || m == ModeUpdate
}

// partial: columns that are not sent keep their values.
func (m Mode) partial() bool { return m == ModeMerge || m == ModeUpdate }

// keepsFirst: of several rows with one key in one commit the first wins.
func (m Mode) keepsFirst() bool { return m == ModeInsertIgnore }

// allowed refuses the modes that need a key on tables without one.
func (m Mode) allowed(name shards.Name, withoutKey bool) error {
	if withoutKey && m != ModeUpsert && m != ModeInsert {
		return fault.Invalid("MODE_NEEDS_KEY", "mode %s needs a key, and table %s has none; it takes upsert and insert, which append", m, name)
	}
	return nil
}
