package flight

import (
	"encoding/base64"
	"os"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
)

// testdata/types.txt is what pyarrow says; write_types.py beside it writes it.
func TestTypeTextsArePyarrows(t *testing.T) {
	lines, err := os.ReadFile("testdata/types.txt")
	require.NoError(t, err)
	count := 0
	for line := range strings.Lines(string(lines)) {
		encoded, want, found := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		require.True(t, found)
		message, err := base64.StdEncoding.DecodeString(encoded)
		require.NoError(t, err)
		schema, err := flight.DeserializeSchema(message, memory.DefaultAllocator)
		require.NoError(t, err, want)
		require.Equal(t, want, TypeText(schema.Field(0).Type))
		count++
	}
	require.Greater(t, count, 60)
}
