package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// byteSize is a flag for a number of bytes: 1073741824, 1GiB, 512MiB, 64kB.
type byteSize int64

var sizeUnits = []struct {
	name string
	size int64
}{ // longest first, since B ends them all
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
	{"B", 1}, {"", 1},
}

// Set parses the text of a flag.
func (b *byteSize) Set(text string) error {
	for _, unit := range sizeUnits {
		digits, found := strings.CutSuffix(text, unit.name)
		if !found {
			continue
		}
		number, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || number <= 0 || number > math.MaxInt64/unit.size {
			break
		}
		*b = byteSize(number * unit.size)
		return nil
	}
	return fmt.Errorf("%q is no size: write 1073741824, 1GiB, 512MiB or 500MB", text)
}

// String is the size in the largest binary unit that divides it.
func (b *byteSize) String() string {
	for i := len(sizeUnits) - 1; i >= 0; i-- {
		unit := sizeUnits[i]
		if strings.HasSuffix(unit.name, "iB") && int64(*b) >= unit.size && int64(*b)%unit.size == 0 {
			return strconv.FormatInt(int64(*b)/unit.size, 10) + unit.name
		}
	}
	return strconv.FormatInt(int64(*b), 10)
}

// Type names the kind of value in help texts.
func (b *byteSize) Type() string { return "size" }

// bytesText is a size for people: three digits and a unit.
func bytesText(n uint64) string {
	value, units := float64(n), []string{"B", "kB", "MB", "GB", "TB"}
	at := 0
	for value >= 999.5 && at < len(units)-1 {
		value, at = value/1000, at+1
	}
	if at == 0 {
		return fmt.Sprintf("%d B", n)
	}
	digits := 0
	switch {
	case value < 9.995:
		digits = 2
	case value < 99.95:
		digits = 1
	}
	return strconv.FormatFloat(value, 'f', digits, 64) + " " + units[at]
}
