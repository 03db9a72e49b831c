package audit

import (
	"encoding/json"
	"io"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditapi "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
)

// logName is the backend's name in the metric of errors, as in Kubernetes.
const logName = "log"

// logBackend writes a line for each event. Kubernetes' library does the same, but takes ten times as long to encode an
// event (BenchmarkEncode), and a system call for each: here the lines that come while others are written are written
// together.
type logBackend struct {
	legacy bool
	// lenient (mode blocking) lets requests go on whose events cannot be written, which is counted. It also lets lines
	// about a read, which changes nothing, wait until its answer is sent, or for holdLimit.
	lenient bool

	mu      sync.Mutex
	pending *batch // what the next write takes; nil is nothing
	// late fires holdLimit after a line was held while it was not set. It is not set anew for every request: that
	// would wake a processor each time.
	late  *time.Timer
	timed bool // it is set
	// awaited are reads that have come in, which is not among the lines yet.
	awaited awaited

	writing sync.Mutex // one batch after the other; locked before mu
	out     io.Writer

	held atomic.Int64 // lines that are held and not written yet
}

// holdLimit is how long a line is held if nothing is sent.
const holdLimit = 100 * time.Millisecond

var _ audit.Backend = (*logBackend)(nil)

// ProcessEvents implements audit.Sink. It returns when the lines are written, unless they may be held.
func (b *logBackend) ProcessEvents(events ...*auditapi.Event) bool {
	ok := true
	for _, e := range events {
		ok = b.record(e, beside{}) && ok
	}
	return ok
}

// record implements recorder.
func (b *logBackend) record(e *auditapi.Event, of beside) bool {
	err := b.write(e, of)
	if err != nil {
		audit.HandlePluginError(logName, err, e)
	}
	return err == nil || b.lenient
}

func (b *logBackend) write(e *auditapi.Event, of beside) error {
	room := lines.Get().(*[]byte)
	line, err := (*room)[:0], error(nil)
	first := 0 // where the second line begins, if there are two
	switch {
	case b.legacy:
		line = append(line, audit.EventString(answered(e, of.code))...)
	case of.awaited:
		var at described
		line, at = appendReceived(line, e, of)
		line = append(line, '\n')
		first = len(line)
		line, err = appendLater(line, at, e, of)
	default:
		line, err = appendEvent(line, e, of)
	}
	if err != nil {
		return err
	}
	line = append(line, '\n')
	held := b.lenient && reads(e.Verb) && (of.flushed || e.Stage == auditapi.StageRequestReceived)
	batch, i := b.add(line, first, held)
	if cap(line) <= maxKept {
		*room = line
		lines.Put(room)
	}
	if held {
		return nil
	}
	return b.flush(batch, i)
}

// answered returns the event with the code of the answer, which may stand beside it.
func answered(e *auditapi.Event, code int32) *auditapi.Event {
	if e.ResponseStatus != nil || code == 0 {
		return e
	}
	out := *e
	out.ResponseStatus = &metav1.Status{Code: code}
	return &out
}

// reads reports whether a verb changes nothing.
func reads(verb string) bool { return verb == "get" || verb == "list" || verb == "watch" }

// add puts a line, or two of which one ends at first, to those that are written next, and returns where it stands.
func (b *logBackend) add(line []byte, first int, held bool) (*batch, int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pending == nil {
		b.pending = batches.Get().(*batch)
	}
	p := b.pending
	begin, before := len(p.lines), len(p.ends)
	p.lines = append(p.lines, line...)
	if first > 0 {
		p.ends = append(p.ends, end{begin + first, true})
	}
	p.ends = append(p.ends, end{len(p.lines), held})
	n := int64(len(p.ends) - before)
	if !held {
		n--
		p.waiting++
	}
	if n > 0 {
		p.held += n
		b.held.Add(n)
		b.timeLocked()
	}
	return p, len(p.ends) - 1
}

// timeLocked sees to it that writeLate is called within holdLimit.
func (b *logBackend) timeLocked() {
	if b.timed {
		return
	}
	b.timed = true
	if b.late == nil {
		b.late = time.AfterFunc(holdLimit, b.writeLate)
	} else {
		b.late.Reset(holdLimit)
	}
}

// flush writes a batch, if it was not written while the caller waited for its turn, and returns what came of a line.
func (b *logBackend) flush(p *batch, i int) error {
	b.writing.Lock()
	defer b.writing.Unlock()
	if !p.written {
		b.put(b.take())
	}
	err := p.result(i)
	if p.waiting--; p.waiting == 0 {
		p.free()
	}
	return err
}

// flushAll writes what is there.
func (b *logBackend) flushAll() {
	b.writing.Lock()
	defer b.writing.Unlock()
	p := b.take()
	if p == nil {
		return
	}
	b.put(p)
	if p.waiting == 0 {
		p.free()
	}
}

// flushHeld implements recorder.
func (b *logBackend) flushHeld() {
	if b.held.Load() > 0 {
		b.flushAll()
	}
}

// put writes a batch; b.writing is locked.
func (b *logBackend) put(p *batch) {
	p.write(b.out)
	b.held.Add(-p.held)
}

// take makes what is there the caller's, who holds writing: later lines are another batch.
func (b *logBackend) take() *batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.pending
	b.pending = nil
	return p
}

// writeLate writes what is there, of which nothing was held for longer than holdLimit.
func (b *logBackend) writeLate() {
	b.mu.Lock()
	b.timed = false
	b.mu.Unlock()
	b.writeAwaited()
	b.flushAll()
}

// Run implements audit.Backend.
func (*logBackend) Run(<-chan struct{}) error { return nil }

// Shutdown implements audit.Backend.
func (b *logBackend) Shutdown() { b.writeLate() }

// String implements audit.Backend.
func (*logBackend) String() string { return logName }

// lines are room for a line each; longer ones than maxKept are rare.
var lines = sync.Pool{New: func() any { return new([]byte) }}

const maxKept = 64 << 10

// batch are lines that are written together. While it is pending, logBackend.mu guards it, and then logBackend.writing.
type batch struct {
	lines   []byte
	ends    []end
	errs    []error // of each line; nil if all were written
	held    int64   // how many lines are held
	waiting int     // how many calls will ask for a result
	written bool
}

// end is where a line ends. Nobody waits for one that is held.
type end struct {
	at   int
	held bool
}

var batches = sync.Pool{New: func() any { return new(batch) }}

func (p *batch) free() {
	if cap(p.lines) <= maxKept {
		*p = batch{lines: p.lines[:0], ends: p.ends[:0]}
		batches.Put(p)
	}
}

// write writes all lines at once, or one after the other if they are many bytes or that has failed: then each has its
// own result.
func (p *batch) write(out io.Writer) {
	p.written = true
	if len(p.ends) == 1 || len(p.lines) <= maxKept {
		n, err := out.Write(p.lines)
		if err == nil {
			return
		}
		if len(p.ends) == 1 || n > 0 {
			p.fail(err)
			return
		}
	}
	begin := 0
	for i, end := range p.ends {
		if _, err := out.Write(p.lines[begin:end.at]); err != nil {
			p.failed(i, begin, err)
		}
		begin = end.at
	}
}

func (p *batch) fail(err error) {
	begin := 0
	for i, end := range p.ends {
		p.failed(i, begin, err)
		begin = end.at
	}
}

// failed notes that the line i, from begin on, could not be written. If no request waits for the line, it is said here.
func (p *batch) failed(i, begin int, err error) {
	if p.errs == nil {
		p.errs = make([]error, len(p.ends))
	}
	p.errs[i] = err
	if p.ends[i].held {
		audit.HandlePluginError(logName, err, eventOf(p.lines[begin:p.ends[i].at]))
	}
}

func (p *batch) result(i int) error {
	if p.errs == nil {
		return nil
	}
	return p.errs[i]
}

// eventOf reads what a message about a line has to say.
func eventOf(line []byte) *auditapi.Event {
	e := &auditapi.Event{Stage: auditapi.StageRequestReceived}
	_ = json.Unmarshal(line, e) // the fields of the internal type have names like those of the line, in all but case
	return e
}
