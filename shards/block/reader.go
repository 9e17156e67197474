package block

import (
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"
)

// Reader reads one block in place: its bytes must stay as they are while it is
// used. It holds no other memory, and any number of goroutines may read.
type Reader struct {
	data    []byte
	rows    int
	columns int
}

// Open checks version, checksum and directory of a block. Errors wrap
// ErrCorrupt.
func Open(data []byte) (Reader, error) { return open(data, true) }

// Reopen is Open for a block whose checksum was found right before, and which
// what it was read through has checked since: Pebble checks what it reads from
// disk.
func Reopen(data []byte) (Reader, error) { return open(data, false) }

func open(data []byte, verify bool) (Reader, error) {
	if len(data) < headerBytes+checksumBytes || len(data) > maxBlockBytes {
		return Reader{}, fmt.Errorf("%w: %d bytes", ErrCorrupt, len(data))
	}
	if data[0] != blockVersion {
		return Reader{}, fmt.Errorf("%w: format version %d, this program reads version %d", ErrCorrupt, data[0], blockVersion)
	}
	end := len(data) - checksumBytes
	if verify {
		if want, got := binary.LittleEndian.Uint64(data[end:]), xxhash.Sum64(data[:end]); want != got {
			return Reader{}, fmt.Errorf("%w: checksum %016x, its bytes give %016x", ErrCorrupt, want, got)
		}
	}
	r := Reader{data: data, rows: int(binary.LittleEndian.Uint32(data[1:])), columns: int(binary.LittleEndian.Uint16(data[5:]))}
	if r.rows > MaxRows {
		return Reader{}, fmt.Errorf("%w: %d rows", ErrCorrupt, r.rows)
	}
	at := headerBytes + r.columns*entryBytes
	if at > end {
		return Reader{}, fmt.Errorf("%w: %d columns in %d bytes", ErrCorrupt, r.columns, len(data))
	}
	for i := range r.columns {
		id, chunkEnd := r.entry(i)
		if i > 0 && id <= r.id(i-1) {
			return Reader{}, fmt.Errorf("%w: column %d behind column %d", ErrCorrupt, id, r.id(i-1))
		}
		if chunkEnd < at || chunkEnd > end {
			return Reader{}, fmt.Errorf("%w: column %d ends at byte %d, not in [%d, %d]", ErrCorrupt, id, chunkEnd, at, end)
		}
		at = chunkEnd
	}
	if at != end {
		return Reader{}, fmt.Errorf("%w: %d bytes behind the last column", ErrCorrupt, end-at)
	}
	return r, nil
}

func (r *Reader) id(i int) uint32 {
	return binary.LittleEndian.Uint32(r.data[headerBytes+i*entryBytes:])
}

// entry is column i of the directory: its id and where its chunk ends.
func (r *Reader) entry(i int) (id uint32, end int) {
	e := r.data[headerBytes+i*entryBytes:]
	return binary.LittleEndian.Uint32(e), int(binary.LittleEndian.Uint32(e[4:]))
}

// find is the place of a column in the directory, -1 if it is not there.
func (r *Reader) find(id uint32) int {
	low, high := 0, r.columns
	for low < high {
		middle := int(uint(low+high) >> 1)
		if r.id(middle) < id {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low < r.columns && r.id(low) == id {
		return low
	}
	return -1
}

// chunk is the bytes of column i, with slack readable bytes behind.
func (r *Reader) chunk(i int) []byte {
	start := headerBytes + r.columns*entryBytes
	if i > 0 {
		_, start = r.entry(i - 1)
	}
	_, end := r.entry(i)
	return r.data[start:end]
}

// Rows is the number of rows.
func (r *Reader) Rows() int { return r.rows }

// Columns are the ids of the columns, ascending.
func (r *Reader) Columns() []uint32 {
	ids := make([]uint32, r.columns)
	for i := range ids {
		ids[i] = r.id(i)
	}
	return ids
}

// Has reports whether the block holds a column.
func (r *Reader) Has(id uint32) bool { return r.find(id) >= 0 }

// ChunkBytes is the encoded size of a column, 0 if the block does not hold it.
func (r *Reader) ChunkBytes(id uint32) int {
	if i := r.find(id); i >= 0 {
		return len(r.chunk(i))
	}
	return 0
}

// Append decodes rows [lo, hi) of a column onto a vector of the type that the
// column was written with. On an error, which wraps ErrCorrupt and names the
// column unless the arguments were wrong, the vector is unchanged.
func (r *Reader) Append(v *Vector, id uint32, lo, hi int) error {
	i := r.find(id)
	if i < 0 {
		return fmt.Errorf("column %d is not in the block", id)
	}
	if lo < 0 || hi < lo || hi > r.rows {
		return fmt.Errorf("column %d: rows [%d, %d) of a block of %d", id, lo, hi, r.rows)
	}
	rows, spent := v.rows, 0
	if err := v.decode(r.chunk(i), r.rows, lo, hi, &spent); err != nil {
		v.rollback(rows)
		return fmt.Errorf("column %d: %w", id, err)
	}
	return nil
}

// AppendRows is Append for picked rows, in that order. Where the encoding
// allows it costs what it picks, not what the block holds.
func (r *Reader) AppendRows(v *Vector, id uint32, rows []uint32) error {
	i := r.find(id)
	if i < 0 {
		return fmt.Errorf("column %d is not in the block", id)
	}
	most := uint32(0)
	for _, row := range rows {
		most = max(most, row)
	}
	if len(rows) > 0 && int(most) >= r.rows {
		return fmt.Errorf("column %d: row %d of a block of %d", id, most, r.rows)
	}
	before, spent := v.rows, 0
	if err := v.decodeRows(r.chunk(i), r.rows, rows, &spent); err != nil {
		v.rollback(before)
		return fmt.Errorf("column %d: %w", id, err)
	}
	return nil
}
