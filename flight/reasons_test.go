package flight

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	reasonInCode = regexp.MustCompile(`(?:fault\.New\([^"]*|fault\.Invalid\(|withReason\([^"]*)\s*"([A-Z][A-Z0-9_]+)"`)
	reasonInDocs = regexp.MustCompile("(?m)^\\| `([A-Z][A-Z0-9_]+)` \\|")
)

// docs/wire.md lists every reason that the code can give, and no other.
func TestEveryReasonIsDocumented(t *testing.T) {
	used := map[string]string{}
	require.NoError(t, filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && (name == "build" || strings.HasPrefix(name, ".") && name != "..") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		source, err := os.ReadFile(path)
		for _, found := range reasonInCode.FindAllSubmatch(source, -1) {
			used[string(found[1])] = path
		}
		return err
	}))
	require.Greater(t, len(used), 50)
	page, err := os.ReadFile("../docs/wire.md")
	require.NoError(t, err)
	documented := map[string]bool{}
	var order []string
	for _, found := range reasonInDocs.FindAllSubmatch(page, -1) {
		documented[string(found[1])] = true
		order = append(order, string(found[1]))
	}
	for reason, path := range used {
		require.True(t, documented[reason], "docs/wire.md lacks the reason %s of %s", reason, path)
	}
	for reason := range documented {
		require.NotEmpty(t, used[reason], "docs/wire.md lists %s, which nothing gives", reason)
	}
	require.True(t, slices.IsSorted(order), "the list is in alphabetical order")
}
