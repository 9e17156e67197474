package block

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// textArea is a parsed text area: lengths, and the bytes in one piece or LZ4.
type textArea struct {
	lengths    packed
	total      int
	bytes      []byte
	compressed bool
}

// lengthsArea takes packed lengths of rows texts or lists, and what they add
// up to, off the front of body.
func lengthsArea(body []byte, rows int) (lengths packed, total int, rest []byte, err error) {
	if len(body) < 9 {
		return packed{}, 0, nil, corrupt("lengths without a head")
	}
	if body[0] > 32 {
		return packed{}, 0, nil, corrupt("lengths of %d bits", body[0])
	}
	total = int(binary.LittleEndian.Uint32(body[5:]))
	lengths, rest, err = packedArea(body[9:], rows, int(body[0]), uint64(binary.LittleEndian.Uint32(body[1:])), 1)
	return lengths, total, rest, err
}

func parseText(body []byte, rows int, compressed bool) (textArea, error) {
	lengths, total, rest, err := lengthsArea(body, rows)
	if err != nil {
		return textArea{}, err
	}
	if total > MaxColumnBytes || compressed && total > maxRatio*(len(rest)+1) || !compressed && total != len(rest) {
		return textArea{}, corrupt("%d bytes of text in %d bytes", total, len(rest))
	}
	return textArea{lengths: lengths, total: total, bytes: rest, compressed: compressed}, nil
}

// decodeText appends the texts of rows [lo, lo+n).
func (v *Vector) decodeText(c *chunk, lo, n int, spent *int) error {
	switch c.enc {
	case encConstant:
		return v.constantText(c.body, n, spent)
	case encText, encTextLZ4:
		area, err := parseText(c.body, c.rows, c.enc == encTextLZ4)
		if err != nil {
			return err
		}
		return v.appendTextArea(&area, c.rows, lo, n, spent)
	case encDict:
		codes, table, err := v.textDict(c)
		if err != nil {
			return err
		}
		picks := grown(&v.scratch.codes, n)
		unpack(picks, codes.bits, lo, codes.width, 0, 1)
		return v.lookUpText(picks, table, spent)
	}
	return v.errEncoding(c)
}

// pickTexts appends the texts of picked rows.
func (v *Vector) pickTexts(c *chunk, picks []uint32, spent *int) error {
	switch c.enc {
	case encConstant:
		return v.constantText(c.body, len(picks), spent)
	case encText, encTextLZ4:
		area, err := parseText(c.body, c.rows, c.enc == encTextLZ4)
		if err != nil {
			return err
		}
		table, err := v.textTable(&area, c.rows)
		if err != nil {
			return err
		}
		return v.copyTexts(picks, table, spent)
	case encDict:
		codes, table, err := v.textDict(c)
		if err != nil {
			return err
		}
		found := grown(&v.scratch.codes, len(picks))
		unpackRows(found, codes.bits, picks, codes.width, 0, 1)
		return v.lookUpText(found, table, spent)
	}
	return v.errEncoding(c)
}

// room checks that n more bytes of text are within what the column may take
// and what offsets can hold.
func (v *Vector) room(n int, spent *int) error {
	have := 0
	if v.values != nil {
		have = v.values.Len()
	}
	if !spend(spent, n) || n > math.MaxInt32-have {
		return corrupt("more than %d bytes of one column", MaxColumnBytes)
	}
	return nil
}

func (v *Vector) constantText(value []byte, n int, spent *int) error {
	if len(value) > MaxColumnBytes {
		return corrupt("constant of %d bytes", len(value))
	}
	if err := v.room(n*len(value), spent); err != nil {
		return err
	}
	offs := v.extendOffs(n)
	for i := range n {
		offs[i+1] = offs[i] + int32(len(value))
	}
	dst := v.extendText(n*len(value), 0)
	if len(dst) > 0 {
		for done := copy(dst, value); done < len(dst); done *= 2 {
			copy(dst[done:], dst[:done])
		}
	}
	return nil
}

// appendTextArea appends rows [lo, lo+n) of a text area of rows rows.
func (v *Vector) appendTextArea(a *textArea, rows, lo, n int, spent *int) error {
	first := sum(a.lengths.bits, lo, a.lengths.width, a.lengths.base)
	offs := v.extendOffs(n)
	start := uint64(offs[0])
	end := unpackSum(offs[1:n+1], a.lengths.bits, lo, a.lengths.width, a.lengths.base, start)
	size := end - start
	whole := n == rows
	if first > uint64(a.total) || size > uint64(a.total)-first || whole && size != uint64(a.total) {
		return corrupt("lengths of %d bytes of text", a.total)
	}
	if err := v.room(int(size), spent); err != nil {
		return err
	}
	dst := v.extendText(int(size), 0)
	switch {
	case !a.compressed:
		copy(dst, a.bytes[first:])
	case whole:
		return decompress(dst, a.bytes)
	default:
		all, err := v.decompress(a.bytes, a.total)
		if err != nil {
			return err
		}
		copy(dst, all[first:])
	}
	return nil
}

// textTable is text i = bytes[offs[i]:offs[i+1]], in scratch memory or the
// block.
type textTable struct {
	offs  []int32
	bytes []byte
}

// textTable takes a text area of rows rows apart for random access.
func (v *Vector) textTable(a *textArea, rows int) (textTable, error) {
	offs := grown(&v.scratchpad().offs, rows+1)
	offs[0] = 0
	if end := unpackSum(offs[1:], a.lengths.bits, 0, a.lengths.width, a.lengths.base, 0); end != uint64(a.total) {
		return textTable{}, corrupt("lengths of %d bytes of text", a.total)
	}
	if !a.compressed {
		return textTable{offs: offs, bytes: a.bytes}, nil
	}
	bytes, err := v.decompress(a.bytes, a.total)
	return textTable{offs: offs, bytes: bytes}, err
}

// textDict is the codes of a dictionary chunk and its texts.
func (v *Vector) textDict(c *chunk) (codes packed, table textTable, err error) {
	codes, size, rest, err := codesArea(c)
	if err != nil {
		return packed{}, textTable{}, err
	}
	if len(rest) < 1 || rest[0] > 1 {
		return packed{}, textTable{}, corrupt("dictionary without texts")
	}
	area, err := parseText(rest[1:], size, rest[0] == 1)
	if err != nil {
		return packed{}, textTable{}, err
	}
	table, err = v.textTable(&area, size)
	return codes, table, err
}

// Short dictionaries of short texts: copying a whole entry of fixed size is
// faster than copying just the text, so entries are padded and what was copied
// too much is overwritten by the next one (BenchmarkDecode/dict).
const (
	shortTexts = 256
	shortBytes = 32
)

type shortTable struct {
	values  [shortTexts][shortBytes / 8]uint64
	lengths [shortTexts]uint32
}

// lookUpText appends the texts that codes name.
func (v *Vector) lookUpText(codes []uint32, table textTable, spent *int) error {
	size := len(table.offs) - 1
	if err := checkCodes(codes, size); err != nil {
		return err
	}
	longest := 0
	for i := range size {
		longest = max(longest, int(table.offs[i+1]-table.offs[i]))
	}
	if size > shortTexts || longest > shortBytes || len(codes) < 2*size {
		return v.copyTexts(codes, table, spent)
	}
	pad := v.scratchpad()
	if pad.short == nil {
		pad.short = &shortTable{}
	}
	short := pad.short
	for i := range size {
		text := table.bytes[table.offs[i]:table.offs[i+1]]
		entry := &short.values[i]
		*entry = [shortBytes / 8]uint64{}
		copy(unsafe.Slice((*byte)(unsafe.Pointer(entry)), shortBytes), text)
		short.lengths[i] = uint32(len(text))
	}
	most := len(codes) * longest
	if err := v.room(most, new(int)); err != nil {
		return err
	}
	offs := v.extendOffs(len(codes))
	start := offs[0]
	have := v.extendText(0, most+shortBytes)
	offs = offs[:len(codes)+1]
	var end uintptr
	switch {
	case longest <= 8:
		end = copyShort8(have, offs[1:], codes, short, start)
	case longest <= 16:
		end = copyShort16(have, offs[1:], codes, short, start)
	default:
		end = copyShort32(have, offs[1:], codes, short, start)
	}
	if err := v.room(int(end), spent); err != nil {
		return err
	}
	v.extendText(int(end), 0)
	return nil
}

// copyShort8 writes texts of at most 8 bytes one behind the other and where
// each ends, start being where the first begins; dst has 8 bytes more than
// they need. It returns how many bytes they take.
func copyShort8(dst []byte, ends []int32, codes []uint32, short *shortTable, start int32) uintptr {
	p := unsafe.Pointer(unsafe.SliceData(dst))
	at := uintptr(0)
	ends = ends[:len(codes)]
	for i, code := range codes {
		code &= shortTexts - 1
		*(*uint64)(unsafe.Add(p, at)) = short.values[code][0]
		at += uintptr(short.lengths[code])
		ends[i] = start + int32(at)
	}
	return at
}

// copyShort16 is copyShort8 for at most 16 bytes.
func copyShort16(dst []byte, ends []int32, codes []uint32, short *shortTable, start int32) uintptr {
	p := unsafe.Pointer(unsafe.SliceData(dst))
	at := uintptr(0)
	ends = ends[:len(codes)]
	for i, code := range codes {
		code &= shortTexts - 1
		value := &short.values[code]
		to := (*[2]uint64)(unsafe.Add(p, at))
		to[0], to[1] = value[0], value[1]
		at += uintptr(short.lengths[code])
		ends[i] = start + int32(at)
	}
	return at
}

// copyShort32 is copyShort8 for at most 32 bytes.
func copyShort32(dst []byte, ends []int32, codes []uint32, short *shortTable, start int32) uintptr {
	p := unsafe.Pointer(unsafe.SliceData(dst))
	at := uintptr(0)
	ends = ends[:len(codes)]
	for i, code := range codes {
		code &= shortTexts - 1
		*(*[4]uint64)(unsafe.Add(p, at)) = short.values[code]
		at += uintptr(short.lengths[code])
		ends[i] = start + int32(at)
	}
	return at
}

// copyTexts appends texts of a table, all rows being within it.
func (v *Vector) copyTexts(rows []uint32, table textTable, spent *int) error {
	from := table.offs
	size := 0
	for _, row := range rows {
		size += int(from[row+1] - from[row])
	}
	if err := v.room(size, spent); err != nil {
		return err
	}
	offs := v.extendOffs(len(rows))
	dst := v.extendText(size, 0)
	end := offs[0]
	for i, row := range rows {
		text := table.bytes[from[row]:from[row+1]]
		dst = dst[copy(dst, text):]
		end += int32(len(text))
		offs[i+1] = end
	}
	return nil
}
