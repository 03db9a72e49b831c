package flow

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bowsprit/bowsprit/internal/request"
)

// The costs behind a number of seats.
const (
	bytesPerSeat = 100_000
	// cacheBytes limits the bytes of a list that are in memory at once: lists are written piece by piece.
	cacheBytes     = 1_000_000
	maxListSeats   = 100
	maxWriteSeats  = 10
	watchesPerSeat = 10
	eventTime      = 5 * time.Millisecond // of one seat, for each group of watchesPerSeat watches that see a write
)

const watchVerb = "watch"

// estimate sets the number of seats of a request, and how long it holds seats after its response.
func (c *Controller) estimate(t *Ticket, r *http.Request) {
	q := &t.seat
	q.Seats, q.FinalSeats, q.Linger, t.watchers = 1, 0, 0, -1
	switch t.info.Verb {
	case "list", watchVerb:
		if !t.info.IsResource || t.info.Verb == watchVerb && !wantsInitial(r.URL.RawQuery) {
			break
		}
		if bytes, ok := c.weigh(t.info, r.URL.RawQuery); ok {
			q.Seats = t.bound(ceil(min(bytes, cacheBytes), bytesPerSeat), maxListSeats)
		}
	case "create", "update", "patch", "delete":
		if !t.info.IsResource || c.unseen(t.info) {
			break
		}
		n := c.watches.interested(t.info)
		t.watchers = n
		if n < watchesPerSeat {
			break
		}
		seats := ceil(int64(n), watchesPerSeat)
		q.FinalSeats = t.bound(seats, maxWriteSeats)
		q.Linger = eventTime * time.Duration(seats) / time.Duration(q.FinalSeats)
	}
}

// bound clamps seats to the maximum for a request of its level.
func (t *Ticket) bound(seats, most int64) int {
	if of := t.schema.level.most.Load(); of > 0 {
		most = min(most, of)
	}
	return int(min(max(seats, 1), most))
}

func ceil(n, unit int64) int64 { return (n + unit - 1) / unit }

// wantsInitial reports whether a watch sends the initial state: either it requests that, or, as in the original API, it
// has no resourceVersion.
func wantsInitial(query string) bool {
	if !strings.Contains(query, "sendInitialEvents") && strings.Contains(query, "resourceVersion=") &&
		!strings.Contains(query, "resourceVersion=&") && !strings.Contains(query, "resourceVersion=0") &&
		!strings.HasSuffix(query, "resourceVersion=") && !strings.Contains(query, "%") {
		return false // most watches; parsing a query costs more than searching it
	}
	values, _ := url.ParseQuery(query)
	if initial, err := strconv.ParseBool(values.Get("sendInitialEvents")); err == nil && initial {
		return true
	}
	version := values.Get("resourceVersion")
	return version == "" || version == "0"
}

// watches counts watches by target, to estimate the cost of writes.
type watches struct {
	mu    sync.Mutex
	count map[watchKey]int
}

type watchKey struct{ group, resource, namespace, name string }

// add counts a watch and returns its key.
func (w *watches) add(info *request.Info) watchKey {
	key := watchKey{info.Group, info.Resource, info.Namespace, info.Name}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count[key]++
	return key
}

func (w *watches) forget(key watchKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.count[key]--; w.count[key] == 0 {
		delete(w.count, key)
	}
}

// interested returns the number of watches that may see a write.
func (w *watches) interested(info *request.Info) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.count) == 0 {
		return 0
	}
	key := watchKey{group: info.Group, resource: info.Resource}
	n := w.count[key]
	if info.Namespace != "" {
		key.namespace = info.Namespace
		n += w.count[key]
	}
	if info.Name != "" {
		key.name = info.Name
		n += w.count[key]
	}
	return n
}

// Cost returns the estimated cost of the request: its seats while it runs, and its seats for the time linger after it
// has ended, while the watches of its object are served.
func (t *Ticket) Cost() (seats, final int, linger time.Duration) {
	return t.seat.Seats, t.seat.FinalSeats, t.seat.Linger
}
