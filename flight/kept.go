package flight

import (
	"container/list"
	"crypto/rand"
	"encoding/hex"
	"sync"
	"time"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/limits"
)

// keptBytes bounds all kept queries together; when it is met the one that was
// used longest ago goes.
const keptBytes = 64 << 20

// keptQueries holds queries that are too large for a ticket, each as long after
// its last use as a snapshot lives. A restart forgets them.
type keptQueries struct {
	ttl   time.Duration
	now   func() time.Time
	mu    sync.Mutex
	byID  map[string]*list.Element
	queue *list.List // of *keptQuery, least recently used first
	bytes int
}

type keptQuery struct {
	id      string
	text    []byte
	expires time.Time
}

func newKeptQueries(ttl time.Duration) *keptQueries {
	return &keptQueries{ttl: ttl, now: time.Now, byID: map[string]*list.Element{}, queue: list.New()}
}

// keep stores a query's text and returns the id for its tickets.
func (k *keptQueries) keep(text []byte) string {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails
	query := &keptQuery{id: hex.EncodeToString(raw[:]), text: text}
	k.mu.Lock()
	defer k.mu.Unlock()
	query.expires = k.now().Add(k.ttl)
	k.byID[query.id] = k.queue.PushBack(query)
	k.bytes += len(text)
	k.expire()
	return query.id
}

// use is the text of a kept query; its clock starts again.
func (k *keptQueries) use(id string) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.expire()
	element, ok := k.byID[id]
	if !ok {
		return nil, fault.New(fault.NotFound, "TICKET_EXPIRED",
			"the query of this ticket is no longer kept (tickets of queries above %d bytes live %v after their last use, and not over a restart): call GetFlightInfo again",
			limits.TicketBytes, k.ttl)
	}
	query := element.Value.(*keptQuery)
	query.expires = k.now().Add(k.ttl)
	k.queue.MoveToBack(element)
	return query.text, nil
}

// drop forgets a kept query; an unknown id is none.
func (k *keptQueries) drop(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if element, ok := k.byID[id]; ok {
		k.remove(element)
	}
}

// expire drops what is too old or too much; the caller holds mu.
func (k *keptQueries) expire() {
	for k.queue.Len() > 0 {
		oldest := k.queue.Front()
		query := oldest.Value.(*keptQuery)
		if k.bytes <= keptBytes && k.now().Before(query.expires) {
			return
		}
		k.remove(oldest)
	}
}

// remove forgets one query; the caller holds mu.
func (k *keptQueries) remove(element *list.Element) {
	query := element.Value.(*keptQuery)
	k.queue.Remove(element)
	delete(k.byID, query.id)
	k.bytes -= len(query.text)
}

func (k *keptQueries) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.byID)
	k.queue.Init()
	k.bytes = 0
}
