package pushdown

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/shards/key"
)

func TestNumbersAreReadExactly(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "-0.0": "0", "007": "7", "+7": "7", "1.50": "1.5", "-1e3": "-1000", ".5": "0.5", "5.": "5",
		"9007199254740993": "9007199254740993", "1e400000000000000000000": "1e1099511627776", "12e-3": "0.012",
		"-100e-2": "-1", "0e999": "0", "1e-10": "1e-10", "123456789012345678901234567890": "123456789012345678901234567890",
	} {
		n, ok := parseNumber(text)
		require.True(t, ok, text)
		require.Equal(t, want, n.String(), text)
	}
	for _, text := range []string{"", "-", ".", "e5", "1e", "1e+", "1.2.3", "0x10", "1_000", " 1", "1 ", "--1", "NaN", "١"} {
		_, ok := parseNumber(text)
		require.False(t, ok, text)
	}
}

func TestFloorOfScaledNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 20_000 {
		digits := strconv.FormatUint(r.Uint64(), 10)[:1+r.IntN(10)]
		text := fmt.Sprintf("%s%se%d", []string{"", "-"}[r.IntN(2)], digits, r.IntN(60)-40)
		places := r.IntN(50) - 20
		n, ok := parseNumber(text)
		require.True(t, ok)
		exact, _ := new(big.Rat).SetString(text)
		exact.Mul(exact, scale(big.NewInt(1), -places))
		want := new(big.Int).Div(exact.Num(), exact.Denom())
		floor, whole, beyond := n.scaled(places)
		require.Zero(t, beyond)
		require.Equal(t, want.String(), floor.String(), "%s × 10^%d", text, places)
		require.Equal(t, exact.IsInt(), whole, text)
	}
	huge, _ := parseNumber("-1e200")
	_, _, beyond := huge.scaled(0)
	require.Equal(t, -1, beyond)
}

// TestHalfFloatsRoundOnce compares with a rounding by definition, at the middle
// between two half floats and a hair beside it.
func TestHalfFloatsRoundOnce(t *testing.T) {
	for bits := range halfValues[:len(halfValues)-1] {
		if bits%37 > 1 && bits < 0x7BF0 {
			continue
		}
		middle := (halfValues[bits] + halfValues[bits+1]) / 2
		text := new(big.Rat).SetFloat64(middle).FloatString(40)
		for _, c := range []struct {
			text string
			want int
		}{
			{strings.TrimRight(text, "0") + "000000000000000000000000000000000000001", bits + 1},
			{text, bits + bits%2},
			{strings.TrimRight(decimalBelow(text), "0"), bits},
		} {
			n, ok := parseNumber(c.text)
			require.True(t, ok)
			order, beyond := float16Format.round(n)
			require.Zero(t, beyond)
			require.Equal(t, uint64(c.want), float16Format.bitsAt(order), c.text)
			n.neg = true
			order, _ = float16Format.round(n)
			want := uint64(c.want) | 1<<15
			if c.want == 0 {
				want = 0
			}
			require.Equal(t, want, float16Format.bitsAt(order), "-%s", c.text)
		}
	}
	for text, beyond := range map[string]int{"65519.99": 0, "65520": 1, "-65520": -1, "1e9": 1, "1e-30": 0} {
		n, _ := parseNumber(text)
		_, got := float16Format.round(n)
		require.Equal(t, beyond, got, text)
	}
}

// decimalBelow subtracts a little from a decimal text.
func decimalBelow(text string) string {
	exact, _ := new(big.Rat).SetString(text)
	return exact.Sub(exact, scale(big.NewInt(1), 60)).FloatString(60)
}

func TestFloatOrder(t *testing.T) {
	values := []float64{math.Inf(-1), -math.MaxFloat64, -1, -math.SmallestNonzeroFloat64, 0, math.SmallestNonzeroFloat64, 1, math.MaxFloat64, math.Inf(1)}
	for i, v := range values {
		order := float64Format.order(math.Float64bits(v))
		require.Equal(t, math.Float64bits(v), float64Format.bitsAt(order))
		if i+1 < len(values) {
			require.Less(t, order, float64Format.order(math.Float64bits(values[i+1])))
			next := math.Float64frombits(float64Format.bitsAt(float64Format.above(order)))
			require.Equal(t, math.Float64bits(math.Nextafter(v, math.Inf(1))+0), math.Float64bits(next), v)
			require.Equal(t, order, float64Format.below(float64Format.above(order)))
		}
	}
}

func TestMomentsMatchThePackageTime(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	const first, last = -62_167_219_200, 253_402_300_799 // the years 0 to 9999
	for range 20_000 {
		at := time.Unix(first+r.Int64N(last-first), r.Int64N(1e9)).In(time.FixedZone("", (r.IntN(2*23*60)-23*60)*60))
		if at.Year() < 0 || at.Year() > 9999 {
			continue
		}
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999-0700", "2006-01-02T15:04:05.999999999Z07"} {
			text := at.Format(layout)
			if strings.HasSuffix(layout, "Z07") {
				if _, offset := at.Zone(); offset%3600 != 0 {
					continue
				}
			}
			l, err := parseMoment(text)
			require.NoError(t, err, text)
			require.True(t, l.zoned)
			nanos, whole, _ := l.number.scaled(9)
			require.True(t, whole)
			want := new(big.Int).Mul(big.NewInt(at.Unix()), big.NewInt(1e9))
			require.Equal(t, want.Add(want, big.NewInt(int64(at.Nanosecond()))).String(), nanos.String(), text)
		}
	}
	for day := time.Date(1890, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() < 2110; day = day.AddDate(0, 0, 1) {
		l, err := parseMoment(day.Format(time.DateOnly))
		require.NoError(t, err)
		require.Equal(t, dateLiteral, l.kind)
		days, _, _ := l.number.scaled(0)
		require.Equal(t, day.Unix(), days.Int64())
	}
}

func TestMomentsOutsideTheUsualYears(t *testing.T) {
	for text, days := range map[string]int64{
		"0000-03-01": -719_468, "-0001-12-31": -719_529, "+5881580-07-11": math.MaxInt32, "-5877641-06-23": math.MinInt32,
		"1970-01-01": 0, "0001-01-01": -719_162, "1582-10-15": -141_427,
	} {
		l, err := parseMoment(text)
		require.NoError(t, err, text)
		seconds, whole, _ := l.number.scaled(0)
		require.True(t, whole)
		require.Equal(t, days*86_400, seconds.Int64(), text)
	}
	for _, text := range []string{
		"", "2024", "2024-1-01", "2024-01-1", "2024-13-01", "2024-00-01", "2024-02-30", "2023-02-29", "1900-02-29", "20240101",
		"12024-01-01", "+024-01-01", "++2024-01-01", "2024-01-01T", "2024-01-01t10:00", "2024-01-01T10", "2024-01-01T10:60",
		"2024-01-01T24:00:00", "2024-01-01T10:00:60", "2024-01-01T10:00:00.", "2024-01-01T10:00:00,5", "2024-01-01T10:00+24:00",
		"2024-01-01T10:00 Z", "2024-01-01T10:00z", "2024-01-01T10:00+1", "2024-01-01T10:00+01:0", "2024-01-01X10:00", "+1000000000-01-01",
		"2024-01-01T10:00:00+01:00Z", "2024-01-01 ", " 2024-01-01",
	} {
		_, err := parseMoment(text)
		require.Error(t, err, text)
	}
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]string{
		"P1D": "86400", "PT1H": "3600", "PT90S": "90", "-PT0.5S": "-0.5", "P1DT2H3M4.5S": "93784.5", "P2W": "1209600", "-P2W": "-1209600",
		"PT0.5H": "1800", "P1.5D": "129600", "PT0S": "0", "-PT0S": "0", "PT1.0000000000000000000000000001S": "1.000000000000000001", "PT36H": "129600",
		"PT0.000000001S": "1e-9",
	} {
		l, err := parseDuration(text)
		require.NoError(t, err, text)
		wanted, _ := parseNumber(want)
		require.Equal(t, wanted, l.number, text)
	}
	for _, text := range []string{
		"", "P", "PT", "P1", "1D", "P1Y", "P1M", "PT1H1H", "PT1M1H", "P1DT", "P1WT1H", "P1W1D", "PT1.5M1S", "PT1.S", "PT.5S", "+P1D", "P-1D", "--P1D",
		"p1d", "PT1D", "P1H", "PT1S ", "P1DTT1S", "P99999999999999999999D", "PT1,5S",
	} {
		_, err := parseDuration(text)
		require.Error(t, err, text)
	}
}

// TestSetsAreWrittenAsKeys pins the order of domains to the encoding of keys.
func TestSetsAreWrittenAsKeys(t *testing.T) {
	m := &maker{Rand: rand.New(rand.NewPCG(4, 4))}
	for _, name := range keyTypes {
		dt, err := parseType(name)
		require.NoError(t, err)
		schema := newTestSchema([]string{"k"}, []arrow.DataType{dt}, []string{"shard"}, 1)
		c, err := findColumn(schema, "k")
		require.NoError(t, err)
		pool := m.pool(c.canonical)
		values := newCells(c.canonical, pool)
		for i := range pool {
			encoded, err := key.AppendValue(nil, values, i)
			require.NoError(t, err)
			order := pool[i].text
			if !c.domain.bytewise() {
				order = c.domain.integerCut(pool[i].whole).at
				if c.domain.kind == boolean {
					order = string([]byte{byte(pool[i].whole.Int64())})
				}
			}
			from, _ := newSpan(cut{at: order}, endCut)
			bounds, err := encodeSet(c.domain, set{from})
			require.NoError(t, err)
			require.Equal(t, encoded, bounds[0].low, "%s %v", name, pool[i])
			back := c.domain.newArray(c.canonical, []string{order})
			again, err := key.AppendValue(nil, back, 0)
			require.NoError(t, err)
			require.Equal(t, encoded, again, "%s %v", name, pool[i])
		}
	}
}
