package cluster

import (
	"context"
	"hash/maphash"
	"sync"
	"time"

	"github.com/bowsprit/bowsprit/internal/part"
)

// recorder writes the events of a component asynchronously: a reconciler that waited for its events would do half as
// much. Events about one object are written in the order of their reports. Queued events are lost when the server
// stops, as with client-go's recorder.
type recorder struct {
	// atOnce makes take write synchronously.
	atOnce bool
	// write writes a report, and returns the name of its event. A non-empty name is the event that counts equal
	// reports.
	write func(ctx context.Context, one *report, name string) string
	ctx   context.Context
	end   context.CancelFunc
	work  sync.WaitGroup
	lines [recorderLines]line
}

// recorderLines is how many events of a component are written at the same time.
const recorderLines = 4

// lineMost is the number of events that may wait in a line before take blocks.
const lineMost = 1024

// occurrencesMost is how many events a line remembers: all together as many as kube's recorder does.
const occurrencesMost = 4096 / recorderLines

// line is the queue of events about some of the objects. A goroutine writes them while there are any.
type line struct {
	mu      sync.Mutex
	room    *sync.Cond // signals room in waiting
	waiting []report
	writes  bool // a goroutine is writing
	over    bool
	last    time.Time      // the latest time of a report
	names   map[key]string // the names of recently written events
	correlator
}

// report is an event, with the parts that its Event object is made of.
type report struct {
	Event
	by        *Cluster
	namespace string // the event's namespace
	at        time.Time
	key       key  // reports with equal keys increment one event
	combined  bool // it stands for many similar events
}

// key is a hash in the place of a long value: thousands are tracked, and each value has some hundreds of bytes.
type key [2]uint64

var seed, seed2 = maphash.MakeSeed(), maphash.MakeSeed()

func keyOf[T comparable](of T) key {
	return key{maphash.Comparable(seed, of), maphash.Comparable(seed2, of)}
}

func newRecorder(h *part.Host) *recorder {
	r := &recorder{write: write, atOnce: h.OnStop == nil} // a test, which looks at events at once
	r.ctx, r.end = context.WithCancel(context.Background())
	for i := range r.lines {
		r.lines[i].room = sync.NewCond(&r.lines[i].mu)
		r.lines[i].correlator = newCorrelator()
	}
	if !r.atOnce {
		h.OnStop(r.stop)
	}
	return r
}

// take queues a report, unless the event budget of its object is spent.
func (r *recorder) take(ctx context.Context, one report) {
	l := &r.lines[maphash.String(seed, one.About.Namespace+"/"+one.About.Name)%recorderLines]
	if r.atOnce {
		l.mu.Lock()
		wanted := l.correlate(&one)
		one.at = l.next(one.at)
		l.mu.Unlock()
		if wanted {
			r.writeOne(ctx, l, &one)
		}
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.correlate(&one) {
		return
	}
	for len(l.waiting) >= lineMost && !l.over {
		l.room.Wait()
	}
	if l.over {
		return
	}
	one.at = l.next(one.at)
	l.waiting = append(l.waiting, one)
	if !l.writes {
		l.writes = true
		r.work.Go(func() { r.writeAll(l) })
	}
}

// next returns a time that is unique in the line, since the event's name contains it.
func (l *line) next(at time.Time) time.Time {
	if !at.After(l.last) {
		at = l.last.Add(1)
	}
	l.last = at
	return at
}

// writeAll writes waiting reports until none is left.
func (r *recorder) writeAll(l *line) {
	for {
		l.mu.Lock()
		all := l.waiting
		l.waiting = nil
		l.writes = len(all) > 0
		l.room.Broadcast()
		l.mu.Unlock()
		if len(all) == 0 {
			return
		}
		for i := range all {
			r.writeOne(r.ctx, l, &all[i])
		}
	}
}

func (r *recorder) writeOne(ctx context.Context, l *line, one *report) {
	if ctx.Err() != nil {
		return
	}
	l.mu.Lock()
	name := l.names[one.key]
	l.mu.Unlock()
	now := r.write(ctx, one, name)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case now == name:
	case now == "":
		delete(l.names, one.key)
	default:
		if l.names == nil || len(l.names) >= occurrencesMost {
			l.names = map[key]string{}
		}
		l.names[one.key] = now
	}
}

// stop ends all writing. Later reports are dropped.
func (r *recorder) stop() error {
	for i := range r.lines {
		l := &r.lines[i]
		l.mu.Lock()
		l.over, l.waiting = true, nil
		l.room.Broadcast()
		l.mu.Unlock()
	}
	r.end()
	r.work.Wait()
	return nil
}
