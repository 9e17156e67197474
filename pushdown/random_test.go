package pushdown

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/shards"
)

// keyTypes and otherTypes are the canonical types that filters compare.
var keyTypes = []string{
	"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
	"utf8", "large_utf8", "binary", "fixed(3)", "dictionary", "date32", "date64",
	"time32[s]", "time32[ms]", "time64[us]", "time64[ns]",
	"timestamp[s]", "timestamp[ms]", "timestamp[us]", "timestamp[ns]", "timestamp[us,UTC]", "timestamp[ns,Europe/Paris]",
	"duration[s]", "duration[ms]", "duration[us]", "duration[ns]",
	"decimal32(9,2)", "decimal64(18,4)", "decimal128(10,2)", "decimal128(38,10)", "decimal128(5,-3)", "decimal256(76,20)",
}

var otherTypes = append([]string{"float16", "float32", "float64", "null"}, keyTypes...)

// maker makes random tables, conditions and their text.
type maker struct {
	*rand.Rand
	schema *shards.Schema
	pools  [][]cell // values that occur in each column, so that literals hit
}

func (m *maker) pick(list []string) string { return list[m.IntN(len(list))] }

// cells makes a pool of values for a column: small ones, and the type's ends.
func (m *maker) pool(dt arrow.DataType) []cell {
	var pool []cell
	switch dt.ID() {
	case arrow.NULL:
		return []cell{{null: true}}
	case arrow.BOOL:
		return []cell{{whole: big.NewInt(0)}, {whole: big.NewInt(1)}}
	case arrow.STRING, arrow.BINARY, arrow.FIXED_SIZE_BINARY:
		for range 12 {
			alphabet := []string{"\x00", "a", "b", "ÿ", "😀", "z"}
			if dt.ID() != arrow.STRING {
				alphabet = []string{"\x00", "\x01", "a", "\xFE", "\xFF"}
			}
			text := ""
			if _, fixed := dt.(*arrow.FixedSizeBinaryType); !fixed && m.IntN(4) == 0 {
				text = strings.Repeat(m.pick([]string{"b", alphabet[len(alphabet)-1]}), 31)
			}
			for range m.IntN(4) {
				text += m.pick(alphabet)
			}
			if fixed, ok := dt.(*arrow.FixedSizeBinaryType); ok {
				text = (text + "\x00\x00\x00")[:fixed.ByteWidth]
			}
			pool = append(pool, cell{text: text})
		}
		return pool
	case arrow.FLOAT16, arrow.FLOAT32, arrow.FLOAT64:
		for _, f := range []float64{0, math.Copysign(0, -1), 1, -1, 0.1, 1.5, 2049, 1e9, math.NaN(), math.Inf(1), math.Inf(-1),
			math.MaxFloat64, math.SmallestNonzeroFloat64, math.MaxFloat32, 0x1p-149, 65504, 0x1p-24, -0x1p-24} {
			pool = append(pool, cell{float: f})
		}
		return pool
	}
	bits := uint(dt.(arrow.FixedWidthDataType).BitWidth())
	low := new(big.Int).Neg(new(big.Int).Lsh(big.NewInt(1), bits-1))
	high := new(big.Int).Sub(new(big.Int).Neg(low), big.NewInt(1))
	if strings.HasPrefix(dt.Name(), "uint") {
		low, high = new(big.Int), new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), bits), big.NewInt(1))
	}
	add := func(i *big.Int) {
		if i.Cmp(low) >= 0 && i.Cmp(high) <= 0 {
			pool = append(pool, cell{whole: i})
		}
	}
	for _, i := range []*big.Int{low, high, new(big.Int).Add(low, big.NewInt(1)), new(big.Int).Sub(high, big.NewInt(1))} {
		add(i)
	}
	for i := int64(-3); i <= 5; i++ {
		add(big.NewInt(i))
		add(big.NewInt(i * 86_400))
		add(big.NewInt(1<<53 + i))
		add(big.NewInt(1_700_000_000_000_000_000 + i))
	}
	m.Shuffle(len(pool), func(i, j int) { pool[i], pool[j] = pool[j], pool[i] })
	return pool[:min(len(pool), 14)]
}

// table makes a table with random key and other columns of unique keys.
func (m *maker) table(t *testing.T, rows int) (*testTable, [][]value) {
	var names, kinds []string
	var types []arrow.DataType
	add := func(name string, from []string, kind string) {
		dt, err := parseType(m.pick(from))
		require.NoError(t, err)
		names, types, kinds = append(names, name), append(types, dt), append(kinds, kind)
	}
	for i := range 1 + m.IntN(2) {
		add(fmt.Sprintf("k%d", i), keyTypes, "shard")
	}
	for i := range m.IntN(4) {
		add(fmt.Sprintf("s%d", i), keyTypes, "sort")
	}
	for i := range 3 {
		add(fmt.Sprintf("v%d", i), otherTypes, "")
	}
	m.Shuffle(len(names), func(i, j int) {
		names[i], names[j] = names[j], names[i]
		types[i], types[j] = types[j], types[i]
		kinds[i], kinds[j] = kinds[j], kinds[i]
	})
	m.schema = newTestSchema(names, types, kinds, 1+m.IntN(16))
	m.pools = nil
	for _, c := range m.schema.Columns {
		m.pools = append(m.pools, m.pool(c.Canonical))
	}
	cells := make([][]cell, len(names))
	var values [][]value
	seen := map[string]bool{}
	for range rows {
		row, id := make([]cell, len(names)), ""
		for i := range row {
			row[i] = m.pools[i][m.IntN(len(m.pools[i]))]
			if kinds[i] == "" && m.IntN(5) == 0 {
				row[i] = cell{null: true}
			}
			if kinds[i] != "" {
				id += fmt.Sprintf("%v|%q|", row[i].whole, row[i].text)
			}
		}
		if seen[id] {
			continue
		}
		seen[id] = true
		exact := make([]value, len(names))
		for i, c := range row {
			cells[i] = append(cells[i], c)
			exact[i] = valueOf(m.schema.Columns[i].Canonical, c)
		}
		values = append(values, exact)
	}
	arrays := make([]arrow.Array, len(names))
	for i, c := range m.schema.Columns {
		arrays[i] = newCells(c.Canonical, cells[i])
	}
	return newTestTable(t, m.schema, arrays), values
}

// literal makes a literal for a column: JSON, and what it stands for.
func (m *maker) literal(column int) (string, value) {
	dt := m.schema.Columns[column].Canonical
	if m.IntN(12) == 0 {
		return "null", value{null: true}
	}
	pool := m.pools[column]
	c := pool[m.IntN(len(pool))]
	switch dt.(type) {
	case *arrow.NullType:
		return "5", value{rat: big.NewRat(5, 1)}
	case *arrow.BooleanType:
		text := strconv.FormatBool(c.whole.Sign() != 0)
		if m.IntN(2) == 0 {
			text = quote(text)
		}
		return text, valueOf(dt, c)
	case *arrow.StringType:
		text := c.text + m.pick([]string{"", "", "", "a", "\x00", "ÿ"})
		if m.IntN(4) == 0 {
			text = string([]rune(text)[:len([]rune(text))/2])
		}
		return quote(text), str(text)
	case *arrow.BinaryType, *arrow.FixedSizeBinaryType:
		text := c.text + m.pick([]string{"", "", "", "a", "\x00", "\xFF"})
		text = text[:len(text)-m.IntN(len(text)+1)*m.IntN(2)]
		return fmt.Sprintf(`{"base64": %q}`, base64.StdEncoding.EncodeToString([]byte(text))), str(text)
	case *arrow.Float16Type, *arrow.Float32Type, *arrow.Float64Type:
		if v := valueOf(dt, c); v.nan || v.inf != 0 {
			return quote(strconv.FormatFloat(c.float, 'g', -1, 64) + m.pick([]string{""})), floating(c.float)
		}
		text := strconv.FormatFloat(c.float, 'g', []int{-1, 3, 17, 30}[m.IntN(4)], 64)
		if m.IntN(8) == 0 {
			text = m.pick([]string{"1e39", "-1e400", "65519.999", "65520", "3.4028236e38", "1e-400", "0.0999999999999999999999", "2.98023223876953125e-8", "2.98023223876953126e-8"})
		}
		return m.number(text), roundedTo(dt, text)
	}
	exact := valueOf(dt, c).rat
	if m.IntN(3) == 0 { // a little beside it
		unit := big.NewRat(1, 1)
		switch m.IntN(3) {
		case 0:
			unit.SetFrac64(1, 10)
		case 1:
			unit.SetFrac(big.NewInt(1), new(big.Int).Exp(big.NewInt(10), big.NewInt(25), nil))
		}
		if m.IntN(2) == 0 {
			unit.Neg(unit)
		}
		exact = new(big.Rat).Add(exact, unit)
	}
	if m.IntN(12) == 0 { // far out
		exact = new(big.Rat).Mul(exact, scale(big.NewInt(1), -30))
	}
	switch dt := dt.(type) {
	case *arrow.Date32Type, *arrow.Date64Type:
		return m.moment(exact, "")
	case *arrow.TimestampType:
		return m.moment(exact, dt.TimeZone)
	case *arrow.Time32Type, *arrow.Time64Type:
		seconds := new(big.Int).Div(exact.Num(), exact.Denom())
		seconds.Mod(seconds, big.NewInt(86400))
		exact = new(big.Rat).SetInt(seconds)
		text := time.Unix(seconds.Int64(), 0).UTC().Format("15:04:05")
		if seconds.Int64()%60 == 0 && m.IntN(2) == 0 {
			text = text[:5]
		} else if m.IntN(2) == 0 {
			fraction := fmt.Sprintf("%012d", m.Int64N(1_000_000_000_000))[:1+m.IntN(12)]
			part, _ := new(big.Rat).SetString("0." + fraction)
			exact.Add(exact, part)
			text += "." + fraction
		}
		return quote(text), rat(exact)
	case *arrow.DurationType:
		return m.duration(exact)
	}
	text := decimalText(exact)
	return m.number(text), rat(exact)
}

func quote(text string) string {
	out, _ := json.Marshal(text)
	return string(out)
}

// number is a number's text as JSON number or as JSON text.
func (m *maker) number(text string) string {
	if m.IntN(2) == 0 {
		return quote(text)
	}
	return strings.TrimPrefix(text, "+")
}

// decimalText writes a rational with a finite decimal expansion.
func decimalText(r *big.Rat) string {
	text := r.FloatString(40)
	if exact, _ := new(big.Rat).SetString(text); exact.Cmp(r) != 0 {
		panic(r)
	}
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// moment writes seconds since 1970 as a date or timestamp that package time
// can format; others become the year 1 or 9999.
func (m *maker) moment(seconds *big.Rat, zone string) (string, value) {
	whole := new(big.Int).Div(seconds.Num(), seconds.Denom()) // floor
	fraction := new(big.Rat).Sub(seconds, new(big.Rat).SetInt(whole))
	const first, last = -62_135_510_400, 253_402_214_400
	if whole.Cmp(big.NewInt(first)) < 0 {
		whole = big.NewInt(first)
	}
	if whole.Cmp(big.NewInt(last)) > 0 {
		whole = big.NewInt(last)
	}
	if m.IntN(6) == 0 {
		whole.Sub(whole, new(big.Int).Mod(whole, big.NewInt(86400)))
		return quote(time.Unix(whole.Int64(), 0).UTC().Format(time.DateOnly)), rat(new(big.Rat).SetInt(whole))
	}
	at := time.Unix(whole.Int64(), 0).UTC()
	offset := ""
	if zone != "" && m.IntN(3) > 0 {
		shift := (m.IntN(2*14*60) - 14*60) * 60
		at = at.In(time.FixedZone("", shift))
		offset = at.Format(m.pick([]string{"Z07:00", "-0700"}))
	}
	text := at.Format("2006-01-02" + m.pick([]string{"T", " "}) + "15:04:05")
	if fraction.Sign() != 0 {
		text += strings.TrimRight(fraction.FloatString(40)[1:], "0")
	}
	return quote(text + offset), rat(new(big.Rat).Add(new(big.Rat).SetInt(whole), fraction))
}

func (m *maker) duration(seconds *big.Rat) (string, value) {
	sign := ""
	exact := seconds
	if exact.Sign() < 0 {
		sign, exact = "-", new(big.Rat).Neg(exact)
	}
	days := new(big.Int).Div(new(big.Int).Div(exact.Num(), exact.Denom()), big.NewInt(86400))
	if len(days.String()) > 17 {
		return quote(sign + "P99999999999999999D"), rat(scale(new(big.Int).Mul(big.NewInt(86400*99999999999999999/86400), big.NewInt(int64(len(sign))*-2+1)), 0).Mul(big.NewRat(86400, 1), big.NewRat(99999999999999999*int64(1-2*len(sign)), 1)))
	}
	rest := new(big.Rat).Sub(exact, new(big.Rat).SetInt(new(big.Int).Mul(days, big.NewInt(86400))))
	return quote(sign + "P" + days.String() + "DT" + decimalText(rest) + "S"), rat(seconds)
}

// condition makes a random condition and its JSON.
func (m *maker) condition() (string, *condition) {
	width := 1
	if m.IntN(5) == 0 {
		width = 2 + m.IntN(2)
	}
	c := &condition{}
	var names []string
	bytewise := true
	for range width {
		at := m.IntN(len(m.schema.Columns))
		c.columns = append(c.columns, at)
		names = append(names, m.schema.Columns[at].Field.Name)
		switch m.schema.Columns[at].Canonical.ID() {
		case arrow.STRING, arrow.BINARY, arrow.FIXED_SIZE_BINARY:
		default:
			bytewise = false
		}
	}
	operators := []string{"=", "=", "==", "!=", "<", "<=", ">", ">=", "in", "in", "in", "not in", "between"}
	if width == 1 {
		operators = append(operators, "is null", "is not null")
		if bytewise {
			operators = append(operators, "starts_with", "starts_with", "starts_with")
		}
	}
	c.op = m.pick(operators)
	head := quote(names[0])
	if width > 1 {
		list, _ := json.Marshal(names)
		head = string(list)
	}
	if strings.HasPrefix(c.op, "is ") {
		return fmt.Sprintf("[%s, %q]", head, c.op), c
	}
	n := 1
	switch c.op {
	case "in", "not in":
		n = m.IntN(5)
		if m.IntN(3) == 0 {
			n = 9 + m.IntN(20)
		}
	case "between":
		n = 2
	}
	texts := make([]string, n)
	for i := range texts {
		var row []value
		var items []string
		for _, at := range c.columns {
			text, v := m.literal(at)
			items, row = append(items, text), append(row, v)
		}
		if texts[i] = items[0]; width > 1 {
			texts[i] = "[" + strings.Join(items, ", ") + "]"
		}
		c.rows = append(c.rows, row)
	}
	tail := texts[:min(1, n)]
	if c.op == "in" || c.op == "not in" || c.op == "between" {
		tail = []string{"[" + strings.Join(texts, ", ") + "]"}
	}
	return fmt.Sprintf("[%s, %q, %s]", head, c.op, tail[0]), c
}

// where makes a list of lists of conditions.
func (m *maker) where() (string, func(row []value) truth) {
	var groups [][]*condition
	var texts []string
	for range 1 + m.IntN(4)*m.IntN(2) {
		var group []*condition
		var items []string
		for range 1 + m.IntN(3) {
			text, c := m.condition()
			group, items = append(group, c), append(items, text)
		}
		// Keys are often bound whole: that is what plans are about.
		if m.IntN(2) == 0 {
			for _, at := range m.schema.KeyColumns()[:1+m.IntN(len(m.schema.KeyColumns()))] {
				text, v := m.literal(at)
				op := "="
				if m.IntN(4) == 0 {
					op = m.pick([]string{"<", "<=", ">", ">="})
				}
				group = append(group, &condition{[]int{at}, op, [][]value{{v}}})
				items = append(items, fmt.Sprintf("[%q, %q, %s]", m.schema.Columns[at].Field.Name, op, text))
			}
		}
		groups, texts = append(groups, group), append(texts, "["+strings.Join(items, ", ")+"]")
	}
	text := "[" + strings.Join(texts, ", ") + "]"
	if len(texts) == 1 && m.IntN(2) == 0 {
		text = texts[0]
	}
	return text, func(row []value) truth {
		result := isFalse
		for _, group := range groups {
			all := isTrue
			for _, c := range group {
				all = min(all, c.eval(row))
			}
			result = max(result, all)
		}
		return result
	}
}

// TestRandomFilters compares plans and masks with the oracle: the rows in the
// ranges that pass the residual are exactly the rows for which the filter is
// true, the same holds for NOT of the filter, and no row is in two ranges.
func TestRandomFilters(t *testing.T) {
	tables, filters := 150, 60
	if os.Getenv("SHEAF_SOAK") != "" {
		tables, filters = 3_000, 200
	}
	accesses := map[Access]int{}
	for seed := range tables {
		m := &maker{Rand: rand.New(rand.NewPCG(uint64(seed), 3))}
		table, rows := m.table(t, 1+m.IntN(60))
		for range filters {
			text, truthAt := m.where()
			e, err := ParseWhere([]byte(text), m.schema)
			require.NoError(t, err, "seed %d: %s", seed, text)
			accesses[checkFilter(t, table, e, fmt.Sprintf("seed %d: %s", seed, text), func(i int) bool { return truthAt(rows[i]) == isTrue })]++
			checkFilter(t, table, Not(e), fmt.Sprintf("seed %d: NOT %s", seed, text), func(i int) bool { return truthAt(rows[i]) == isFalse })
		}
	}
	for access := None; access <= Full; access++ {
		require.NotZero(t, accesses[access], "no plan with access %s: the test has become blind", access)
	}
}

func checkFilter(t *testing.T, table *testTable, e Expr, what string, want func(i int) bool) Access {
	t.Helper()
	p, err := Build(table.schema, e)
	require.NoError(t, err, what)
	expected := []int{}
	for i := range table.rows {
		if want(i) {
			expected = append(expected, i)
		}
	}
	if found := table.scan(p); !slices.Equal(found, expected) {
		t.Fatalf("%s\nfinds rows %v, not %v\nschema %v\nplan %+v\nresidual %s", what, found, expected, table.schema.Arrow(), p, *orNone(p))
	}
	checkPlan(t, p, what)
	return p.Access
}

func orNone(p *Plan) *string {
	if r := p.Report("t", nil); r.Residual != nil {
		return r.Residual
	}
	return new(string)
}

// checkPlan checks that ranges are in order and disjoint, and that access says
// what they are.
func checkPlan(t *testing.T, p *Plan, what string) {
	t.Helper()
	require.True(t, slices.IsSorted(p.Slices), what)
	for i, r := range p.Ranges {
		require.True(t, r.High == nil || string(r.Low) < string(r.High), "%s: empty range", what)
		if p.Access == Full {
			require.Equal(t, -1, r.Slice, what)
		} else {
			require.Contains(t, p.Slices, r.Slice, what)
		}
		if i > 0 && p.Ranges[i-1].Slice == r.Slice {
			before := p.Ranges[i-1]
			require.True(t, before.High != nil && string(before.High) <= string(r.Low), "%s: ranges overlap", what)
		} else if i > 0 {
			require.Less(t, p.Ranges[i-1].Slice, r.Slice, what)
		}
	}
	require.Equal(t, p.Access == None, len(p.Slices) == 0, what)
	require.Equal(t, p.Access == None, p.Ranges != nil && len(p.Ranges) == 0, what)
}
