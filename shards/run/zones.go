package run

import (
	"encoding/binary"
	"maps"
	"slices"
	"unsafe"

	"github.com/sheaf-db/sheaf/shards/block"
)

// Flags of a zone in a zone map.
const (
	zoneNaN      byte = 1 << iota // the column has a NaN
	zoneMin                       // a least value follows
	zoneMax                       // a greatest value follows
	zoneMinExact                  // the least value occurs
	zoneMaxExact                  // the greatest value occurs
	zoneAbsent                    // the block has no such column: nothing follows
)

// maxZoneValue bounds a value of a zone map that a reader accepts.
const maxZoneValue = 1 << 10

// zoneWriter gathers the zone maps of the blocks of one leaf.
type zoneWriter struct {
	blocks  int
	columns map[uint32]*zoneColumn
}

// zoneColumn is the zones of one column so far.
type zoneColumn struct {
	blocks int
	data   []byte
}

// add takes the zones of the next block; zones[i] belongs to ids[i].
func (w *zoneWriter) add(ids []uint32, zones []block.Zone) {
	if w.columns == nil {
		w.columns = make(map[uint32]*zoneColumn, len(ids))
	}
	for i, id := range ids {
		c := w.columns[id]
		if c == nil {
			c = &zoneColumn{}
			w.columns[id] = c
		}
		c.absent(w.blocks)
		c.data = appendZone(c.data, &zones[i])
		c.blocks++
	}
	w.blocks++
}

// absent fills up to so many blocks: those that do not have the column.
func (c *zoneColumn) absent(blocks int) {
	for ; c.blocks < blocks; c.blocks++ {
		c.data = append(c.data, zoneAbsent)
	}
}

func appendZone(dst []byte, z *block.Zone) []byte {
	var flags byte
	set := func(flag byte, is bool) {
		if is {
			flags |= flag
		}
	}
	set(zoneNaN, z.NaN)
	set(zoneMin, z.Min != nil)
	set(zoneMax, z.Max != nil)
	set(zoneMinExact, z.MinExact)
	set(zoneMaxExact, z.MaxExact)
	dst = binary.AppendUvarint(append(dst, flags), uint64(z.Nulls))
	if z.Min != nil {
		dst = appendKey(dst, nil, z.Min)
	}
	if z.Max != nil {
		dst = appendKey(dst, z.Min, z.Max)
	}
	return dst
}

// take is the values of the gathered zone maps, one for each column group; the
// writer starts anew.
func (w *zoneWriter) take(groups *grouping) [][]byte {
	ids := make([][]uint32, groups.count())
	for _, id := range slices.Sorted(maps.Keys(w.columns)) {
		at := groups.of(id)
		ids[at] = append(ids[at], id)
	}
	values := make([][]byte, len(ids))
	for i := range ids {
		values[i] = w.value(ids[i])
	}
	*w = zoneWriter{}
	return values
}

// value is the zone maps of some columns.
func (w *zoneWriter) value(ids []uint32) []byte {
	dst := binary.AppendUvarint([]byte{tailVersion}, uint64(w.blocks))
	dst = binary.AppendUvarint(dst, uint64(len(ids)))
	end := uint32(0)
	for _, id := range ids {
		c := w.columns[id]
		c.absent(w.blocks)
		end += uint32(len(c.data))
		dst = binary.LittleEndian.AppendUint32(dst, id)
		dst = binary.LittleEndian.AppendUint32(dst, end)
	}
	for _, id := range ids {
		dst = append(dst, w.columns[id].data...)
	}
	return sealTail(dst, 0)
}

// mapBytes and mapEntryBytes are about what a map takes, and one of its entries
// of an id and a slice: a group of eight slots, two thirds of them in use.
const (
	mapBytes      = 64
	mapEntryBytes = 48
)

// zoneMap is one part of the zone maps of a slice's column group, opened but not
// decoded: a scan decodes the columns that its filter asks for.
type zoneMap struct {
	blocks  int
	columns map[uint32][]byte
	bytes   int64
}

// openZones reads the directory of a part. The result aliases value.
func openZones(value []byte) (*zoneMap, error) {
	payload, err := openTail(value)
	if err != nil {
		return nil, err
	}
	s := scanner{data: payload}
	z := &zoneMap{blocks: s.count(0), bytes: int64(cap(value)) + int64(unsafe.Sizeof(zoneMap{})) + mapBytes}
	directory := s.take(8 * uint64(s.count(8)))
	z.columns = make(map[uint32][]byte, len(directory)/8)
	before := uint32(0)
	for ; len(directory) > 0 && s.err == nil; directory = directory[8:] {
		id, end := binary.LittleEndian.Uint32(directory), binary.LittleEndian.Uint32(directory[4:])
		if _, twice := z.columns[id]; twice || end < before {
			s.fail("zone maps name column %d twice or backwards", id)
			break
		}
		z.columns[id] = s.take(uint64(end - before))
		z.bytes += mapEntryBytes
		before = end
	}
	if s.err != nil {
		return nil, s.err
	}
	if len(s.data) != 0 {
		return nil, tailError("%d bytes behind the zone maps", len(s.data))
	}
	return z, nil
}

// column decodes the zones of one column, one for each block; rows are taken
// from the index. Zones with Rows 0 are not known. Values alias memory of their
// own.
func (z *zoneMap) column(dst []block.Zone, id uint32, leaf *index) ([]block.Zone, error) {
	dst = dst[:0]
	data, ok := z.columns[id]
	if z.blocks != len(leaf.entries) {
		return nil, tailError("zone maps of %d blocks, index of %d", z.blocks, len(leaf.entries))
	}
	if !ok {
		return append(dst, make([]block.Zone, z.blocks)...), nil
	}
	s := scanner{data: data}
	arena := make([]byte, 0, 2*len(data))
	for i := range z.blocks {
		var zone block.Zone
		var known bool
		zone, arena, known = s.zone(arena)
		if s.err != nil {
			return nil, s.err
		}
		if known {
			zone.Rows = int(leaf.entries[i].rows)
			if zone.Nulls > zone.Rows {
				return nil, tailError("a zone has %d nulls of %d rows", zone.Nulls, zone.Rows)
			}
		}
		dst = append(dst, zone)
	}
	if len(s.data) != 0 {
		return nil, tailError("%d bytes behind the zones of column %d", len(s.data), id)
	}
	return dst, nil
}

// zone reads one zone, whose values it appends to arena.
func (s *scanner) zone(arena []byte) (z block.Zone, grown []byte, known bool) {
	flags := s.byte()
	if flags&zoneAbsent != 0 {
		return z, arena, false
	}
	nulls := s.number()
	if nulls > maxBlockRows {
		s.fail("a zone has %d nulls", nulls)
		return z, arena, false
	}
	z.Nulls = int(nulls)
	z.NaN = flags&zoneNaN != 0
	z.MinExact, z.MaxExact = flags&zoneMinExact != 0, flags&zoneMaxExact != 0
	value := func(base []byte) []byte {
		at := len(arena)
		arena = s.key(arena, base, maxZoneValue)
		return arena[at:len(arena):len(arena)]
	}
	if flags&zoneMin != 0 {
		z.Min = value(nil)
	}
	if flags&zoneMax != 0 {
		z.Max = value(z.Min)
	}
	return z, arena, s.err == nil
}
