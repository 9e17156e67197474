package budget

import (
	"bytes"
	"os"
	"path"
	"strconv"
	"strings"
)

// machineShare: a gateway takes a quarter of the machine unless it is told
// otherwise; unknown is what it takes of a machine that does not say how large
// it is.
const (
	machineShare = 4
	unknown      = 1 << 30
)

// Default is a quarter of the memory that this process may use: of the machine,
// or of the control group that it runs in, whichever is less.
func Default() int64 {
	total := physical()
	if limit := controlGroup(os.ReadFile); limit > 0 && (total == 0 || limit < total) {
		total = limit
	}
	if total == 0 {
		return unknown
	}
	return max(total/machineShare, Least)
}

// controlGroup is the memory limit of the process's control group, of version 2
// or 1; 0 if it has none. The limits of the groups above count too.
func controlGroup(read func(string) ([]byte, error)) int64 {
	own, err := read("/proc/self/cgroup")
	if err != nil {
		return 0
	}
	var least int64
	for line := range strings.Lines(string(own)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		root, file := "", ""
		switch {
		case fields[0] == "0" && fields[1] == "":
			root, file = "/sys/fs/cgroup", "memory.max"
		case fields[1] == "memory":
			root, file = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		for at := path.Clean("/" + fields[2]); ; at = path.Dir(at) {
			if n := numberIn(read, path.Join(root, at, file)); n > 0 && (least == 0 || n < least) {
				least = n
			}
			if at == "/" {
				break
			}
		}
	}
	return least
}

// noLimit: version 1 says "no limit" with a number of this size.
const noLimit = 1 << 60

func numberIn(read func(string) ([]byte, error), name string) int64 {
	text, err := read(name)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	if err != nil || n >= noLimit {
		return 0 // "max"
	}
	return n
}
