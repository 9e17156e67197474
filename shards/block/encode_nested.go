package block

import (
	"encoding/binary"
	"errors"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

var errChildRows = errors.New("more list elements in a block than 2^31")

// list appends n lists or maps: a text area's lengths, and behind them the
// chunk of the child rows instead of bytes.
func (e *Encoder) list(dst []byte, dt arrow.DataType, s *source, lo, n int) ([]byte, error) {
	total := e.lengths(s, lo, n)
	dst = appendLengths(dst, e.words, total)
	elem := children(dt)[0]
	k, ok := kindOf(elem)
	if !ok {
		return nil, errNotCanonical(elem)
	}
	first, last := s.span(lo, lo+n)
	if last-first == total {
		return e.chunk(dst, k, elem, &s.kids[0], first, last)
	}
	// Nulls hide elements: leave them out.
	kept := NewVector(memory.DefaultAllocator, elem)
	defer kept.Release()
	for i := range n {
		if !s.null(lo + i) {
			from, to := s.span(lo+i, lo+i+1)
			kept.appendSource(&s.kids[0], from, to)
		}
	}
	arr := kept.NewArray()
	defer arr.Release()
	visible := sourceOf(k, arr.Data(), 0)
	return e.chunk(dst, k, elem, &visible, 0, total)
}

// fixedList appends the chunk of the child rows.
func (e *Encoder) fixedList(dst []byte, k kind, dt arrow.DataType, s *source, lo, n int) ([]byte, error) {
	elem := children(dt)[0]
	kk, ok := kindOf(elem)
	if !ok {
		return nil, errNotCanonical(elem)
	}
	if k.size > 0 && n > maxChildRows/k.size {
		return nil, errChildRows
	}
	return e.chunk(dst, kk, elem, &s.kids[0], (s.off+lo)*k.size, (s.off+lo+n)*k.size)
}

// structure appends each child's chunk with its length, 4 bytes, before it.
func (e *Encoder) structure(dst []byte, dt arrow.DataType, s *source, lo, n int) ([]byte, error) {
	for i, field := range children(dt) {
		k, ok := kindOf(field)
		if !ok {
			return nil, errNotCanonical(field)
		}
		at := len(dst)
		var err error
		if dst, err = e.chunk(append(dst, 0, 0, 0, 0), k, field, &s.kids[i], lo, lo+n); err != nil {
			return nil, err
		}
		size := len(dst) - at - 4
		if size > maxBlockBytes {
			return nil, errTooLarge
		}
		binary.LittleEndian.PutUint32(dst[at:], uint32(size))
	}
	return dst, nil
}
