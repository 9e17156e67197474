package shards

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"
)

// Values in the meta region are small records: a format byte, then fields, each
// a uvarint or bytes with a uvarint length in front, then the xxhash64 of all
// that. Readers take nothing on trust: a record that is damaged, ends early or
// goes on too long is an error.

var errBadRecord = errors.New("the store's catalog or manifest is damaged on disk")

// record builds a value.
type record struct{ data []byte }

func newRecord(format byte) *record { return &record{data: []byte{format}} }

func (r *record) number(v uint64) *record {
	r.data = binary.AppendUvarint(r.data, v)
	return r
}

func (r *record) bytes(b []byte) *record {
	r.data = append(binary.AppendUvarint(r.data, uint64(len(b))), b...)
	return r
}

func (r *record) text(s string) *record {
	r.data = append(binary.AppendUvarint(r.data, uint64(len(s))), s...)
	return r
}

// seal ends the record with its checksum.
func (r *record) seal() []byte {
	return binary.LittleEndian.AppendUint64(r.data, xxhash.Sum64(r.data))
}

const sealBytes = 8

// recordReader takes a value apart. After the first error every field is zero;
// done reports that error.
type recordReader struct {
	what string
	data []byte
	err  error
}

// readRecord begins a record of the given kind, which messages name; its format
// must be known.
func readRecord(what string, format byte, data []byte) *recordReader {
	r := &recordReader{what: what}
	end := len(data) - sealBytes
	switch {
	case end < 1:
		r.fail("is cut off")
	case binary.LittleEndian.Uint64(data[end:]) != xxhash.Sum64(data[:end]):
		r.fail("fails its checksum")
	case data[0] != format:
		r.fail("has format %d, this version of Sheaf reads %d", data[0], format)
	default:
		r.data = data[1:end:end]
	}
	return r
}

func (r *recordReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: the %s %s", errBadRecord, r.what, fmt.Sprintf(format, args...))
		r.data = nil
	}
}

func (r *recordReader) number() uint64 {
	v, n := binary.Uvarint(r.data)
	if n <= 0 {
		r.fail("is cut off")
		return 0
	}
	r.data = r.data[n:]
	return v
}

// count is the number of items to come; each takes at least one byte, so that
// no count leads to an allocation larger than the record.
func (r *recordReader) count() int {
	n := r.number()
	if n > uint64(len(r.data)) {
		r.fail("counts %d items in %d bytes", n, len(r.data))
		return 0
	}
	return int(n)
}

// bytes aliases the record.
func (r *recordReader) bytes() []byte {
	n := r.count()
	b := r.data[:n:n]
	r.data = r.data[n:]
	return b
}

func (r *recordReader) text() string { return string(r.bytes()) }

func (r *recordReader) done() error {
	if r.err == nil && len(r.data) > 0 {
		r.fail("has %d bytes too many", len(r.data))
	}
	return r.err
}
