package rest_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/request/handover"
)

// connection is an http.ResponseWriter that takes responses over, unless alone is set. A test gives it turns.
type connection struct {
	*httptest.ResponseRecorder
	alone bool
	begun func() // called when the response begins
	slow  *rand.Rand

	rest     handover.Rest
	woken    chan struct{}
	full     bool
	deadline time.Time
}

func (c *connection) WriteHeader(code int) {
	c.ResponseRecorder.WriteHeader(code)
	c.begun()
}

func (c *connection) Write(p []byte) (int, error) {
	c.full = c.full || c.slow != nil && c.slow.IntN(3) == 0
	return c.ResponseRecorder.Write(p)
}

func (c *connection) SetWriteDeadline(at time.Time) error {
	c.deadline = at
	return nil
}

func (c *connection) TakeOver(rest handover.Rest) handover.Stream {
	if c.alone {
		return nil
	}
	c.rest = rest
	return c
}

func (c *connection) Full() bool { return c.full }

func (c *connection) Wake() {
	select {
	case c.woken <- struct{}{}:
	default:
	}
}

// serve runs the handler of a watch, until it returns. It calls begun when the response begins.
func serve(ctx context.Context, t *testing.T, s *server, c *connection, target, accept string, begun func()) {
	t.Helper()
	c.ResponseRecorder, c.woken, c.begun = httptest.NewRecorder(), make(chan struct{}, 1), sync.OnceFunc(begun)
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	r.Header.Set("Accept", accept)
	info, err := request.Parse(r)
	if err != nil {
		t.Error(err)
		return
	}
	s.ServeHTTP(c, r, info, admin)
}

// carry gives the watch turns until it is complete.
func (c *connection) carry() {
	for complete := false; !complete || c.full; {
		if !c.full {
			<-c.woken
		}
		c.full = false // the client has read
		if !complete {
			_, complete = c.rest.Turn(time.Now())
		}
	}
	c.rest.Over()
}

// TestCarriedWatches compares watches that the connection carries with watches of a handler, in each form, with clients
// that do not read now and then.
func TestCarriedWatches(t *testing.T) {
	t.Parallel()
	s := start(t)
	defineWidgets(t, s)
	const objects, writes = 10, 300
	maps, in := "/api/v1/namespaces/default/configmaps", widgetsIn("default")
	age := regexp.MustCompile(`"\d+s"`)
	ctx, cancel := context.WithCancel(t.Context())
	type pair struct {
		name   string
		carry  *connection
		handle *connection
	}
	var pairs []pair
	var running sync.WaitGroup
	options := "watch=1&allowWatchBookmarks=true"
	from := options + "&resourceVersion=" + fmt.Sprint(s.View().Revision())
	const table = "application/json;as=Table;g=meta.k8s.io;v=v1"
	for _, c := range []struct{ target, accept string }{
		{widgets + "?" + from, "application/json"},
		{in + "?" + from, "application/json"},
		{in + "?" + options + "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", "application/json"},
		{in + "?" + from + "&labelSelector=b%3Db1", "application/json"},
		{in + "?" + from + "&fieldSelector=spec.bucket%3Db1", "application/json"},
		{in + "?" + from + "&fieldSelector=metadata.name%3Dw3", "application/json"},
		{in + "?" + from, table},
		{in + "?" + from, "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"},
		{maps + "?" + from, "application/vnd.kubernetes.protobuf"},
		{maps + "?" + from, "application/json"},
	} {
		p := pair{name: c.target + " as " + c.accept, carry: &connection{}, handle: &connection{alone: true}}
		p.carry.slow = rand.New(rand.NewPCG(uint64(len(pairs)), 4))
		pairs = append(pairs, p)
		serve(ctx, t, s, p.carry, c.target, c.accept, func() {})
		if p.carry.rest == nil {
			t.Fatalf("%s was not handed over", p.name)
		}
		running.Go(p.carry.carry)
		p.carry.Wake() // the first turn
		var begun sync.WaitGroup
		begun.Add(1)
		running.Go(func() { serve(ctx, t, s, p.handle, c.target, c.accept, begun.Done) })
		begun.Wait()
	}
	r := rand.New(rand.NewPCG(7, 8))
	for range writes {
		i, bucket := r.IntN(objects), fmt.Sprintf("b%d", r.IntN(3))
		object, text := fmt.Sprintf("%s/w%d", in, i), widget(fmt.Sprintf("w%d", i), bucket)
		if r.IntN(2) == 0 {
			object, text = fmt.Sprintf("%s/w%d", maps, i), fmt.Sprintf(
				`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"w%d"},"data":{"b":%q}}`, i, bucket)
		}
		if r.IntN(5) == 0 {
			perform(t, s, "DELETE", object, "")
			continue
		}
		perform(t, s, "APPLY", object+"?fieldManager=me&force=true", text)
	}
	if _, err := s.View().Fresh(ctx); err != nil {
		t.Fatal(err)
	}
	cancel()
	running.Wait()
	for _, p := range pairs {
		got, want := age.ReplaceAll(p.carry.Body.Bytes(), nil), age.ReplaceAll(p.handle.Body.Bytes(), nil)
		if len(want) < 500 {
			t.Errorf("%s: the handler has sent only %q", p.name, want)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: the watches differ\n%.2000q\n%.2000q", p.name, got, want)
		}
	}
}

// TestCarriedTimes gives a carried watch turns at the times that it returns: its bookmarks, and its end.
func TestCarriedTimes(t *testing.T) {
	t.Parallel()
	s := start(t)
	defineWidgets(t, s)
	for _, bookmarks := range []bool{false, true} {
		c := &connection{}
		serve(t.Context(), t, s, c, fmt.Sprintf("%s?watch=1&resourceVersion=%d&timeoutSeconds=150&allowWatchBookmarks=%t",
			widgets, s.View().Revision(), bookmarks), "application/json", func() {})
		began := time.Now()
		var waits []time.Duration // in seconds
		now, complete := began, false
		for !complete {
			var next time.Time
			next, complete = c.rest.Turn(now)
			if next.IsZero() {
				break
			}
			waits = append(waits, next.Sub(now).Round(10*time.Second))
			now = next
		}
		c.rest.Over()
		want, marks := "[2m30s]", 0
		if bookmarks {
			want, marks = "[1m0s 1m0s 30s]", 2
		}
		if got := fmt.Sprint(waits); got != want || !complete {
			t.Errorf("bookmarks %t: the turns are %s apart, expected %s; complete: %t", bookmarks, got, want, complete)
		}
		if n := strings.Count(c.Body.String(), `"BOOKMARK"`); n != marks {
			t.Errorf("%d bookmarks of %d", n, marks)
		}
	}
}

// TestCarriedEnds ends carried watches of clients that do not read.
func TestCarriedEnds(t *testing.T) {
	t.Parallel()
	s := start(t)
	defineWidgets(t, s)
	for _, of := range []struct {
		name string
		end  func(cancel func())
	}{
		{"the request ends", func(cancel func()) { cancel() }},
		{"the kind is no longer served", func(func()) {
			const definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.a.example.com"
			send(t, s, http.MethodDelete, definition, "", nil)
		}},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		c := &connection{}
		serve(ctx, t, s, c, widgets+"?watch=1", "application/json", func() {})
		if _, complete := c.rest.Turn(time.Now()); complete {
			t.Errorf("%s: the watch is complete at first", of.name)
		}
		for len(c.woken) > 0 {
			<-c.woken
		}
		c.full = true
		of.end(cancel)
		<-c.woken
		now := time.Now()
		if _, complete := c.rest.Turn(now); complete || c.deadline.Sub(now) != 5*time.Second {
			t.Errorf("%s: complete %t, the client has until %s", of.name, complete, c.deadline)
		}
		c.full = false
		if _, complete := c.rest.Turn(now); !complete {
			t.Errorf("%s: the watch is not complete", of.name)
		}
		c.rest.Over()
		cancel()
	}
}
