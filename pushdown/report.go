package pushdown

import "fmt"

// Report is a plan as Explain and FlightInfo give it; docs/wire.md names the
// fields.
type Report struct {
	Table    string   `json:"table"`
	Access   string   `json:"access"`
	Slices   []int    `json:"slices"`
	Of       int      `json:"of"`
	Ranges   int      `json:"ranges"`
	Residual *string  `json:"residual"`
	Columns  []string `json:"columns"`
	Pushed   []string `json:"pushed"`
	*Analysis
}

// Analysis is what running the query counted; absent where it was not run.
type Analysis struct {
	RowsScanned  uint64  `json:"rows_scanned"`
	RowsReturned uint64  `json:"rows_returned"`
	BlocksRead   uint64  `json:"blocks_read"`
	BlocksPruned uint64  `json:"blocks_pruned"`
	BytesRead    uint64  `json:"bytes_read"`
	Millis       float64 `json:"ms"`
}

// Report describes the plan of a query on table that returns columns. Reading
// every row of a slice counts as one range, in all slices together if the slice
// is not known.
func (p *Plan) Report(table string, columns []string) Report {
	r := Report{
		Table: table, Access: p.Access.String(), Slices: p.Slices, Of: p.Of,
		Ranges: len(p.Ranges), Columns: columns, Pushed: []string{},
	}
	if p.Ranges == nil && !p.Empty() {
		r.Ranges = 1
	}
	if p.Residual != nil {
		text := String(p.Residual)
		r.Residual = &text
	}
	if r.Columns == nil {
		r.Columns = []string{}
	}
	if p.keys > 0 {
		r.Pushed = append(r.Pushed, fmt.Sprintf("keys (%d)", p.keys))
	}
	for i, e := range p.Pushed {
		if i == maxListed {
			r.Pushed = append(r.Pushed, "…")
			break
		}
		r.Pushed = append(r.Pushed, String(e))
	}
	return r
}
