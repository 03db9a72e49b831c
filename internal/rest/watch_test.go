package rest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/request"
)

// watching is the client's end of a watch.
type watching struct {
	t      *testing.T
	frames *json.Decoder
	stop   func()
	writes *atomic.Int64
}

// piped is an http.ResponseWriter with a body that a test reads at the same time.
type piped struct {
	header http.Header
	*io.PipeWriter
	writes atomic.Int64
	begin  func() // called when the response begins
}

func (p *piped) Header() http.Header { return p.header }
func (p *piped) WriteHeader(int)     { p.begin() }
func (p *piped) Flush()              {}
func (p *piped) Write(b []byte) (int, error) {
	p.writes.Add(1)
	return p.PipeWriter.Write(b)
}

// watch starts a watch. Writes after it returns cause events.
func watch(t *testing.T, s *server, target string, accept ...string) *watching {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	for _, a := range accept {
		r.Header.Set("Accept", a)
	}
	info, err := request.Parse(r)
	if err != nil {
		t.Fatal(err)
	}
	read, write := io.Pipe()
	begun, ended := make(chan struct{}), make(chan struct{})
	w := &piped{header: http.Header{}, PipeWriter: write, begin: sync.OnceFunc(func() { close(begun) })}
	go func() {
		defer close(ended)
		defer w.begin() // even if nothing was written
		s.ServeHTTP(w, r, info, admin)
		write.Close()
	}()
	out := &watching{t: t, frames: json.NewDecoder(bufio.NewReader(read)), writes: &w.writes}
	out.stop = func() {
		cancel()
		read.Close()
		<-ended
	}
	t.Cleanup(out.stop)
	<-begun
	return out
}

type frame struct {
	Type   string
	Object struct {
		metav1.TypeMeta
		Metadata          metav1.ObjectMeta
		Spec              struct{ Bucket string }
		ColumnDefinitions []any
		Rows              []struct {
			Object struct{ Metadata metav1.ObjectMeta }
		}
		Code    int
		Message string
	}
}

func (w *watching) next() frame {
	w.t.Helper()
	var f frame
	if err := w.frames.Decode(&f); err != nil {
		w.t.Fatalf("watch: %v", err)
	}
	return f
}

// want reads the given events: "TYPE name bucket".
func (w *watching) want(events ...string) {
	w.t.Helper()
	var got []string
	for range events {
		f := w.next()
		got = append(got, strings.TrimSpace(f.Type+" "+f.Object.Metadata.Name+" "+f.Object.Spec.Bucket))
	}
	if !slices.Equal(got, events) {
		w.t.Errorf("events %q\nwant   %q", got, events)
	}
}

func widget(name, bucket string) string {
	return fmt.Sprintf(
		`{"apiVersion":"a.example.com/v1","kind":"Widget","metadata":{"name":%q,"labels":{"b":%q}},"spec":{"bucket":%q}}`, name, bucket, bucket)
}

// TestWatchSelectors moves objects into a selection, changes them there and moves them out.
func TestWatchSelectors(t *testing.T) {
	t.Parallel()
	s := start(t)
	defineWidgets(t, s)
	from := "&resourceVersion=" + fmt.Sprint(s.View().Revision())
	in := widgetsIn("default")
	bucket := watch(t, s, widgets+"?watch=1&fieldSelector=spec.bucket%3Db1"+from)
	label := watch(t, s, widgets+"?watch=1&labelSelector=b%3Db1"+from)
	same := watch(t, s, in+"?watch=1&fieldSelector=spec.bucket%3Db1"+from)
	not := watch(t, s, in+"?watch=1&fieldSelector=spec.bucket!%3Db1"+from)
	name := watch(t, s, in+"?watch=1&fieldSelector=metadata.name%3Dy"+from)
	both := watch(t, s, in+"?watch=1&fieldSelector=metadata.name%3Dy,spec.bucket%3Db1"+from)
	all := watch(t, s, widgets+"?watch=1"+from)
	old := watch(t, s, "/apis/a.example.com/v1/watch/namespaces/default/widgets/y?x=1"+from)
	other := watch(t, s, widgetsIn("other")+"?watch=1"+from)

	send(t, s, http.MethodPost, in, widget("x", "b1"), nil)
	send(t, s, http.MethodPost, in, widget("y", "b2"), nil)
	send(t, s, http.MethodPatch, in+"/x", `{"metadata":{"annotations":{"a":"b"}}}`, nil)
	send(t, s, http.MethodPatch, in+"/x", `{"metadata":{"labels":{"b":"b2"}},"spec":{"bucket":"b2"}}`, nil)
	send(t, s, http.MethodPatch, in+"/y", `{"metadata":{"labels":{"b":"b1"}},"spec":{"bucket":"b1"}}`, nil)
	send(t, s, http.MethodDelete, in+"/y", "", nil)
	send(t, s, http.MethodDelete, in+"/x", "", nil)
	send(t, s, http.MethodPost, "/api/v1/namespaces",
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"other"}}`, nil)
	send(t, s, http.MethodPost, widgetsIn("other"), widget("z", "b3"), nil)

	for _, w := range []*watching{bucket, label, same} {
		w.want("ADDED x b1", "MODIFIED x b1", "DELETED x b1", "ADDED y b1", "DELETED y b1")
	}
	not.want("ADDED y b2", "ADDED x b2", "DELETED y b2", "DELETED x b2")
	name.want("ADDED y b2", "MODIFIED y b1", "DELETED y b1")
	old.want("ADDED y b2", "MODIFIED y b1", "DELETED y b1")
	both.want("ADDED y b1", "DELETED y b1")
	all.want("ADDED x b1", "ADDED y b2", "MODIFIED x b1", "MODIFIED x b2", "MODIFIED y b1", "DELETED y b1",
		"DELETED x b2", "ADDED z b3")
	other.want("ADDED z b3")
}

// TestWatchList requests the initial state: with sendInitialEvents, in the old way, or not at all.
func TestWatchList(t *testing.T) {
	t.Parallel()
	s := start(t)
	defineWidgets(t, s)
	in := widgetsIn("default")
	for i := range 3 {
		send(t, s, http.MethodPost, in, widget(fmt.Sprint("x", i), "b1"), nil)
	}
	var l list
	send(t, s, http.MethodGet, in, "", &l)
	const named = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
	for _, query := range []string{named, named + "&resourceVersion=0", named + "&resourceVersion=" +
		l.Metadata.ResourceVersion} {
		w := watch(t, s, in+"?watch=1"+query)
		w.want("ADDED x0 b1", "ADDED x1 b1", "ADDED x2 b1")
		f := w.next()
		if f.Type != "BOOKMARK" || f.Object.Metadata.Annotations[metav1.InitialEventsAnnotationKey] != "true" ||
			revision(t, f.Object.Metadata.ResourceVersion) < revision(t, l.Metadata.ResourceVersion) ||
			f.Object.Kind != "Widget" {
			t.Errorf("%s: the end of the initial events is %+v", query, f)
		}
		if n := w.writes.Load(); n != 1 {
			t.Errorf("%s: the initial events took %d writes", query, n)
		}
		w.stop()
	}
	unnamed := watch(t, s, in+"?watch=1")
	unnamed.want("ADDED x0 b1", "ADDED x1 b1", "ADDED x2 b1")
	selected := watch(t, s, in+"?watch=1&fieldSelector=metadata.name%3Dx1"+named)
	selected.want("ADDED x1 b1", "BOOKMARK")
	none := watch(t, s, in+"?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan")
	send(t, s, http.MethodPost, in, widget("later", "b2"), nil)
	unnamed.want("ADDED later b2")
	none.want("ADDED later b2")
	for query, want := range map[string]string{
		"sendInitialEvents=true":           "sendInitialEvents",
		"resourceVersionMatch=Exact":       "resourceVersionMatch",
		named[1:] + "&continue=x":          "continue",
		"sendInitialEvents=x":              "sendInitialEvents",
		"timeoutSeconds=1&fieldSelector=x": "fieldSelector",
	} {
		if w := ask(t, s, http.MethodGet, in+"?watch=1&"+query, ""); w.Code/100 != 4 ||
			!strings.Contains(w.Body.String(), want) && want != "fieldSelector" {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
}

// TestWatchTable checks that only the first frame has columns, and that the frames of rows are shared.
func TestWatchTable(t *testing.T) {
	t.Parallel()
	s := start(t)
	defineWidgets(t, s)
	in := widgetsIn("default")
	const asTable = "application/json;as=Table;v=v1;g=meta.k8s.io"
	a, b := watch(t, s, in+"?watch=1", asTable), watch(t, s, in+"?watch=1", asTable)
	for i := range 3 {
		send(t, s, http.MethodPost, in, widget(fmt.Sprint("x", i), "b1"), nil)
		for _, w := range []*watching{a, b} {
			f := w.next()
			if f.Object.Kind != "Table" || len(f.Object.Rows) != 1 ||
				f.Object.Rows[0].Object.Metadata.Name != fmt.Sprint("x", i) ||
				len(f.Object.ColumnDefinitions) > 0 != (i == 0) {
				t.Errorf("frame %d: %+v", i, f)
			}
		}
	}
}

// TestWatchEnds covers the end of a watch: at its timeout, or at once for an invalid revision.
func TestWatchEnds(t *testing.T) {
	t.Parallel()
	s := start(t)
	defineWidgets(t, s)
	in := widgetsIn("default")
	// The definition was written at some revision; no event of widgets precedes the first widget.
	timed := watch(t, s, in+"?watch=1&timeoutSeconds=1&allowWatchBookmarks=true&resourceVersion="+
		fmt.Sprint(s.View().Revision()))
	send(t, s, http.MethodPost, "/api/v1/namespaces",
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"other"}}`, nil)
	f := timed.next()
	if f.Type != "BOOKMARK" || f.Object.Metadata.ResourceVersion == "" {
		t.Errorf("at the end of its time: %+v", f)
	}
	if err := timed.frames.Decode(&f); err != io.EOF {
		t.Errorf("after the last bookmark: %v %+v", err, f)
	}
	w := ask(t, s, http.MethodGet, in+"?watch=1&timeoutSeconds=-1", "")
	if w.Code != http.StatusOK || w.Body.Len() > 0 {
		t.Errorf("over before it begins: %d %s", w.Code, w.Body)
	}
	// as kube has it
	if w := ask(t, s, http.MethodGet, in+"?watch=1&resourceVersion=abc", ""); w.Code != http.StatusInternalServerError {
		t.Errorf("revision abc: %d %s", w.Code, w.Body)
	}
}

// unread is an http.ResponseWriter with a client that does not read: a write waits for the deadline.
type unread struct {
	http.ResponseWriter
	writes, given chan struct{}
}

func (u *unread) Write([]byte) (int, error) {
	u.writes <- struct{}{}
	<-u.given
	return 0, os.ErrDeadlineExceeded
}

func (u *unread) SetWriteDeadline(at time.Time) error {
	if !at.IsZero() {
		close(u.given)
	}
	return nil
}

// TestWatchOfLostKindEnds deletes a definition during a watch with a client that does not read.
func TestWatchOfLostKindEnds(t *testing.T) {
	t.Parallel()
	s := start(t)
	defineWidgets(t, s)
	in := widgetsIn("default")
	send(t, s, http.MethodPost, in, widget("a", "red"), nil)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, in+"?watch=1", nil)
	info, err := request.Parse(r)
	if err != nil {
		t.Fatal(err)
	}
	w := &unread{httptest.NewRecorder(), make(chan struct{}, 1), make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.ServeHTTP(w, r, info, admin)
	}()
	<-w.writes
	send(t, s, http.MethodDelete, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.a.example.com", "",
		nil)
	<-w.given
	<-ended
}

func revision(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
