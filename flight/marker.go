package flight

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"

	"github.com/cespare/xxhash/v2"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/request"
)

// A marker says where a page ended: version, order, table, encoded primary key,
// checksum. Table ids are never used again, so that a marker of a dropped table
// is refused even if a new one has its name.

const markerVersion = 1

// markerText writes the marker that goes on behind key.
func markerText(order request.Order, table uint64, key []byte) string {
	raw := append(make([]byte, 0, 18+len(key)), markerVersion, byte(order))
	raw = append(binary.BigEndian.AppendUint64(raw, table), key...)
	return base64.RawURLEncoding.EncodeToString(sealed("marker", raw))
}

// readMarker is the encoded primary key in a marker for this order and table.
func readMarker(text string, order request.Order, table uint64) ([]byte, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err == nil {
		raw, err = unsealed("marker", raw)
	}
	if err != nil || len(raw) < 10 || raw[0] != markerVersion {
		return nil, fault.Invalid("MARKER_INVALID", `"after" is not a marker of this server: send app_metadata's "after" of a page's last message unchanged, or a list of primary-key values`)
	}
	if binary.BigEndian.Uint64(raw[2:]) != table {
		return nil, fault.Invalid("MARKER_INVALID", `the marker in "after" belongs to another table`)
	}
	if raw[1] != byte(order) {
		return nil, fault.Invalid("MARKER_INVALID", `the marker in "after" belongs to the other order: go on in the order in which the first page was read`)
	}
	return raw[10:], nil
}

// markerMetadata is the app_metadata of a message that ends at key.
func markerMetadata(order request.Order, table uint64, key []byte) []byte {
	text, _ := json.Marshal(map[string]string{"after": markerText(order, table, key)}) // strings always marshal
	return text
}

var errSeal = errors.New("the checksum does not fit")

// sealed appends a checksum. It finds changed bytes; it is no secret, and what
// passes is still checked as input.
func sealed(purpose string, raw []byte) []byte {
	return binary.BigEndian.AppendUint64(raw, sealOf(purpose, raw))
}

func unsealed(purpose string, raw []byte) ([]byte, error) {
	if len(raw) < 8 {
		return nil, errSeal
	}
	body := raw[:len(raw)-8]
	if binary.BigEndian.Uint64(raw[len(body):]) != sealOf(purpose, body) {
		return nil, errSeal
	}
	return body, nil
}

func sealOf(purpose string, raw []byte) uint64 {
	hash := xxhash.New()
	_, _ = hash.WriteString("sheaf " + purpose + " ")
	_, _ = hash.Write(raw)
	return hash.Sum64()
}
