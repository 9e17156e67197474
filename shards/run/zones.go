package run

import (
	"encoding/binary"
	"slices"

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
	blocks int
	ids    []uint32
	data   map[uint32][]byte
}

// add takes the zones of the next block; zones[i] belongs to ids[i].
func (w *zoneWriter) add(ids []uint32, zones []block.Zone) {
	if w.data == nil {
		w.data = map[uint32][]byte{}
	}
	for i, id := range ids {
		data, ok := w.data[id]
		if !ok {
			w.ids = append(w.ids, id)
			data = slices.Repeat([]byte{zoneAbsent}, w.blocks)
		}
		w.data[id] = appendZone(data, &zones[i])
	}
	w.blocks++
	for _, id := range w.ids {
		if !slices.Contains(ids, id) {
			w.data[id] = append(w.data[id], zoneAbsent)
		}
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

// take is the value of the gathered zone maps; the writer starts anew.
func (w *zoneWriter) take(dst []byte) []byte {
	start := len(dst)
	slices.Sort(w.ids)
	dst = binary.AppendUvarint(append(dst, tailVersion), uint64(w.blocks))
	dst = binary.AppendUvarint(dst, uint64(len(w.ids)))
	end := uint32(0)
	for _, id := range w.ids {
		end += uint32(len(w.data[id]))
		dst = binary.LittleEndian.AppendUint32(dst, id)
		dst = binary.LittleEndian.AppendUint32(dst, end)
	}
	for _, id := range w.ids {
		dst = append(dst, w.data[id]...)
	}
	*w = zoneWriter{}
	return sealTail(dst, start)
}

// zoneMap is one part of a slice's zone maps, opened but not decoded: a scan
// decodes the columns that its filter asks for.
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
	z := &zoneMap{blocks: s.count(1), bytes: int64(len(value)) + 128}
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
		z.bytes += 64
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
