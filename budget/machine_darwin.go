package budget

import (
	"encoding/binary"
	"syscall"
)

// physical is the machine's memory; 0 if it is not known.
func physical() int64 {
	text, err := syscall.Sysctl("hw.memsize")
	if err != nil {
		return 0
	}
	// Sysctl takes the number for a text and drops a zero byte at its end.
	var raw [8]byte
	copy(raw[:], text)
	return int64(binary.LittleEndian.Uint64(raw[:]))
}
