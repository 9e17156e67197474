package ingest

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/go-json-experiment/json"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards"
)

// Keys is what a writer or creator says about a table's keys. Nil and zero mean
// that nothing is said; an empty Sharding asks for a table without key.
type Keys struct {
	Sharding, Sorting []string
	Slices            int
}

// howToName goes into errors about tables whose keys are not known.
const howToName = `name its keys by the schema metadata sheaf.sharding_key and sheaf.sorting_key, ` +
	`by the command fields sharding_key and sorting_key (JSON arrays of column names; [] for a table without key), ` +
	`or make it with the action CreateTable`

// KeysFromMetadata reads sheaf.sharding_key, sheaf.sorting_key and sheaf.slices.
func KeysFromMetadata(metadata arrow.Metadata) (Keys, error) {
	var k Keys
	var err error
	if text, ok := metadata.GetValue(shards.MetaShardingKey); ok {
		if k.Sharding, err = names(shards.MetaShardingKey, text); err != nil {
			return Keys{}, err
		}
	}
	if text, ok := metadata.GetValue(shards.MetaSortingKey); ok {
		if k.Sorting, err = names(shards.MetaSortingKey, text); err != nil {
			return Keys{}, err
		}
	}
	if text, ok := metadata.GetValue(shards.MetaSlices); ok {
		k.Slices, err = strconv.Atoi(strings.TrimSpace(text))
		if err != nil || k.Slices < 1 || k.Slices > limits.MaxSlices {
			return Keys{}, fault.Invalid("KEY_INVALID", "schema metadata %s is %.80q; it must be a whole number from 1 to %d",
				shards.MetaSlices, text, limits.MaxSlices)
		}
	}
	return k, nil
}

// names reads a JSON array of names, or one bare name.
func names(field, text string) ([]string, error) {
	if !strings.HasPrefix(strings.TrimSpace(text), "[") {
		if text == "" {
			return nil, fault.Invalid("KEY_INVALID", "schema metadata %s is empty; write a column name or a JSON array of names", field)
		}
		return []string{text}, nil
	}
	list := []string{}
	if err := json.UnmarshalRead(bytes.NewReader([]byte(text)), &list); err != nil {
		return nil, fault.Invalid("KEY_INVALID", "schema metadata %s is %.80q; it must be a column name or a JSON array of names", field, text)
	}
	return list, nil
}

// Over is k where it says something, else under.
func (k Keys) Over(under Keys) Keys {
	if k.Sharding == nil {
		k.Sharding = under.Sharding
	}
	if k.Sorting == nil {
		k.Sorting = under.Sorting
	}
	if k.Slices == 0 {
		k.Slices = under.Slices
	}
	return k
}

// Agree is nil if nothing that k says contradicts the table's keys and slice
// count, else FAILED_PRECONDITION naming old and new.
func (k Keys) Agree(name shards.Name, s *shards.Schema) error {
	conflict := func(what, old, now string) error {
		return fault.New(fault.FailedPrecondition, "KEY_CONFLICT",
			"table %s has the %s %s, and this names %s; a table's key is immutable: leave it out, or write to another table",
			name, what, old, now)
	}
	if k.Sharding != nil {
		if old := columnNames(s, s.Sharding); !slices.Equal(old, k.Sharding) {
			return conflict("sharding key", quoted(old), quoted(k.Sharding))
		}
	}
	if k.Sorting != nil {
		if old := columnNames(s, s.Sorting); !slices.Equal(old, k.Sorting) {
			return conflict("sorting key", quoted(old), quoted(k.Sorting))
		}
	}
	if k.Slices != 0 && k.Slices != s.Slices {
		return conflict("slice count", strconv.Itoa(s.Slices), strconv.Itoa(k.Slices))
	}
	return nil
}

func columnNames(s *shards.Schema, columns []int) []string {
	list := []string{}
	for _, c := range columns {
		if !s.Columns[c].Hidden {
			list = append(list, s.Columns[c].Field.Name)
		}
	}
	return list
}

// quoted is a list of names as the user writes it: ["a", "b"].
func quoted(list []string) string {
	texts := make([]string, len(list))
	for i, name := range list {
		texts[i] = strconv.Quote(name)
	}
	return "[" + strings.Join(texts, ", ") + "]"
}
