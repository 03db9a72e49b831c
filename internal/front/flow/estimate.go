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

// What seats stand for.
const (
	bytesPerSeat = 100_000
	// cacheBytes is the most of a list that lies in memory at once: lists are written piece by piece.
	cacheBytes     = 1_000_000
	maxListSeats   = 100
	maxWriteSeats  = 10
	watchesPerSeat = 10
	eventTime      = 5 * time.Millisecond // of one seat, for each watchesPerSeat watches that see a write
)

const watchVerb = "watch"

// estimate says how many seats a request takes, and for how long its work goes on behind its answer.
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

// bound keeps seats within what a request of its level may have.
func (t *Ticket) bound(seats, most int64) int {
	if of := t.schema.level.most.Load(); of > 0 {
		most = min(most, of)
	}
	return int(min(max(seats, 1), most))
}

func ceil(n, unit int64) int64 { return (n + unit - 1) / unit }

// wantsInitial reports whether a watch begins with the objects that are there: if it asks for them, or, as all watches
// once did, has no resourceVersion.
func wantsInitial(query string) bool {
	if !strings.Contains(query, "sendInitialEvents") && strings.Contains(query, "resourceVersion=") &&
		!strings.Contains(query, "resourceVersion=&") && !strings.Contains(query, "resourceVersion=0") &&
		!strings.HasSuffix(query, "resourceVersion=") && !strings.Contains(query, "%") {
		return false // most watches, and taking a query apart costs more than looking for words
	}
	values, _ := url.ParseQuery(query)
	if asked, err := strconv.ParseBool(values.Get("sendInitialEvents")); err == nil && asked {
		return true
	}
	version := values.Get("resourceVersion")
	return version == "" || version == "0"
}

// watches counts watches by what they look at, for the cost of writes.
type watches struct {
	mu    sync.Mutex
	count map[watchKey]int
}

type watchKey struct{ group, resource, namespace, name string }

// add counts a watch, and returns under what.
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

// interested returns how many watches may see what a write does.
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

// Cost returns what the request was taken to cost: the seats that it holds while it runs, and the seats that it holds
// for linger after it ended, while the watches of what it wrote are served.
func (t *Ticket) Cost() (seats, final int, linger time.Duration) {
	return t.seat.Seats, t.seat.FinalSeats, t.seat.Linger
}
