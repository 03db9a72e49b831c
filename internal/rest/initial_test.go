package rest_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unsafe"

	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/request"
)

// parts records the memory addresses of written slices.
type parts struct {
	*httptest.ResponseRecorder
	large []*byte // the beginnings of writes of more than 100 KiB
}

func (p *parts) Write(b []byte) (int, error) {
	if len(b) > 100<<10 {
		p.large = append(p.large, unsafe.SliceData(b))
	}
	return p.ResponseRecorder.Write(b)
}

// TestInitialEventsAreShared checks that the initial events of watches are written from the same bytes. So many watches
// with clients that do not read hold one copy of a large object, not one each.
func TestInitialEventsAreShared(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, name := range []string{"a", "b"} {
		send(t, s, http.MethodPost, "/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"`+name+
			`"},"data":{"x":"`+strings.Repeat("x", 200<<10)+`"}}`, nil)
	}
	send(t, s, http.MethodGet, "/api/v1/namespaces/default/configmaps", "", nil) // waits until the view has the objects
	over, cancel := context.WithCancel(t.Context())
	cancel() // the initial events are written anyway
	for _, accept := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		var first []*byte
		for range 2 {
			r := httptest.NewRequest(http.MethodGet, "/api/v1/namespaces/default/configmaps?watch=1&resourceVersion=0",
				nil)
			r.Header.Set("Accept", accept)
			info, err := request.Parse(r)
			if err != nil {
				t.Fatal(err)
			}
			w := &parts{ResponseRecorder: httptest.NewRecorder()}
			s.ServeHTTP(w, r.WithContext(over), info, admin)
			if len(w.large) != 2 {
				t.Fatalf("%s: %d large writes: %.200s", accept, len(w.large), w.Body)
			}
			if first == nil {
				first = w.large
			}
			if first[0] != w.large[0] || first[1] != w.large[1] {
				t.Errorf("%s: the second watch has a copy of its own", accept)
			}
		}
	}
}

// TestInitialEventsAreDocuments: an initial event has the object as a GET returns it, in each form.
func TestInitialEventsAreDocuments(t *testing.T) {
	t.Parallel()
	s := start(t)
	send(t, s, http.MethodPost, "/api/v1/namespaces/default/configmaps",
		`{"metadata":{"name":"a"},"data":{"x":"<&>\u2028"}}`, nil)
	over, cancel := context.WithCancel(codec.WithCBOR(t.Context()))
	cancel()
	for _, accept := range []string{codec.JSON, codec.Protobuf, codec.CBOR} {
		get := func(ctx context.Context, target string) []byte {
			r := httptest.NewRequest(http.MethodGet, target, nil).WithContext(ctx)
			r.Header.Set("Accept", accept)
			info, err := request.Parse(r)
			if err != nil {
				t.Fatal(err)
			}
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r, info, admin)
			return w.Body.Bytes()
		}
		object := get(codec.WithCBOR(t.Context()), "/api/v1/namespaces/default/configmaps/a")
		want := codec.WatchFrame(codec.Media{Type: accept}, "ADDED", bytes.TrimSuffix(object, []byte("\n")))
		if got := get(over,
			"/api/v1/namespaces/default/configmaps?watch=1&resourceVersion=0&fieldSelector=metadata.name=a"); !bytes.Equal(got, want) {
			t.Errorf("%s:\n%q, want\n%q", accept, got, want)
		}
	}
}
