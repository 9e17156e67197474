package block

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
)

// decodeList appends the lists of rows [lo, lo+n).
func (v *Vector) decodeList(c *chunk, lo, n int, spent *int) error {
	if c.enc != encList {
		return v.errEncoding(c)
	}
	lengths, total, child, err := lengthsArea(c.body, c.rows)
	if err != nil {
		return err
	}
	if total > maxChildRows {
		return corrupt("%d list elements", total)
	}
	first := sum(lengths.bits, lo, lengths.width, lengths.base)
	offs := v.extendOffs(n)
	start := uint64(offs[0])
	end := unpackSum(offs[1:n+1], lengths.bits, lo, lengths.width, lengths.base, start)
	if size := end - start; first > uint64(total) || size > uint64(total)-first || n == c.rows && size != uint64(total) {
		return corrupt("lengths of %d list elements", total)
	}
	if end > math.MaxInt32 {
		return corrupt("more than 2^31 list elements")
	}
	if err := v.kids[0].decode(child, total, int(first), int(first+end-start), spent); err != nil {
		return err
	}
	return v.checkMap()
}

// checkMap checks what arrow demands of a map: entries and keys without nulls.
func (v *Vector) checkMap() error {
	if v.dt.ID() != arrow.MAP {
		return nil
	}
	if entries := v.kids[0]; entries.nulls > 0 || entries.kids[0].nulls > 0 {
		return corrupt("a map with a null key")
	}
	return nil
}

// decodeFixedList appends the lists of rows [lo, lo+n).
func (v *Vector) decodeFixedList(c *chunk, lo, n int, spent *int) error {
	if c.enc != encFixedList {
		return v.errEncoding(c)
	}
	if v.size > 0 && c.rows > maxChildRows/v.size {
		return corrupt("more than 2^31 list elements")
	}
	return v.kids[0].decode(c.body, c.rows*v.size, lo*v.size, (lo+n)*v.size, spent)
}

// decodeStruct calls f with each child and its chunk.
func (v *Vector) decodeStruct(c *chunk, f func(kid *Vector, data []byte) error) error {
	if c.enc != encStruct {
		return v.errEncoding(c)
	}
	rest := c.body
	for _, kid := range v.kids {
		if len(rest) < 4 {
			return corrupt("a struct with a missing field")
		}
		size := int(binary.LittleEndian.Uint32(rest))
		if size > len(rest)-4 {
			return corrupt("a field of %d bytes in %d", size, len(rest)-4)
		}
		if err := f(kid, rest[4:4+size]); err != nil {
			return err
		}
		rest = rest[4+size:]
	}
	if len(rest) != 0 {
		return corrupt("%d bytes behind the last field", len(rest))
	}
	return nil
}

// pickLists appends picked lists. Few pieces of neighbouring rows are decoded
// by themselves; of many, everything between the first and the last row.
func (v *Vector) pickLists(data []byte, rows int, picks []uint32, spent *int) error {
	const fewPieces = 4
	pieces := 0
	for i := 0; i < len(picks) && pieces <= fewPieces; pieces++ {
		i = neighbours(picks, i)
	}
	if pieces <= fewPieces {
		for i := 0; i < len(picks); {
			end := neighbours(picks, i)
			if err := v.decode(data, rows, int(picks[i]), int(picks[end-1])+1, spent); err != nil {
				return err
			}
			i = end
		}
		return nil
	}
	first, last := slices.Min(picks), slices.Max(picks)
	all := NewVector(v.mem, v.dt)
	defer all.Release()
	if err := all.decode(data, rows, int(first), int(last)+1, spent); err != nil {
		return err
	}
	arr := all.NewArray()
	defer arr.Release()
	moved := make([]uint32, len(picks))
	for i, pick := range picks {
		moved[i] = pick - first
	}
	s := sourceOf(v.kind, arr.Data(), 0)
	v.pick(&s, moved)
	return nil
}
