package cluster

import (
	"context"
	"hash/maphash"
	"sync"
	"time"

	"github.com/bowsprit/bowsprit/internal/part"
)

// recorder writes what a component reports, beside its work: a reconciler that waited for its events would do half as
// much. Events about one object are written in the order in which they were reported. What is not written when the
// server stops is lost, as with kube's recorder.
type recorder struct {
	// atOnce has take write, and wait for that.
	atOnce bool
	// write writes a report, at the event of a name if that is not "", and returns the name of where it is.
	write func(ctx context.Context, one *report, name string) string
	ctx   context.Context
	end   context.CancelFunc
	work  sync.WaitGroup
	lines [recorderLines]line
}

// recorderLines is how many events of a component are written at the same time.
const recorderLines = 4

// lineMost is how many events wait in a line before who reports more has to wait.
const lineMost = 1024

// occurrencesMost is how many events a line remembers: all together as many as kube's recorder does.
const occurrencesMost = 4096 / recorderLines

// line are the events about some of the objects. A goroutine writes them as long as there are any.
type line struct {
	mu      sync.Mutex
	room    *sync.Cond // there may be room in waiting
	waiting []report
	writes  bool // there is a goroutine
	over    bool
	last    time.Time      // the latest of a report
	names   map[key]string // of the events that were written last
	correlator
}

// report is an event with what its object is made of besides.
type report struct {
	Event
	by        *Cluster
	namespace string // of the event
	at        time.Time
	key       key  // reports with the same are counted at one event
	combined  bool // it is for many that are similar
}

// key stands for a value of which thousands are remembered, each some hundreds of bytes with its texts.
type key [2]uint64

var seed, seed2 = maphash.MakeSeed(), maphash.MakeSeed()

func keyOf[T comparable](of T) key {
	return key{maphash.Comparable(seed, of), maphash.Comparable(seed2, of)}
}

func newRecorder(h *part.Host) *recorder {
	r := &recorder{write: write, atOnce: h.OnStop == nil} // then it is a test's, which looks at once
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

// take has a report written, unless there have been too many about its object.
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

// next returns a time that no other event of the line has: it is in its name.
func (l *line) next(at time.Time) time.Time {
	if !at.After(l.last) {
		at = l.last.Add(1)
	}
	l.last = at
	return at
}

// writeAll writes what waits, until nothing does.
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

// stop ends all writing. What is reported afterwards is dropped.
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
