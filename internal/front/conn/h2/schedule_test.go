package h2_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// schedule is a sequence of frames of a client, and the effects that it has seen.
type schedule struct {
	*raw
	t       *testing.T
	random  *rand.Rand
	block   bytes.Buffer
	encoder *hpack.Encoder
	next    uint32            // the next stream
	open    map[uint32]bool   // requests without their end
	answers map[uint32]string // of complete streams
	parts   map[uint32]*answer
	end     string // why the connection has ended
	log     []string
}

// handle answers as the path demands.
func handle(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	switch r.URL.Path {
	case "/large":
		_, _ = w.Write(bytes.Repeat([]byte("x"), 100_000))
	case "/empty":
		w.WriteHeader(http.StatusNoContent)
	case "/trailers":
		w.Header().Set("Trailer", "Sum")
		_, _ = w.Write(body)
		w.Header().Set("Sum", strconv.Itoa(len(body)))
	default:
		w.Header().Set("Seen",
			fmt.Sprint(r.Method, r.Host, r.URL, r.ContentLength, r.Header["A"], r.Header["Cookie"], r.Trailer))
		_, _ = w.Write(body)
	}
}

// TestSchedules plays random sequences of frames, right and wrong, to our server and to Go's. Each stream gets the same
// response or the same reset, and the connection ends with the same code. H2_SCHEDULES is the number of sequences.
func TestSchedules(t *testing.T) {
	t.Parallel()
	ours, gos := serve(t, true, handle), serve(t, false, handle)
	count := uint64(100)
	if n, err := strconv.ParseUint(os.Getenv("H2_SCHEDULES"), 10, 32); err == nil {
		count = n
	}
	for seed := range count {
		got, gotLog := play(t, ours, seed)
		want, _ := play(t, gos, seed)
		if got != want {
			t.Errorf("seed %d:\n%s\nours:\n%sGo's:\n%s", seed, strings.Join(gotLog, "\n"), got, want)
			return
		}
	}
}

// play returns the effects of the schedule of a seed.
func play(t *testing.T, server *server, seed uint64) (effects string, log []string) {
	s := &schedule{
		t: t, random: rand.New(rand.NewPCG(seed, 0)), next: 1, open: map[uint32]bool{}, answers: map[uint32]string{},
		parts: map[uint32]*answer{},
	}
	window := 1000 + uint32(s.random.IntN(3))*40_000
	s.raw = server.raw(t, http2.Setting{ID: http2.SettingInitialWindowSize, Val: window})
	defer s.Close()
	s.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	s.encoder = hpack.NewEncoder(&s.block)
	must(t, s.WriteWindowUpdate(0, 1<<30))
	for range 1 + s.random.IntN(12) {
		s.step()
		if s.end != "" {
			break
		}
	}
	s.finish()
	var text strings.Builder
	for _, id := range slices.Sorted(maps.Keys(s.answers)) {
		fmt.Fprintf(&text, "%d: %s\n", id, s.answers[id])
	}
	return text.String() + "end: " + s.end + "\n", s.log
}

// request sends HEADERS with fields behind the usual ones. A field "-:path" leaves the usual one out.
func (s *schedule) request(last bool, path string, fields ...string) uint32 {
	s.block.Reset()
	for i, pseudo := range []string{":method", "POST", ":scheme", "https", ":authority", "example.com", ":path", path} {
		if i%2 == 0 && !slices.Contains(fields, "-"+pseudo) {
			_ = s.encoder.WriteField(hpack.HeaderField{
				Name: pseudo, Value: []string{"POST", "https", "example.com", path}[i/2],
			})
		}
	}
	for i := 0; i+1 < len(fields); i += 2 {
		if !strings.HasPrefix(fields[i], "-") {
			_ = s.encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
		}
	}
	id := s.next
	s.next += 2
	s.log = append(s.log, fmt.Sprint("HEADERS ", id, path, fields, last))
	block := s.block.Bytes()
	cut := len(block)
	if s.random.IntN(4) == 0 {
		cut = s.random.IntN(len(block))
	}
	must(s.t, s.WriteHeaders(http2.HeadersFrameParam{
		StreamID: id, BlockFragment: block[:cut], EndStream: last, EndHeaders: cut == len(block),
	}))
	if cut < len(block) {
		must(s.t, s.WriteContinuation(id, true, block[cut:]))
	}
	if !last {
		s.open[id] = true
	}
	return id
}

// step sends the frames of one act.
func (s *schedule) step() {
	path := []string{"/", "/large", "/empty", "/trailers", "/?q=%20"}[s.random.IntN(5)]
	switch s.random.IntN(16) {
	case 0, 1, 2:
		s.await(s.request(true, path, "a", "1", "a", "2", "cookie", "x=1", "cookie", "y=2"))
	case 3, 4, 5:
		size := s.random.IntN(5) * 9000
		id := s.request(false, path, "content-length", strconv.Itoa(size))
		for sent := 0; sent < size || size == 0; {
			n := min(size-sent, 1+s.random.IntN(12_000))
			sent += n
			must(s.t, s.WriteDataPadded(id, sent == size, make([]byte, n), make([]byte, s.random.IntN(3))))
			if size == 0 {
				break
			}
		}
		delete(s.open, id)
		s.await(id)
	case 6:
		id := s.request(false, "/", "trailer", "sum, other")
		must(s.t, s.WriteData(id, false, []byte("hello")))
		s.block.Reset()
		_ = s.encoder.WriteField(hpack.HeaderField{Name: "sum", Value: "5"})
		_ = s.encoder.WriteField(hpack.HeaderField{Name: "unannounced", Value: "5"})
		must(s.t, s.WriteHeaders(http2.HeadersFrameParam{
			StreamID: id, BlockFragment: s.block.Bytes(), EndStream: true, EndHeaders: true,
		}))
		delete(s.open, id)
		s.await(id)
	case 7:
		s.request(false, path) // its body follows at the end
	case 8:
		id := s.request(false, path)
		must(s.t, s.WriteRSTStream(id, http2.ErrCodeCancel))
		delete(s.open, id)
	case 9:
		s.malformed()
	case 10:
		must(s.t, s.WritePing(false, [8]byte{1, 2, 3}))
	case 11:
		must(s.t, s.WriteSettings(
			http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1000 + uint32(s.random.IntN(100_000))},
			http2.Setting{ID: http2.SettingHeaderTableSize, Val: uint32(s.random.IntN(8192))}))
	case 12:
		kind, id := http2.FrameType(20+s.random.IntN(200)), uint32(s.random.IntN(9))
		must(s.t, s.WriteRawFrame(kind, 0xff, id, make([]byte, 30)))
	case 13:
		must(s.t, s.WritePriority(s.next+100, http2.PriorityParam{StreamDep: 1, Weight: 7}))
	case 14:
		s.await(s.request(true, path, "te", "trailers"))
	default:
		if s.random.IntN(3) == 0 {
			s.violate()
		}
	}
}

// malformed sends a request that is a stream error, or a 400.
func (s *schedule) malformed() {
	fields := [][]string{
		{"Upper", "1"}, {"connection", "close"}, {"te", "gzip"}, {"-:path", ""}, {"-:method", ""}, {"-:scheme", ""},
		{":unknown", "1"}, {"a", "1", ":path", "/"}, {"host", "other.example.com"}, {"host", "example.com"},
		{"transfer-encoding", "chunked"}, {"a", "line\nbreak"}, {"-:authority", "", "host", "example.com"},
		{"-:authority", "", "host", "us@er"}, {":protocol", "websocket"}, {":path", "/"},
	}[s.random.IntN(16)]
	s.read(s.request(true, "/", fields...)) // Go's server takes an update of this stream's window for a violation
}

// violate sends a frame that ends the connection, in most cases.
func (s *schedule) violate() {
	for id := range s.open { // responses that are under way could be lost or not
		delete(s.open, id)
		must(s.t, s.WriteRSTStream(id, http2.ErrCodeCancel))
	}
	which := s.random.IntN(13)
	s.log = append(s.log, fmt.Sprint("violation ", which))
	must(s.t, []func() error{
		func() error { return s.WriteData(s.next, true, []byte("idle")) },
		func() error { return s.WriteData(0, true, []byte("none")) },
		func() error { return s.WriteRSTStream(s.next, http2.ErrCodeCancel) },
		func() error { return s.WriteWindowUpdate(s.next, 1) },
		func() error { return s.WriteWindowUpdate(0, 0) },
		func() error { return s.WriteWindowUpdate(0, 1<<31-1) },
		func() error { return s.WriteRawFrame(http2.FramePing, 0, 0, []byte("short")) },
		func() error { return s.WriteRawFrame(http2.FrameSettings, 0, 0, []byte("odd")) },
		func() error { return s.WriteRawFrame(http2.FramePushPromise, 4, 1, make([]byte, 8)) },
		func() error { return s.WriteContinuation(s.next, true, nil) },
		func() error { return s.WriteSettings(http2.Setting{ID: http2.SettingEnablePush, Val: 2}) },
		func() error { return s.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 31}) },
		func() error {
			return s.WriteHeaders(http2.HeadersFrameParam{StreamID: 2, EndHeaders: true, EndStream: true})
		},
	}[which]())
	s.read(0)
}

// finish ends the open requests and waits for all responses.
func (s *schedule) finish() {
	if s.end != "" {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(s.open)) {
		must(s.t, s.WriteData(id, true, []byte("rest")))
		s.await(id)
	}
}

// await lets the server send on a stream, and reads frames until the stream has ended, or the connection.
func (s *schedule) await(id uint32) {
	must(s.t, s.WriteWindowUpdate(id, 1<<20))
	s.read(id)
}

// read reads frames until the stream has ended, or the connection; 0 waits for the connection.
func (s *schedule) read(id uint32) {
	for s.end == "" && (id == 0 || s.answers[id] == "") {
		f, err := s.ReadFrame()
		if err != nil {
			s.end = "closed"
			return
		}
		s.receive(f)
	}
}

// receive records the effect of a frame.
func (s *schedule) receive(f http2.Frame) {
	id := f.Header().StreamID
	a := s.parts[id]
	if a == nil {
		a = &answer{}
		s.parts[id] = a
	}
	ended := false
	switch f := f.(type) {
	case *http2.MetaHeadersFrame:
		fields := slices.DeleteFunc(f.Fields, func(f hpack.HeaderField) bool { return f.Name == "date" })
		slices.SortFunc(fields, func(a, b hpack.HeaderField) int {
			return strings.Compare(a.Name+a.Value, b.Name+b.Value)
		})
		for _, field := range fields {
			a.fields += field.Name + ": " + field.Value + "; "
		}
		ended = f.StreamEnded()
	case *http2.DataFrame:
		a.size += len(f.Data()) // frames may be cut anywhere
		ended = f.StreamEnded()
	case *http2.RSTStreamFrame:
		a.reset = f.ErrCode.String()
		ended = true
	case *http2.GoAwayFrame:
		s.end = f.ErrCode.String()
	}
	if ended {
		s.answers[id] = fmt.Sprintf("%s%d bytes %s", a.fields, a.size, a.reset)
		if strings.Contains(a.fields, ": 400;") {
			s.answers[id] = "400" // the texts differ
		}
	}
}

// answer is the response to a request so far.
type answer struct {
	fields, reset string
	size          int
}
