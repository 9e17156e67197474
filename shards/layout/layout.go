package layout

import (
	"encoding/binary"
	"fmt"
)

// Regions, in key order. Every Pebble key begins with one of these bytes; the
// run region is last, so that an ingested run overlaps nothing before it.
const (
	RegionMeta  byte = 0x10
	RegionDelta byte = 0x20
	RegionRun   byte = 0x30
	RegionEnd   byte = 0x40
)

// Kinds of key in the meta region.
const (
	metaFormat byte = 0x01 // store format version
	metaIDs    byte = 0x02 // high-water mark of table, run and hidden-row ids
	metaTable  byte = 0x03 // table id -> catalog entry
	metaCommit byte = 0x04 // table id -> last commit number
	metaRun    byte = 0x05 // table id, run id -> manifest entry
	metaGens   byte = 0x06 // table id, slice -> delta generations
	metaStream byte = 0x07 // table id, client's resume id -> durable position
	metaWork   byte = 0x08 // table id -> bytes ingested and folded
)

// Kinds of key inside one generation of the delta.
const (
	deltaRow     byte = 0x00 // key, ^commit -> row of that commit's payload
	deltaPayload byte = 0x01 // commit -> block
)

// Kinds of key inside one slice of a run: blocks first, then the tail.
const (
	runBlock byte = 0x00
	runIndex byte = 0x01
	runZones byte = 0x02
)

// What a block's keys end with: its filter comes first, then column group 0, 1, …
const (
	blockFilter uint16 = 0
	blockGroup  uint16 = 1
)

func u64(dst []byte, values ...uint64) []byte {
	for _, v := range values {
		dst = binary.BigEndian.AppendUint64(dst, v)
	}
	return dst
}

// FormatKey holds the store's format version.
func FormatKey() []byte { return []byte{RegionMeta, metaFormat} }

// IDsKey holds the high-water mark of ids of one kind.
func IDsKey(kind byte) []byte { return []byte{RegionMeta, metaIDs, kind} }

// TableKey is a table's catalog entry.
func TableKey(table uint64) []byte { return u64([]byte{RegionMeta, metaTable}, table) }

// TablesSpan covers every table's catalog entry.
func TablesSpan() (low, high []byte) {
	return []byte{RegionMeta, metaTable}, []byte{RegionMeta, metaTable + 1}
}

// SplitTableKey is the table of a catalog entry's key.
func SplitTableKey(key []byte) (table uint64, err error) {
	if len(key) != 10 || key[0] != RegionMeta || key[1] != metaTable {
		return 0, fmt.Errorf("not the key of a table: %x", key)
	}
	return binary.BigEndian.Uint64(key[2:]), nil
}

// CommitKey holds a table's last commit number.
func CommitKey(table uint64) []byte { return u64([]byte{RegionMeta, metaCommit}, table) }

// RunKey is the manifest entry of one run.
func RunKey(table, run uint64) []byte { return u64([]byte{RegionMeta, metaRun}, table, run) }

// RunsSpan covers the manifest entries of one table.
func RunsSpan(table uint64) (low, high []byte) {
	return RunKey(table, 0), u64([]byte{RegionMeta, metaRun}, table+1)
}

// SplitRunKey is the table and run of a manifest entry's key.
func SplitRunKey(key []byte) (table, run uint64, err error) {
	if len(key) != 18 || key[0] != RegionMeta || key[1] != metaRun {
		return 0, 0, fmt.Errorf("not the key of a manifest entry: %x", key)
	}
	return binary.BigEndian.Uint64(key[2:]), binary.BigEndian.Uint64(key[10:]), nil
}

// GensKey lists the delta generations of one slice.
func GensKey(table uint64, slice int) []byte {
	return binary.BigEndian.AppendUint16(u64([]byte{RegionMeta, metaGens}, table), uint16(slice))
}

// GensSpan covers the generation lists of one table.
func GensSpan(table uint64) (low, high []byte) {
	return u64([]byte{RegionMeta, metaGens}, table), u64([]byte{RegionMeta, metaGens}, table+1)
}

// StreamKey holds what is durable under a client's resume id.
func StreamKey(table uint64, resume string) []byte {
	return append(u64([]byte{RegionMeta, metaStream}, table), resume...)
}

// StreamsSpan covers the resume positions of one table.
func StreamsSpan(table uint64) (low, high []byte) {
	return u64([]byte{RegionMeta, metaStream}, table), u64([]byte{RegionMeta, metaStream}, table+1)
}

// WorkKey holds how many bytes a table's commits brought and its folds wrote.
func WorkKey(table uint64) []byte { return u64([]byte{RegionMeta, metaWork}, table) }

// GenerationPrefix begins every key of one delta generation.
func GenerationPrefix(table uint64, slice int, generation uint64) []byte {
	key := u64([]byte{RegionDelta}, table)
	return u64(binary.BigEndian.AppendUint16(key, uint16(slice)), generation)
}

// GenerationSpan covers one delta generation, rows and payloads.
func GenerationSpan(table uint64, slice int, generation uint64) (low, high []byte) {
	return GenerationPrefix(table, slice, generation), GenerationPrefix(table, slice, generation+1)
}

// DeltaTableSpan covers every generation of one table.
func DeltaTableSpan(table uint64) (low, high []byte) {
	return u64([]byte{RegionDelta}, table), u64([]byte{RegionDelta}, table+1)
}

// SplitDeltaRegion is the table, slice and generation that a key of the delta
// region belongs to.
func SplitDeltaRegion(key []byte) (table uint64, slice int, generation uint64, err error) {
	if len(key) < 19 || key[0] != RegionDelta {
		return 0, 0, 0, fmt.Errorf("not a key of the delta region: %x", key)
	}
	return binary.BigEndian.Uint64(key[1:]), int(binary.BigEndian.Uint16(key[9:])), binary.BigEndian.Uint64(key[11:]), nil
}

// AppendDeltaRow appends the key of one version of one row to a copy of the
// generation's prefix; newer commits sort first.
func AppendDeltaRow(dst, generationPrefix, key []byte, commit uint64) []byte {
	dst = append(append(append(dst, generationPrefix...), deltaRow), key...)
	return binary.BigEndian.AppendUint64(dst, ^commit)
}

// DeltaRowsBound appends the first possible key of rows whose primary key is
// not below key; with a nil key, of all rows.
func DeltaRowsBound(dst, generationPrefix, key []byte) []byte {
	return append(append(append(dst, generationPrefix...), deltaRow), key...)
}

// DeltaRowsEnd appends the bound behind the last row of a generation.
func DeltaRowsEnd(dst, generationPrefix []byte) []byte {
	return append(append(dst, generationPrefix...), deltaPayload)
}

// SplitDeltaRow is the primary key and commit in a delta row's key. The key
// aliases its argument.
func SplitDeltaRow(generationPrefixLen int, key []byte) (primary []byte, commit uint64, err error) {
	rest := key[min(len(key), generationPrefixLen):]
	if len(rest) < 9 || rest[0] != deltaRow {
		return nil, 0, fmt.Errorf("not the key of a delta row: %x", key)
	}
	end := len(rest) - 8
	return rest[1:end], ^binary.BigEndian.Uint64(rest[end:]), nil
}

// AppendDeltaPayload appends the key of the block that one commit brought.
func AppendDeltaPayload(dst, generationPrefix []byte, commit uint64) []byte {
	return u64(append(append(dst, generationPrefix...), deltaPayload), commit)
}

// RunPrefix begins every key of one run.
func RunPrefix(table, run uint64) []byte { return u64([]byte{RegionRun}, table, run) }

// RunSpan covers one run.
func RunSpan(table, run uint64) (low, high []byte) {
	return RunPrefix(table, run), RunPrefix(table, run+1)
}

// RunTableSpan covers every run of one table.
func RunTableSpan(table uint64) (low, high []byte) {
	return u64([]byte{RegionRun}, table), u64([]byte{RegionRun}, table+1)
}

// SplitRunRegion is the table and run that a key of the run region belongs to.
func SplitRunRegion(key []byte) (table, run uint64, err error) {
	if len(key) < 17 || key[0] != RegionRun {
		return 0, 0, fmt.Errorf("not a key of the run region: %x", key)
	}
	return binary.BigEndian.Uint64(key[1:]), binary.BigEndian.Uint64(key[9:]), nil
}

// AppendSlice appends the prefix of one slice inside a run.
func AppendSlice(dst, runPrefix []byte, slice int) []byte {
	return binary.BigEndian.AppendUint16(append(dst, runPrefix...), uint16(slice))
}

// AppendBlocks appends what every key of a slice's blocks begins with.
func AppendBlocks(dst, runPrefix []byte, slice int) []byte {
	return append(AppendSlice(dst, runPrefix, slice), runBlock)
}

// AppendBlock appends the key of one column group of a block, named by the last
// primary key in it. Group 0 holds the key columns.
func AppendBlock(dst, runPrefix []byte, slice int, last []byte, group int) []byte {
	dst = append(AppendBlocks(dst, runPrefix, slice), last...)
	return binary.BigEndian.AppendUint16(dst, blockGroup+uint16(group))
}

// AppendBlockFilter appends the key of a block's sharding-key filter, which is
// just before that of its group 0.
func AppendBlockFilter(dst, runPrefix []byte, slice int, last []byte) []byte {
	dst = append(AppendBlocks(dst, runPrefix, slice), last...)
	return binary.BigEndian.AppendUint16(dst, blockFilter)
}

// AppendRunIndex and AppendRunZones append the keys of a slice's tail: block
// index, and zone maps of one column group. Part numbers cut what would be a
// large value; part 0 of the index always exists.
func AppendRunIndex(dst, runPrefix []byte, slice, part int) []byte {
	dst = append(AppendSlice(dst, runPrefix, slice), runIndex)
	return binary.BigEndian.AppendUint32(dst, uint32(part))
}

// AppendRunZones: see AppendRunIndex.
func AppendRunZones(dst, runPrefix []byte, slice, part, group int) []byte {
	dst = append(AppendSlice(dst, runPrefix, slice), runZones)
	dst = binary.BigEndian.AppendUint32(dst, uint32(part))
	return binary.BigEndian.AppendUint16(dst, uint16(group))
}
