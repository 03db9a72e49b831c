package behind

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
	"github.com/bowsprit/bowsprit/internal/testing/parttest"
)

// fake is a host API server with one collection at every path.
type fake struct {
	events  chan string // of the current watch; "" ends it
	watched chan string // start revisions of watches

	mu    sync.Mutex
	items map[string]string // JSON, by name
	fails int               // HTTP status of every response; 0 means no failure
}

// host starts the fake and returns a Host for it.
func (f *fake) host(t *testing.T) *Host {
	t.Helper()
	f.events, f.watched = make(chan string), make(chan string, 10)
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	h, err := New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (f *fake) set(change func(f *fake)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	fails, items := f.fails, make([]string, 0, len(f.items))
	for _, item := range f.items {
		items = append(items, item)
	}
	one := f.items[r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]]
	f.mu.Unlock()
	switch {
	case fails != 0:
		w.WriteHeader(fails)
		reason := map[int]string{404: "NotFound", 503: "ServiceUnavailable"}[fails]
		_, _ = fmt.Fprintf(w, `{"kind":"Status","message":"no","reason":%q,"code":%d}`, reason, fails)
	case r.URL.Query().Get("watch") != "":
		f.watched <- r.URL.Query().Get("resourceVersion")
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case event := <-f.events:
				if event == "" {
					return
				}
				_, _ = io.WriteString(w, event)
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	case one != "":
		_, _ = io.WriteString(w, one)
	case strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/"):
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind":"Status","message":"none","reason":"NotFound","code":404}`)
	default:
		_, _ = fmt.Fprintf(w, `{"metadata":{"resourceVersion":"7"},"items":[%s]}`, strings.Join(items, ","))
	}
}

func namespace(name, revision string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"resourceVersion":%q,"managedFields":[]}}`, name, revision)
}

func server(t *testing.T) *parttest.Server {
	t.Helper()
	return parttest.Start(t, parttest.OpenStore(t, store.Config{Etcd: memory.New()}))
}

// until waits for something.
func until(t *testing.T, desc string, is func() bool) {
	t.Helper()
	limit := time.After(2 * time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal(desc)
		}
	}
}

func stored(s *parttest.Server, name string) bool {
	_, err := s.Store.Get(s.Context(), "namespaces/"+name)
	return err == nil
}

// follow mirrors namespaces until the test ends.
func follow(t *testing.T, h *Host, s *parttest.Server) *mirror {
	t.Helper()
	m := h.mirrors[0]
	m.own = s.Host
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return m
}

// TestMirror checks that existing, changed and deleted objects are mirrored, that an ended watch is resumed, and that a
// failed one leads to a list.
func TestMirror(t *testing.T) {
	t.Parallel()
	s := server(t)
	if _, err := s.Store.Create(t.Context(), "namespaces/stale", []byte(namespace("stale", "1"))); err != nil {
		t.Fatal(err)
	}
	s.CatchUp()
	f := &fake{items: map[string]string{"a": namespace("a", "5"), "b": namespace("b", "7")}}
	m := follow(t, f.host(t), s)
	if err := m.wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !stored(s, "a") || !stored(s, "b") || stored(s, "stale") {
		t.Error("the copies are not what is there")
	}
	copied, err := s.Store.Get(t.Context(), "namespaces/a")
	if err != nil || !strings.Contains(string(copied.Value), `"kind":"Namespace"`) ||
		strings.Contains(string(copied.Value), "managedFields") {
		t.Errorf("%v %s", err, copied.Value)
	}
	f.events <- `{"type":"ADDED","object":` + namespace("c", "8") + `}`
	until(t, "what is new is not copied", func() bool { return stored(s, "c") })
	f.events <- `{"type":"DELETED","object":` + namespace("a", "9") + `}`
	until(t, "what is gone stays", func() bool { return !stored(s, "a") })
	f.events <- `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"12"}}}`
	f.events <- ""
	f.set(func(f *fake) { delete(f.items, "a"); delete(f.items, "b"); f.items["c"] = namespace("c", "8") })
	f.events <- `{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}`
	until(t, "after an error it does not list again", func() bool { return !stored(s, "b") })
	if !stored(s, "c") {
		t.Error("the list has taken away what it has")
	}
	if got := <-f.watched + " " + <-f.watched; got != "7 12" {
		t.Errorf("the watches begin at %s", got)
	}
}

// TestOptional is ready without the kinds that a server in front may not have, and not without the others.
func TestOptional(t *testing.T) {
	t.Parallel()
	f := &fake{fails: http.StatusNotFound}
	h, s := f.host(t), server(t)
	optional := h.mirrors[len(h.mirrors)-1]
	if !optional.resource.optional {
		t.Fatal("the last kind is not optional")
	}
	needed := follow(t, h, s)
	h.mirrors[0] = optional
	follow(t, h, s)
	if err := optional.wait(t.Context()); err != nil {
		t.Error(err)
	}
	until(t, "no error is told", func() bool {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		return needed.wait(ctx).Error() == "no"
	})
}

// TestTrust checks that the current ConfigMap applies, and that new pools are created only after a change.
func TestTrust(t *testing.T) {
	t.Parallel()
	tls := httptest.NewTLSServer(http.NotFoundHandler())
	defer tls.Close()
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tls.Certificate().Raw}))
	h := (&fake{}).host(t)
	data := map[string]string{
		"client-ca-file": authority, "requestheader-client-ca-file": authority,
		"requestheader-allowed-names": `["front"]`, "requestheader-username-headers": `["X-Remote-User"]`,
	}
	h.trust(data)
	first := h.trusted.Load()
	if first.proxy == nil || len(first.proxy.AllowedNames) != 1 || first.proxy.AllowedNames[0] != "front" ||
		len(first.proxy.UsernameHeaders) != 1 || first.proxy.GroupHeaders != nil {
		t.Errorf("trusts %+v", first.proxy)
	}
	h.trust(map[string]string{
		"client-ca-file": authority, "requestheader-client-ca-file": authority,
		"requestheader-allowed-names": `["front"]`, "requestheader-username-headers": `["X-Remote-User"]`,
	})
	if h.trusted.Load() != first {
		t.Error("the same data make new pools, for which all certificates are checked again")
	}
	h.trust(map[string]string{"client-ca-file": authority})
	if now := h.trusted.Load(); now == first || now.proxy != nil {
		t.Error("what the ConfigMap does not name any more is still believed")
	}
	h.trust(nil)
	if now := h.trusted.Load(); now.proxy != nil || !now.clients.Equal(x509.NewCertPool()) {
		t.Error("without a ConfigMap certificates are still believed")
	}
}

// TestMalformedTrust checks that the last valid content of the ConfigMap stays, for each key and each malformed value.
// A host without valid content trusts nobody.
func TestMalformedTrust(t *testing.T) {
	t.Parallel()
	tls := httptest.NewTLSServer(http.NotFoundHandler())
	defer tls.Close()
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tls.Certificate().Raw}))
	list := []string{
		"front", `["front"`, `["front",]`, `[1]`, `[null]`, `["front",null]`, `{"a":"front"}`, `"front"`, "null",
		"true",
		`["front"]["other"]`, " ", "\x00", `[["front"]]`,
	}
	bundle := []string{
		"x", " ", strings.Replace(authority, "MII", "!!!", 1), authority[:len(authority)/2],
		"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
		authority + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
		"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
	}
	for key, malformed := range map[string][]string{
		"requestheader-allowed-names": list, "requestheader-username-headers": list, "requestheader-uid-headers": list,
		"requestheader-group-headers": list, "requestheader-extra-headers-prefix": list,
		"client-ca-file": bundle, "requestheader-client-ca-file": bundle,
	} {
		for _, value := range malformed {
			h := (&fake{}).host(t)
			data := map[string]string{
				"client-ca-file": authority, "requestheader-client-ca-file": authority,
				"requestheader-allowed-names": `["front"]`, "requestheader-username-headers": `["X-Remote-User"]`,
			}
			bad := maps.Clone(data)
			bad[key] = value
			h.trust(bad)
			if now := h.trusted.Load(); now != nil {
				t.Errorf("%s %q: with nothing before, %+v is trusted", key, value, now.proxy)
			}
			h.trust(data)
			good := h.trusted.Load()
			h.trust(bad)
			if h.trusted.Load() != good {
				t.Errorf("%s %q: the former content is no longer in force", key, value)
			}
			next := maps.Clone(data)
			delete(next, "requestheader-allowed-names")
			h.trust(next)
			if now := h.trusted.Load(); now == good || now.proxy.AllowedNames != nil {
				t.Errorf("%s %q: the next good content is not read", key, value)
			}
		}
	}
}

// TestLifecycle checks that a namespace that is not mirrored yet is read from the host before a write in it is
// rejected.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	f := &fake{items: map[string]string{"late": namespace("late", "5")}}
	h, s := f.host(t), server(t)
	h.mirrors[0].own = s.Host
	l := lifecycle{Lifecycle: admit.Lifecycle{View: s.View}, host: h}
	attributes := func(in string) *admit.Attributes {
		return &admit.Attributes{
			Operation: admit.Create,
			Target: admit.Target{
				Resource: s.Catalog.Snapshot().Resource("", "configmaps"), Namespace: in, Name: "x",
			},
		}
	}
	if err := l.Mutate(t.Context(), attributes("late")); err != nil {
		t.Error(err)
	}
	if !stored(s, "late") {
		t.Error("it is not mirrored now")
	}
	if err := l.Mutate(t.Context(), attributes("none")); !apierrors.IsNotFound(err) {
		t.Errorf("a namespace that is not there: %v", err)
	}
	f.set(func(f *fake) { f.fails = http.StatusServiceUnavailable })
	if err := l.Mutate(t.Context(), attributes("other")); !apierrors.IsInternalError(err) {
		t.Errorf("a server in front that does not answer: %v", err)
	}
}
