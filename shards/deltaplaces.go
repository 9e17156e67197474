package shards

// places says for each row of a part of the delta in which payload it lies, as small
// numbers.
type places struct {
	of     []uint32 // by row
	number map[uint64]uint32
	starts []uint32 // scratch, by place
	sorted []uint32
	back   []uint32
}

// deletedPlace is where deleted rows lie: no commit has this number.
const deletedPlace uint64 = 0

func (p *places) reset() {
	p.of = p.of[:0]
	if p.number == nil {
		p.number = map[uint64]uint32{}
	}
	clear(p.number)
}

// add notes the payload of the next row, by the commit that wrote it.
func (p *places) add(commit uint64) {
	n, ok := p.number[commit]
	if !ok {
		n = uint32(len(p.number))
		p.number[commit] = n
	}
	p.of = append(p.of, n)
}

// scattered: rows of one place lie apart so often that bringing them together pays.
func (p *places) scattered(rows []uint32) bool {
	stretches, used := 0, 0
	starts := p.count(rows)
	for i, row := range rows {
		if i == 0 || p.of[rows[i-1]] != p.of[row] {
			stretches++
		}
	}
	for _, n := range starts {
		if n > 0 {
			used++
		}
	}
	return stretches >= 2*used
}

// count is how many of rows lie in each place.
func (p *places) count(rows []uint32) []uint32 {
	if cap(p.starts) < len(p.number) {
		p.starts = make([]uint32, 2*len(p.number))
	}
	counts := p.starts[:len(p.number)]
	clear(counts)
	for _, row := range rows {
		counts[p.of[row]]++
	}
	return counts
}

// sort brings the rows of each place together, otherwise in the order given; back is
// where in sorted each of the rows is. Both are good until the next call.
func (p *places) sort(rows []uint32) (sorted, back []uint32) {
	next := p.count(rows)
	at := uint32(0)
	for i, n := range next {
		next[i], at = at, at+n
	}
	if cap(p.sorted) < len(rows) {
		p.sorted, p.back = make([]uint32, 2*len(rows)), make([]uint32, 2*len(rows))
	}
	sorted, back = p.sorted[:len(rows)], p.back[:len(rows)]
	for i, row := range rows {
		to := next[p.of[row]]
		next[p.of[row]] = to + 1
		sorted[to], back[i] = row, to
	}
	return sorted, back
}
