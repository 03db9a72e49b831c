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

	"github.com/bowsprit/bowsprit/internal/request/reuse"
)

// logName is the backend's name in the metric of errors, as in Kubernetes.
const logName = "log"

// logBackend writes a line for each event. Kubernetes' library does the same, but takes ten times as long to encode an
// event (BenchmarkEncode), and a system call for each. logBackend combines lines that arrive during a write into the
// next write.
type logBackend struct {
	legacy bool
	// lenient (mode blocking) lets requests continue after write errors, which are counted. It also allows lines about
	// reads, which change nothing, to be held until the response is sent, or for holdLimit.
	lenient bool

	mu      sync.Mutex
	pending *batch // the batch for the next write; nil if empty
	// late fires holdLimit after the first line that was held while late was not set. It is not reset for every
	// request, since that would wake a CPU each time.
	late  *time.Timer
	timed bool // late is set
	// deferred lists reads with an unwritten RequestReceived event.
	deferred deferredRecords

	writing sync.Mutex // serializes writes of batches; locked before mu
	out     io.Writer

	held atomic.Int64 // lines held and not yet written
}

// holdLimit limits how long a line is held if no response is sent.
const holdLimit = 100 * time.Millisecond

var _ audit.Backend = (*logBackend)(nil)

// ProcessEvents implements audit.Sink. It returns when the lines are written, unless they may be held.
func (b *logBackend) ProcessEvents(events ...*auditapi.Event) bool {
	ok := true
	for _, e := range events {
		ok = b.record(e, extras{}) && ok
	}
	return ok
}

// record implements recorder.
func (b *logBackend) record(e *auditapi.Event, of extras) bool {
	err := b.write(e, of)
	if err != nil {
		audit.HandlePluginError(logName, err, e)
	}
	return err == nil || b.lenient
}

func (b *logBackend) write(e *auditapi.Event, of extras) error {
	room := lines.Get()
	line, err := (*room)[:0], error(nil)
	first := 0 // position of the second line, if there are two
	switch {
	case b.legacy:
		line = append(line, audit.EventString(answered(e, of.code))...)
	case of.deferred:
		var at sharedParts
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

// answered returns the event with the code of the response, which may be in extras.
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

// add adds a line, or two lines of which the first ends at first, to the pending batch. It returns the batch and the
// line's index.
func (b *logBackend) add(line []byte, first int, held bool) (*batch, int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pending == nil {
		b.pending = batches.Get()
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

// flush writes a batch, unless that happened while the caller waited for its turn, and returns the result for a line.
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

// flushAll writes the pending batch.
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

// take takes over the pending batch; later lines go to another batch. The caller holds writing.
func (b *logBackend) take() *batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.pending
	b.pending = nil
	return p
}

// writeLate writes the pending batch, in which no line has been held for longer than holdLimit.
func (b *logBackend) writeLate() {
	b.mu.Lock()
	b.timed = false
	b.mu.Unlock()
	b.writeDeferred()
	b.flushAll()
}

// Run implements audit.Backend.
func (*logBackend) Run(<-chan struct{}) error { return nil }

// Shutdown implements audit.Backend.
func (b *logBackend) Shutdown() { b.writeLate() }

// String implements audit.Backend.
func (*logBackend) String() string { return logName }

// lines pools buffers for one line each; lines longer than maxKept are rare.
var lines = reuse.Bytes(0)

const maxKept = 64 << 10

// batch is a set of lines written together. logBackend.mu guards it while it is pending, and logBackend.writing
// afterwards.
type batch struct {
	lines   []byte
	ends    []end
	errs    []error // for each line; nil if all were written
	held    int64   // number of held lines
	waiting int     // number of calls that will read a result
	written bool
}

// end is the end of a line. No call waits for a held line.
type end struct {
	at   int
	held bool
}

var batches = reuse.New(func() *batch { return new(batch) }, func(p *batch) { reuse.SpoilBytes(&p.lines) })

func (p *batch) free() {
	if cap(p.lines) <= maxKept {
		*p = batch{lines: p.lines[:0], ends: p.ends[:0]}
		batches.Put(p)
	}
}

// write writes all lines at once. If they are long, or if that fails, it writes them one after the other, each with its
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

// failed records that line i, from begin on, could not be written. If no request waits for the line, it reports the
// error.
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

// eventOf decodes the parts of a line that an error message needs.
func eventOf(line []byte) *auditapi.Event {
	e := &auditapi.Event{Stage: auditapi.StageRequestReceived}
	_ = json.Unmarshal(line, e) // field names of the internal type match those of the line, ignoring case
	return e
}
