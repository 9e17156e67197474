package shards

import (
	"encoding/binary"
	"encoding/json"
	"strconv"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
)

// Schema metadata that names a table's keys; docs/wire.md describes it.
const (
	MetaShardingKey = "sheaf.sharding_key"
	MetaSortingKey  = "sheaf.sorting_key"
	MetaSlices      = "sheaf.slices"
)

// Names of the columns that every table has beside its own, or may have.
const (
	ReservedPrefix = "_sheaf_"
	CommitName     = "_sheaf_commit"
	ExpiresName    = "_sheaf_expires"
	HiddenIDName   = "_sheaf_id"
)

// Column is one column of a table. ID is never reused by the table, Field is
// the declared field, Canonical the type its arrays have inside the engine.
// Hidden is true for _sheaf_id only.
type Column struct {
	ID        uint32
	Field     arrow.Field
	Canonical arrow.DataType
	Hidden    bool
}

// Schema is one version of a table's schema. It is immutable.
//
// In a table without key (HiddenID) column 0 is _sheaf_id, a hidden uint64 with
// id block.ColumnHiddenID, and it is the whole sharding key; commits bring it
// like any other column.
type Schema struct {
	Version           uint32
	Columns           []Column
	Metadata          arrow.Metadata // the creator's, without sheaf.*
	Sharding, Sorting []int          // indices into Columns
	Slices            int
	HiddenID          bool

	once    sync.Once
	arrow   *arrow.Schema
	byName  map[string]int
	byID    map[uint32]int
	keyCols []int
	keyType []arrow.DataType
}

func (s *Schema) derive() {
	s.once.Do(func() {
		s.byName = make(map[string]int, len(s.Columns))
		s.byID = make(map[uint32]int, len(s.Columns))
		var fields []arrow.Field
		for i, c := range s.Columns {
			s.byName[c.Field.Name] = i
			s.byID[c.ID] = i
			if !c.Hidden {
				fields = append(fields, c.Field)
			}
		}
		s.keyCols = append(append([]int(nil), s.Sharding...), s.Sorting...)
		for _, c := range s.keyCols {
			s.keyType = append(s.keyType, s.Columns[c].Canonical)
		}
		meta := s.arrowMetadata()
		s.arrow = arrow.NewSchema(fields, &meta)
	})
}

func (s *Schema) arrowMetadata() arrow.Metadata {
	keys := append([]string(nil), s.Metadata.Keys()...)
	values := append([]string(nil), s.Metadata.Values()...)
	list := func(columns []int) string {
		names := []string{}
		for _, c := range columns {
			if !s.Columns[c].Hidden {
				names = append(names, s.Columns[c].Field.Name)
			}
		}
		text, _ := json.Marshal(names) // strings always marshal
		return string(text)
	}
	keys, values = append(keys, MetaShardingKey), append(values, list(s.Sharding))
	if len(s.Sorting) > 0 {
		keys, values = append(keys, MetaSortingKey), append(values, list(s.Sorting))
	}
	keys, values = append(keys, MetaSlices), append(values, strconv.Itoa(s.Slices))
	return arrow.NewMetadata(keys, values)
}

// Arrow is the declared schema without hidden columns; its metadata is the
// creator's and sheaf.*, so that a table is copied by writing what was read.
func (s *Schema) Arrow() *arrow.Schema { s.derive(); return s.arrow }

// Column is the index in Columns of the column with this exact name.
func (s *Schema) Column(name string) (int, bool) {
	s.derive()
	i, ok := s.byName[name]
	return i, ok
}

// ColumnByID is the index in Columns of the column with this id.
func (s *Schema) ColumnByID(id uint32) (int, bool) {
	s.derive()
	i, ok := s.byID[id]
	return i, ok
}

// CanonicalByID is the canonical type of a column, reserved ones included: what
// a Scan returns for this id.
func (s *Schema) CanonicalByID(id uint32) (arrow.DataType, bool) {
	if id == block.ColumnCommit {
		return arrow.PrimitiveTypes.Uint64, true
	}
	if i, ok := s.ColumnByID(id); ok {
		return s.Columns[i].Canonical, true
	}
	return nil, false
}

// KeyColumns is the primary key: indices into Columns, sharding then sorting.
func (s *Schema) KeyColumns() []int { s.derive(); return s.keyCols }

// KeyTypes is the canonical types of KeyColumns.
func (s *Schema) KeyTypes() []arrow.DataType { s.derive(); return s.keyType }

// IDs is the column ids in the order of Columns.
func (s *Schema) IDs() []uint32 {
	ids := make([]uint32, len(s.Columns))
	for i, c := range s.Columns {
		ids[i] = c.ID
	}
	return ids
}

// hiddenIDShift groups hidden ids: about a block's worth of neighbours share a
// slice, so that a lease of ids fills whole blocks.
const hiddenIDShift = 11

// SliceOf is the slice of the rows with this encoded sharding key. Hidden ids
// go by their upper bits, so that neighbours stay together.
func (s *Schema) SliceOf(shardKey []byte) int {
	if s.HiddenID && len(shardKey) >= 8 {
		var group [8]byte
		binary.BigEndian.PutUint64(group[:], binary.BigEndian.Uint64(shardKey)>>hiddenIDShift)
		shardKey = group[:]
	}
	return key.SliceOf(key.Hash(shardKey), s.Slices)
}

// keyText names the keys for messages: (a, b) sorted by (c).
func (s *Schema) keyText() string {
	list := func(columns []int) string {
		var names []string
		for _, c := range columns {
			names = append(names, s.Columns[c].Field.Name)
		}
		return "(" + strings.Join(names, ", ") + ")"
	}
	if len(s.Sorting) == 0 {
		return list(s.Sharding)
	}
	return list(s.Sharding) + " sorted by " + list(s.Sorting)
}
