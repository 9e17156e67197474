package shards

import (
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/limits"
)

// DefaultPinTime is how long a pinned snapshot lives after its last use.
const DefaultPinTime = 15 * time.Minute

// Pin describes a snapshot that outlives a request: it is held until its time
// runs out, renewed by every use, until Unpin, until the table is dropped or the
// store closed. A restart ends all pins.
type Pin struct {
	ID          string
	Table       *Table
	Commit      uint64
	Age         time.Duration
	Expires     time.Time
	PinnedBytes uint64 // runs and delta that are on disk only for snapshots held
}

// pins is the pinned snapshots of a store.
type pins struct {
	store *Store
	mu    sync.Mutex
	byID  map[string]*pinned
}

type pinned struct {
	id       string
	snapshot *Snapshot
	ttl      time.Duration
	made     time.Time
	expires  time.Time
	timer    *time.Timer
}

func newPins(s *Store) *pins { return &pins{store: s, byID: map[string]*pinned{}} }

// Pin pins the newest visible version; a ttl of 0 is DefaultPinTime. Errors:
// SNAPSHOTS_LIMIT, TABLE_NOT_FOUND.
func (t *Table) Pin(ttl time.Duration) (Pin, error) {
	snapshot, err := t.Snapshot()
	if err != nil {
		return Pin{}, err
	}
	defer snapshot.Release()
	return snapshot.Pin(ttl)
}

// Pin pins the version that the snapshot holds; a ttl of 0 is DefaultPinTime.
func (s *Snapshot) Pin(ttl time.Duration) (Pin, error) {
	if ttl <= 0 {
		ttl = DefaultPinTime
	}
	p := s.table.store.pins
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.byID) >= limits.OpenSnapshots {
		return Pin{}, fault.New(fault.ResourceExhausted, "SNAPSHOTS_LIMIT",
			"%d snapshots are open, the limit: release one or wait until one expires", limits.OpenSnapshots)
	}
	snapshot := s.hold()
	if snapshot == nil {
		return Pin{}, expired()
	}
	held := &pinned{id: rand.Text(), snapshot: snapshot, ttl: ttl, made: time.Now()}
	held.expires = held.made.Add(ttl)
	held.timer = time.AfterFunc(ttl, func() { p.expire(held.id) })
	p.byID[held.id] = held
	return held.describe(), nil
}

func (h *pinned) describe() Pin {
	t := h.snapshot.table
	return Pin{
		ID: h.id, Table: t, Commit: h.snapshot.version.commit, Age: time.Since(h.made), Expires: h.expires,
		PinnedBytes: t.pinnedBytes(h.snapshot.version.epoch),
	}
}

// pinnedBytes is the garbage that stays because a version is held.
func (t *Table) pinnedBytes(epoch uint64) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	var n uint64
	for _, g := range t.garbage {
		if g.born <= epoch && epoch < g.gone {
			n += g.size
		}
	}
	return n
}

// expire releases a pin whose time is over; a renewal may have been quicker.
func (p *pins) expire(id string) {
	p.mu.Lock()
	held := p.byID[id]
	if held == nil || time.Until(held.expires) > 0 {
		p.mu.Unlock()
		return
	}
	delete(p.byID, id)
	p.mu.Unlock()
	held.snapshot.Release()
}

func (p *pins) find(id string) (*pinned, error) {
	if held := p.byID[id]; held != nil {
		return held, nil
	}
	return nil, fault.New(fault.NotFound, "SNAPSHOT_NOT_FOUND",
		"there is no snapshot %.100q: it has expired, was released, or the server was restarted; ask for a new one", id)
}

func (p *pins) renew(held *pinned) {
	held.expires = time.Now().Add(held.ttl)
	held.timer.Reset(held.ttl)
}

// Pinned is a hold of its own on a pinned snapshot, whose time begins anew; the
// caller releases the Snapshot. SNAPSHOT_NOT_FOUND if there is none.
func (s *Store) Pinned(id string) (*Snapshot, Pin, error) {
	s.pins.mu.Lock()
	defer s.pins.mu.Unlock()
	held, err := s.pins.find(id)
	if err != nil {
		return nil, Pin{}, err
	}
	s.pins.renew(held)
	return held.snapshot.hold(), held.describe(), nil
}

// Renew begins a pinned snapshot's time anew.
func (s *Store) Renew(id string) (Pin, error) {
	s.pins.mu.Lock()
	defer s.pins.mu.Unlock()
	held, err := s.pins.find(id)
	if err != nil {
		return Pin{}, err
	}
	s.pins.renew(held)
	return held.describe(), nil
}

// Unpin releases a pinned snapshot; scans that use it go on.
func (s *Store) Unpin(id string) error {
	s.pins.mu.Lock()
	held, err := s.pins.find(id)
	if err == nil {
		delete(s.pins.byID, id)
	}
	s.pins.mu.Unlock()
	if err != nil {
		return err
	}
	held.timer.Stop()
	held.snapshot.Release()
	return nil
}

// Pins is the table's pinned snapshots, oldest first.
func (t *Table) Pins() []Pin {
	p := t.store.pins
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []Pin
	for _, held := range p.byID {
		if held.snapshot.table == t {
			list = append(list, held.describe())
		}
	}
	slices.SortFunc(list, func(a, b Pin) int { return int(b.Age - a.Age) })
	return list
}

func (p *pins) drop(which func(*pinned) bool) {
	p.mu.Lock()
	var gone []*pinned
	for id, held := range p.byID {
		if which(held) {
			gone = append(gone, held)
			delete(p.byID, id)
		}
	}
	p.mu.Unlock()
	for _, held := range gone {
		held.timer.Stop()
		held.snapshot.Release()
	}
}

func (p *pins) dropTable(t *Table) { p.drop(func(h *pinned) bool { return h.snapshot.table == t }) }

func (p *pins) close() { p.drop(func(*pinned) bool { return true }) }
