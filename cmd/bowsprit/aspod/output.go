package aspod

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"
)

const (
	// maxOutput bounds the output that a command keeps for kubectl logs; the oldest lines go first.
	maxOutput = 4 << 20
	// maxLine is the length at which a line is divided, as containers' runtimes do.
	maxLine = 16 << 10
	// outputWait is how long the output of an ended program is awaited: processes that it has started may hold it.
	outputWait = time.Second
)

// The streams of a program, as the option of a log names them.
const (
	streamAll    = "All"
	streamStdout = "Stdout"
	streamStderr = "Stderr"
)

// output keeps the recent output of a program. It is safe for concurrent use.
type output struct {
	mu      sync.Mutex
	lines   []outputLine
	first   int           // number of the first of lines, counted from the start of the program
	size    int           // bytes of lines
	changed chan struct{} // closed at the next line
	now     func() time.Time
}

// outputLine is a line of output, or a part of a long one.
type outputLine struct {
	at     time.Time
	stream string
	text   []byte // with its line break, unless it is divided
}

func newOutput() *output { return &output{changed: make(chan struct{}), now: time.Now} }

// tee returns a writer that keeps lines and passes everything on to a stream of this process.
func (o *output) tee(stream string, to io.Writer) io.Writer {
	return &tee{o: o, stream: stream, to: to}
}

// tee is one stream of a program.
type tee struct {
	o       *output
	stream  string
	to      io.Writer
	started []byte // a line without its end
}

// Write implements io.Writer.
func (t *tee) Write(p []byte) (int, error) {
	rest := append(t.started, p...)
	for {
		end := bytes.IndexByte(rest, '\n') + 1
		if end == 0 && len(rest) < maxLine {
			break
		}
		if end == 0 || end > maxLine {
			end = maxLine
		}
		t.o.add(t.stream, bytes.Clone(rest[:end]))
		rest = rest[end:]
	}
	t.started = bytes.Clone(rest)
	return t.to.Write(p)
}

func (o *output) add(stream string, text []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lines = append(o.lines, outputLine{o.now(), stream, text})
	o.size += len(text)
	for o.size > maxOutput {
		o.size -= len(o.lines[0].text)
		o.lines[0].text = nil
		o.lines = o.lines[1:]
		o.first++
	}
	close(o.changed)
	o.changed = make(chan struct{})
}

// from returns the lines from a number on, the number after them, and a channel that is closed at the next line.
func (o *output) from(number int) (lines []outputLine, next int, changed <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	skip := min(max(number-o.first, 0), len(o.lines))
	return append([]outputLine(nil), o.lines[skip:]...), o.first + len(o.lines), o.changed
}

// selection are the options of a request for the log.
type selection struct {
	tail, limit        int64 // negative for none
	since              time.Time
	stream             string
	follow, timestamps bool
}

// parseSelection reads the options. Invalid ones are left out: the server has checked them.
func parseSelection(query url.Values) selection {
	s := selection{tail: -1, limit: -1, stream: streamAll}
	number := func(name string, to *int64) {
		if n, err := strconv.ParseInt(query.Get(name), 10, 64); err == nil && n >= 0 {
			*to = n
		}
	}
	number("tailLines", &s.tail)
	number("limitBytes", &s.limit)
	s.since, _ = time.Parse(time.RFC3339Nano, query.Get("sinceTime")) // the zero time for none
	if stream := query.Get("stream"); stream != "" {
		s.stream = stream
	}
	s.follow, _ = strconv.ParseBool(query.Get("follow"))
	s.timestamps, _ = strconv.ParseBool(query.Get("timestamps"))
	return s
}

// ServeHTTP answers a request for the log.
func (o *output) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s := parseSelection(r.URL.Query())
	control := http.NewResponseController(w)
	w.WriteHeader(http.StatusOK)
	lines, next, changed := o.from(0)
	if s.tail >= 0 && int64(len(lines)) > s.tail {
		lines = lines[int64(len(lines))-s.tail:]
	}
	for {
		for _, l := range lines {
			if !s.write(w, l) {
				return
			}
		}
		if control.Flush() != nil || !s.follow || s.limit == 0 {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
		lines, next, changed = o.from(next)
	}
}

// write writes a line if it is selected, and returns false at the end of the log.
func (s *selection) write(w io.Writer, l outputLine) bool {
	if l.at.Before(s.since) || s.stream != streamAll && s.stream != l.stream {
		return true
	}
	text := l.text
	if s.timestamps {
		text = fmt.Appendf(nil, "%s %s", l.at.UTC().Format("2006-01-02T15:04:05.000000000Z07:00"), l.text)
	}
	if s.limit >= 0 {
		text = text[:min(int64(len(text)), s.limit)]
		s.limit -= int64(len(text))
	}
	_, err := w.Write(text)
	return err == nil && s.limit != 0
}
