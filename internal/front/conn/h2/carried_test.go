package h2_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/bowsprit/bowsprit/internal/request/handover"
)

// handed is a response that a handler hands over.
type handed struct {
	w      http.ResponseWriter
	stream handover.Stream // nil if it was not taken over
	turn   func(h *handed, now time.Time) (next time.Time, complete bool)
	over   chan struct{}
}

func (h *handed) Turn(now time.Time) (time.Time, bool) { return h.turn(h, now) }
func (h *handed) Over()                                { close(h.over) }

// handOver returns a handler that hands its responses over, and sends each to begun.
func handOver(begun chan<- *handed, turn func(h *handed, now time.Time) (time.Time, bool)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		h := &handed{w: w, turn: turn, over: make(chan struct{})}
		_, _ = io.WriteString(w, "begin\n")
		h.stream = handover.To(w, h)
		begun <- h
	}
}

// TestHandover sends events on responses that were handed over, until they are complete.
func TestHandover(t *testing.T) {
	t.Parallel()
	var events atomic.Int64
	begun := make(chan *handed, 1)
	s := serve(t, true, handOver(begun, func(h *handed, _ time.Time) (time.Time, bool) {
		n := events.Swap(0)
		for range n {
			_, _ = io.WriteString(h.w, "event\n")
		}
		return time.Time{}, n > 1
	}))
	resp, err := s.client(t).Get(s.url("/"))
	must(t, err)
	defer resp.Body.Close()
	h := <-begun
	body := bufio.NewReader(resp.Body)
	want := func(lines ...string) {
		t.Helper()
		for _, line := range lines {
			got, err := body.ReadString('\n')
			must(t, err)
			if got != line+"\n" {
				t.Errorf("line %q, expected %q", got, line)
			}
		}
	}
	want("begin")
	for range 100 {
		events.Store(1)
		h.stream.Wake()
		want("event")
	}
	events.Store(2)
	h.stream.Wake()
	want("event", "event")
	if _, err := body.ReadByte(); err != io.EOF {
		t.Errorf("the response ended with %v", err)
	}
	<-h.over
}

// TestHandoverEnds checks that Over is called once when a stream that was handed over ends before it is complete.
func TestHandoverEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		end   func(t *testing.T, r *raw, h *handed)
		reset bool // by the server
	}{
		{"the client resets it", func(t *testing.T, r *raw, _ *handed) {
			must(t, r.WriteRSTStream(1, http2.ErrCodeCancel))
		}, false},
		{"the client leaves", func(_ *testing.T, r *raw, _ *handed) { r.Close() }, false},
		{"a turn panics", func(_ *testing.T, _ *raw, h *handed) { h.stream.Wake() }, true},
		{"a deadline passes", func(t *testing.T, _ *raw, h *handed) {
			must(t, http.NewResponseController(h.w).SetWriteDeadline(time.Unix(1, 0)))
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			begun := make(chan *handed, 1)
			turned := make(chan struct{})
			first := true
			s := serve(t, true, handOver(begun, func(*handed, time.Time) (time.Time, bool) {
				if !first {
					panic(http.ErrAbortHandler)
				}
				first = false
				close(turned)
				return time.Time{}, false
			}))
			r := s.raw(t)
			r.get(t, 1)
			h := <-begun
			r.data(t, 1, len("begin\n"))
			<-turned
			c.end(t, r, h)
			<-h.over // closed twice, it would panic
			if !c.reset {
				return
			}
			for {
				f, err := r.ReadFrame()
				must(t, err)
				if f, ok := f.(*http2.RSTStreamFrame); ok && f.StreamID == 1 {
					return
				}
			}
		})
	}
}

// data reads size bytes of DATA of a stream and returns them.
func (r *raw) data(t *testing.T, id uint32, size int) (out []byte) {
	t.Helper()
	for len(out) < size {
		f, err := r.ReadFrame()
		must(t, err)
		if f, ok := f.(*http2.DataFrame); ok && f.StreamID == id {
			out = append(out, f.Data()...)
		}
	}
	return out
}

// TestHandoverToSlowClient writes frames that the client's windows hold back: they arrive whole and in order, and
// nothing more is written meanwhile.
func TestHandoverToSlowClient(t *testing.T) {
	t.Parallel()
	var frame []byte
	for i := range 10_000 {
		frame = fmt.Appendf(frame, "%010d", i)
	}
	begun := make(chan *handed, 1)
	turns := make(chan bool, 100) // whether the stream is full after a turn
	left := 5
	s := serve(t, true, handOver(begun, func(h *handed, _ time.Time) (time.Time, bool) {
		for left > 0 && !h.stream.Full() {
			_, _ = h.w.Write(frame)
			left--
		}
		turns <- h.stream.Full()
		return time.Time{}, left == 0
	}))
	r := s.raw(t)
	r.get(t, 1)
	<-begun
	got := r.data(t, 1, 65535)
	if !<-turns {
		t.Error("the stream is not full")
	}
	size := len("begin\n") + 5*len(frame)
	for len(got) < size {
		must(t, r.WriteWindowUpdate(0, 50_000)) // the stream's window remains closed
		must(t, r.WriteWindowUpdate(1, 50_000))
		got = append(got, r.data(t, 1, min(50_000, size-len(got)))...)
	}
	if want := append([]byte("begin\n"), bytes.Repeat(frame, 5)...); !bytes.Equal(got, want) {
		t.Errorf("%d bytes have changed on the way", len(got))
	}
	f, err := r.ReadFrame()
	must(t, err)
	for ; !f.Header().Flags.Has(http2.FlagDataEndStream); must(t, err) {
		f, err = r.ReadFrame()
	}
}

// TestHandoverWithFullOutput has many streams write more than the socket and the output of their connection hold.
func TestHandoverWithFullOutput(t *testing.T) {
	t.Parallel()
	const streams, each = 50, 100
	frame := bytes.Repeat([]byte("x"), 9999)
	frame = append(frame, '\n')
	begun := make(chan *handed, streams)
	var sent sync.Map
	s := serveOn(t, narrow{listen(t)}, true, handOver(begun, func(h *handed, _ time.Time) (time.Time, bool) {
		n, _ := sent.LoadOrStore(h, 0)
		for i := n.(int); i < each; i++ {
			if h.stream.Full() {
				sent.Store(h, i)
				return time.Time{}, false
			}
			_, _ = h.w.Write(frame)
		}
		return time.Time{}, true
	}))
	client := s.client(t)
	var received sync.WaitGroup
	for range streams {
		received.Go(func() {
			resp, err := client.Get(s.url("/"))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			n, err := io.Copy(io.Discard, resp.Body)
			if want := int64(len("begin\n") + each*len(frame)); n != want || err != nil {
				t.Errorf("%d bytes of %d, error %v", n, want, err)
			}
		})
	}
	received.Wait()
	for range streams {
		<-(<-begun).over
	}
}

// TestHandoverAlarm has turns at times of the handler's choice, on streams that nothing else wakes.
func TestHandoverAlarm(t *testing.T) {
	t.Parallel()
	const streams, alarms = 20, 5
	begun := make(chan *handed, streams)
	var mu sync.Mutex
	turns := map[*handed]int{}
	s := serve(t, true, handOver(begun, func(h *handed, now time.Time) (time.Time, bool) {
		mu.Lock()
		defer mu.Unlock()
		turns[h]++
		if turns[h] > alarms {
			return time.Time{}, true
		}
		return now.Add(time.Duration(len(turns)*alarms-turns[h]) * time.Millisecond), false
	}))
	client := s.client(t)
	for range streams {
		resp, err := client.Get(s.url("/"))
		must(t, err)
		defer resp.Body.Close()
	}
	for range streams {
		h := <-begun
		<-h.over
		mu.Lock()
		if n := turns[h]; n != alarms+1 {
			t.Errorf("%d turns", n)
		}
		mu.Unlock()
	}
}

// TestOneWakeUp wakes all streams of a connection during the turn of one of them: their frames are sent together.
func TestOneWakeUp(t *testing.T) {
	t.Parallel()
	const streams = 50
	begun := make(chan *handed, streams)
	var all []*handed
	var event atomic.Bool
	var sendings atomic.Int64
	before := make(chan int64, 1)
	var first sync.WaitGroup // turns
	first.Add(streams)
	s := serveSending(t, func() { sendings.Add(1) }, handOver(begun, func(h *handed, _ time.Time) (time.Time, bool) {
		if !event.Load() {
			first.Done()
			return time.Time{}, false
		}
		if h == all[0] {
			for _, other := range all[1:] {
				other.stream.Wake()
			}
			before <- sendings.Load()
			return time.Time{}, false
		}
		_, _ = io.WriteString(h.w, "event\n")
		return time.Time{}, false
	}))
	r := s.raw(t)
	for i := range streams {
		r.get(t, uint32(2*i+1))
		all = append(all, <-begun)
	}
	for i := range streams { // the responses have begun: nothing else is sent
		for {
			f, err := r.ReadFrame()
			must(t, err)
			if f, ok := f.(*http2.DataFrame); ok && f.StreamID == uint32(2*i+1) {
				break
			}
			if f, ok := f.(*http2.DataFrame); ok {
				t.Fatalf("stream %d came before %d", f.StreamID, 2*i+1)
			}
		}
	}
	first.Wait()
	event.Store(true)
	all[0].stream.Wake()
	var got []uint32
	for len(got) < streams-1 {
		f, err := r.ReadFrame()
		must(t, err)
		if f, ok := f.(*http2.DataFrame); ok {
			got = append(got, f.StreamID)
		}
	}
	if n := sendings.Load() - <-before; n != 1 {
		t.Errorf("the frames of %d streams were sent in %d pieces", len(got), n)
	}
	if slices.Sort(got); slices.Contains(got, 1) || len(slices.Compact(got)) != streams-1 {
		t.Errorf("events on streams %d", got)
	}
}

// TestNoHandover checks that the connection takes no response over without an idle body.
func TestNoHandover(t *testing.T) {
	t.Parallel()
	for _, direct := range []bool{false, true} {
		for _, c := range []struct {
			name, method string
			body         io.Reader
			header       [2]string
			status       int
			taken        bool // by our server
		}{
			{"a response", "GET", nil, [2]string{"A", "b"}, 200, true},
			{"a response to HEAD", "HEAD", nil, [2]string{"A", "b"}, 200, false},
			{"a response of known length", "GET", nil, [2]string{"Content-Length", "100"}, 200, false},
			{"a response with trailers", "GET", nil, [2]string{"Trailer", "Sum"}, 200, false},
			{"no content", "GET", nil, [2]string{"A", "b"}, 204, false},
			{"an unread request", "POST", newEndless(), [2]string{"A", "b"}, 200, false},
		} {
			t.Run(fmt.Sprintf("%s, direct %t", c.name, direct), func(t *testing.T) {
				t.Parallel()
				taken := make(chan bool, 1)
				s := serve(t, direct, func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set(c.header[0], c.header[1])
					w.WriteHeader(c.status)
					h := &handed{over: make(chan struct{}), turn: func(*handed, time.Time) (time.Time, bool) {
						return time.Time{}, true
					}}
					taken <- handover.To(w, h) != nil
				})
				req, err := http.NewRequest(c.method, s.url("/"), c.body)
				must(t, err)
				if resp, err := s.client(t).Do(req); err == nil {
					resp.Body.Close()
				}
				if got := <-taken; got != (c.taken && direct) {
					t.Errorf("taken over: %t", got)
				}
			})
		}
	}
}

// newEndless returns a body without an end.
func newEndless() io.Reader {
	r, _ := io.Pipe()
	return r
}
