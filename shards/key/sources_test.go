package key_test

import (
	"encoding/hex"
	"fmt"
	"math/big"
	"strings"
)

// vectorSources is what -update encodes.
func vectorSources() []vector {
	var sources []vector
	add := func(types []string, sharding int, values ...any) {
		sources = append(sources, vector{Types: types, Sharding: sharding, Values: values})
	}
	one := func(name string, values ...any) {
		for _, value := range values {
			add([]string{name}, 1, value)
		}
	}
	for _, bits := range []uint{8, 16, 32, 64} {
		low, high := signedRange(bits)
		one(fmt.Sprint("int", bits), low, "-100", "-2", "-1", "0", "1", "2", "100", high)
		one(fmt.Sprint("uint", bits), "0", "1", "127", "128", unsignedMax(bits))
	}
	one("int64", "-9223372036854775807", "-256", "-255", "255", "256", "9007199254740992", "9007199254740993")
	one("uint64", "9223372036854775807", "9223372036854775808")
	one("bool", false, true)

	texts := []any{"", "\x00", "\x00\x00", "\x00\x01", "\x01", " ", "10", "9", "a", "a\x00", "a\x00b", "ab", "b",
		"foo", "foo\x00", "foo\x00bar", "foo\x01", "foobar", "N14228", "Zürich", "zürich", "éclair", "日本語", "😀", "\uffff", "\u007f",
		strings.Repeat("x", 31), strings.Repeat("x", 1000)}
	one("string", texts...)
	one("large_string", "", "foo", "foo\x00bar", "日本語")
	one("string_view", "", "short", "longer than twelve bytes", "foo\x00bar")
	binaries := []any{"", "00", "0000", "00ff", "0001", "00ff00", "01", "7f", "80", "ff", "ff00", "ffff", "61", "610062", "000102030405060708090a0b0c0d0e0f"}
	one("binary", binaries...)
	one("large_binary", "", "00", "ff00ff")
	one("binary_view", "", "00", "000102030405060708090a0b0c0d0e0f")
	one("fixed_size_binary[1]", "00", "01", "ff")
	one("fixed_size_binary[4]", "00000000", "00000001", "000000ff", "00ff0000", "7fffffff", "80000000", "ffffffff")
	one("fixed_size_binary[16]", strings.Repeat("00", 16), hex.EncodeToString([]byte("0123456789abcdef")))

	low32, high32 := signedRange(32)
	low64, high64 := signedRange(64)
	// 1582-10-15, 1969-12-31, the epoch, 2026-11-30
	one("date32[day]", low32, "-719162", "-141427", "-1", "0", "1", "20787", high32)
	one("date64[ms]", low64, "-62135596800000", "-86400000", "0", "86400000", "1795996800000", high64)
	one("time32[s]", "0", "1", "43200", "86399")
	one("time32[ms]", "0", "1", "86399999")
	one("time64[us]", "0", "1", "86399999999")
	one("time64[ns]", "0", "1", "86399999999999")
	for _, unit := range []string{"s", "ms", "us", "ns"} {
		one("timestamp["+unit+"]", low64, "-1", "0", "1", "1795996800", high64)
		one("duration["+unit+"]", low64, "-1", "0", "1", high64)
	}
	one("timestamp[us, tz=UTC]", "-62135596800000000", "-1", "0", "253402300799999999")
	one("timestamp[ns, tz=Europe/Paris]", "-1", "0", "1767225600000000000")

	one("decimal32(9, 2)", "-999999999", "-1", "0", "1", "1234", "999999999")
	one("decimal64(18, 4)", "-999999999999999999", "-1", "0", "1", "123456789", "999999999999999999")
	nines := func(n int) string { return strings.Repeat("9", n) }
	one("decimal128(38, 10)", "-"+nines(38), "-18446744073709551617", "-18446744073709551616", "-18446744073709551615", "-1", "0", "1",
		"18446744073709551615", "18446744073709551616", nines(38))
	one("decimal128(15, 2)", "-1234", "1234", "1235")
	one("decimal256(76, 20)", "-"+nines(76), "-"+nines(40), "-1", "0", "1", "18446744073709551616", "340282366920938463463374607431768211456", nines(76))

	one("dictionary<values=string, indices=int8, ordered=0>", "", "foo", "foo\x00bar")
	one("dictionary<values=int64, indices=uint32, ordered=0>", "-1", "0", "1")
	one("run_end_encoded<run_ends: int32, values: string>", "foo")
	one("run_end_encoded<run_ends: int16, values: decimal128(10, 2)>", "-5", "5")

	add([]string{"string", "int64"}, 1, "", "0")
	for _, s := range []string{"-100", "-2", "-1", "0", "1"} {
		add([]string{"string", "int64"}, 1, "k", s)
	}
	for _, pair := range [][2]string{{"", ""}, {"", "a"}, {"a", ""}, {"a", "b"}, {"ab", ""}, {"foo", "\x00"}, {"foo\x00", ""}, {"foo", "zzz"}, {"foo\x00bar", ""}} {
		add([]string{"string", "string"}, 1, pair[0], pair[1])
		add([]string{"string", "string"}, 2, pair[0], pair[1])
	}
	for _, pair := range [][2]string{{"0", "x"}, {"7", "x"}, {"0", "y"}, {"-7", "x"}} {
		add([]string{"int64", "string"}, 2, pair[0], pair[1])
	}
	add([]string{"binary", "binary", "int8"}, 2, "00ff", "0001", "-1")
	add([]string{"binary", "binary", "int8"}, 2, "00", "ff0001", "-1")
	add([]string{"string", "timestamp[us, tz=UTC]"}, 1, "N14228", "1357034400000000")
	add([]string{"string", "string", "timestamp[us]"}, 2, "EWR", "UA", "1357034400000000")
	add([]string{"int64", "int32"}, 1, "1", "1")
	add([]string{"int64", "int32"}, 1, "6000000", "7")
	add([]string{"int64", "int32"}, 1, "-9223372036854775808", "-2147483648")
	add([]string{"uint64"}, 1, "42")
	eight := []string{"bool", "int8", "uint16", "date32[day]", "decimal256(76, 0)", "fixed_size_binary[1]", "string", "duration[ns]"}
	add(eight, 3, false, "-128", "0", "-1", "-1", "00", "", "-1")
	add(eight, 3, true, "127", "65535", "1", "1", "ff", "ende", "1")
	add(eight, 8, true, "127", "65535", "1", "1", "ff", "ende", "1")
	return sources
}

func signedRange(bits uint) (low, high string) {
	half := new(big.Int).Lsh(big.NewInt(1), bits-1)
	return "-" + half.String(), new(big.Int).Sub(half, big.NewInt(1)).String()
}

func unsignedMax(bits uint) string {
	return new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), bits), big.NewInt(1)).String()
}
