package block

import "fmt"

// Codes reads rows [lo, hi) of a column as places in a list of values, where the
// chunk holds few different ones: it appends the list to v, which is empty, a
// null behind the values if rows may be null, and gives each row's place in it
// in codes, whose memory it uses. So a test of the column looks at each value
// once. It is false, and v is empty, where the chunk has no such list or the
// rows are not at least twice as many as its values. Errors are those of Append.
func (r *Reader) Codes(v *Vector, codes []uint32, id uint32, lo, hi int) ([]uint32, bool, error) {
	i := r.find(id)
	if i < 0 {
		return codes, false, fmt.Errorf("column %d is not in the block", id)
	}
	if lo < 0 || hi < lo || hi > r.rows {
		return codes, false, fmt.Errorf("column %d: rows [%d, %d) of a block of %d", id, lo, hi, r.rows)
	}
	codes = grown(&codes, hi-lo)
	ok, err := v.decodeCodes(r.chunk(i), r.rows, lo, codes)
	if err != nil {
		v.rollback(0)
		return codes, false, fmt.Errorf("column %d: %w", id, err)
	}
	return codes, ok, nil
}

func (v *Vector) decodeCodes(data []byte, rows, lo int, codes []uint32) (bool, error) {
	c, err := v.parse(data, rows)
	if err != nil || v.shape != shapeFixed && v.shape != shapeText || len(codes) == 0 {
		return false, err
	}
	spent, size := 0, 1
	switch c.enc {
	case encNulls:
		clear(codes)
		return true, v.decodeNulls(&c, 1, &spent)
	case encConstant:
		if v.shape == shapeText {
			err = v.constantText(c.body, 1, &spent)
		} else {
			err = v.decodeConstant(&c, 1)
		}
		clear(codes)
	case encDict:
		size, err = v.decodeDict(&c, lo, codes, &spent)
		if size == 0 {
			return false, err
		}
	default:
		return false, nil
	}
	if err != nil {
		return false, err
	}
	v.rows += size
	if c.valid != nil {
		eachZero(c.valid, lo, len(codes), func(i int) { codes[i] = uint32(size) })
		v.AppendNulls(1)
	}
	return true, nil
}

// decodeDict appends the dictionary of a chunk and reads the codes of rows from
// lo on; 0 if there are too few rows for that.
func (v *Vector) decodeDict(c *chunk, lo int, codes []uint32, spent *int) (size int, err error) {
	packed, size, _, err := codesArea(c)
	if err != nil || 2*size > len(codes) {
		return 0, err
	}
	if v.shape == shapeFixed {
		_, values, err := v.fixedDict(c)
		if err != nil {
			return 0, err
		}
		copy(v.extend(&v.values, len(values)), values)
	} else {
		_, table, err := v.textDict(c)
		if err != nil {
			return 0, err
		}
		all := grown(&v.scratch.codes, size)
		for i := range all {
			all[i] = uint32(i)
		}
		if err := v.copyTexts(all, table, spent); err != nil {
			return 0, err
		}
	}
	unpack(codes, packed.bits, lo, packed.width, 0, 1)
	return size, checkCodes(codes, size)
}
