package budget

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSharesFitTheTotal(t *testing.T) {
	for _, total := range []int64{0, Least, 256 << 20, 1 << 30, 6 << 30, 1 << 40} {
		s := Split(total)
		require.Equal(t, max(total, Least), s.Total)
		live := s.Tails + s.Receiving + s.Reading
		require.LessOrEqual(t, live, s.Total/2, "%+v", s)
		require.LessOrEqual(t, s.Blocks+s.Memtables+live, s.Total)
		if outsideHeap {
			require.Equal(t, s.Total, s.Heap+s.Blocks+s.Memtables)
		}
		require.GreaterOrEqual(t, 10*s.Heap, 12*live, "room for the collector: %+v", s)
		require.Positive(t, s.Memtables)
	}
}

func TestDefaultIsAQuarterOfTheMachine(t *testing.T) {
	require.GreaterOrEqual(t, Default(), int64(Least))
	if total := physical(); total > 0 {
		require.LessOrEqual(t, Default(), max(total/4, Least))
	}
}

// files is a file system of a few files.
type files map[string]string

func (f files) read(name string) ([]byte, error) {
	if text, ok := f[name]; ok {
		return []byte(text), nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: errors.ErrUnsupported}
}

func TestLimitOfTheControlGroup(t *testing.T) {
	for name, c := range map[string]struct {
		files files
		limit int64
	}{
		"none":                  {files{}, 0},
		"version 2":             {files{"/proc/self/cgroup": "0::/a/b\n", "/sys/fs/cgroup/a/b/memory.max": "4096\n"}, 4096},
		"version 2, root":       {files{"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "8192\n"}, 8192},
		"version 2, above":      {files{"/proc/self/cgroup": "0::/a/b\n", "/sys/fs/cgroup/a/b/memory.max": "max\n", "/sys/fs/cgroup/a/memory.max": "777\n"}, 777},
		"unlimited":             {files{"/proc/self/cgroup": "0::/a\n", "/sys/fs/cgroup/a/memory.max": "max\n"}, 0},
		"version 1":             {files{"/proc/self/cgroup": "5:cpu:/x\n4:memory:/docker/1\n", "/sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes": "5000\n"}, 5000},
		"version 1, namespaced": {files{"/proc/self/cgroup": "4:memory:/docker/1\n", "/sys/fs/cgroup/memory/memory.limit_in_bytes": "6000\n"}, 6000},
		"version 1, unlimited":  {files{"/proc/self/cgroup": "4:memory:/\n", "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 0},
		"garbage":               {files{"/proc/self/cgroup": "x\n0::\n:::::\n", "/sys/fs/cgroup/memory.max": "-5\n"}, 0},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.limit, controlGroup(c.files.read)) })
	}
}
