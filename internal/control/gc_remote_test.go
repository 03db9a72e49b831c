package control

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// otherServer responds as another server.
type otherServer struct {
	code     int // 0: unreachable
	body     string
	requests int
}

func (o *otherServer) As(user.Info) http.RoundTripper { return o }
func (o *otherServer) OnCreate(func(string))          {}

func (o *otherServer) RoundTrip(r *http.Request) (*http.Response, error) {
	o.requests++
	if o.code == 0 {
		return nil, errors.New("connection refused")
	}
	return &http.Response{
		StatusCode: o.code, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(o.body)), ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// TestOwnersElsewhere looks up owners on another server with all kinds of responses: an owner is dangling only if a
// response says that it does not exist, and after a failed request no other follows for a while.
func TestOwnersElsewhere(t *testing.T) {
	const absent = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,` +
		`"details":{"name":"a","group":"g.example.com","kind":"flunders"}}`
	object := func(metadata string) string {
		return `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a",` + metadata + `}}`
	}
	for _, test := range []struct {
		name, body string
		code       int
		want       ownerState
		unknown    bool
	}{
		{"unreached", "", 0, 0, true},
		{"broken", "oops", 500, 0, true},
		{"forbidden", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`, 403, 0,
			true},
		{"a path that is not there", "404 page not found", 404, 0, true},
		{"no answer at all", "{}", 503, 0, true},
		{"absent", absent, 404, dangling, false},
		{"another uid", object(`"uid":"2"`), 200, dangling, false},
		{"there", object(`"uid":"1"`), 200, solid, false},
		{"going", object(`"uid":"1","deletionTimestamp":"2026-01-01T00:00:00Z"`), 200, solid, false},
		{"waiting", object(`"uid":"1","deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["foregroundDeletion"]`),
			200, waiting, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			now := time.Unix(0, 0)
			o := &otherServer{code: test.code, body: test.body}
			g := newCollector(Config{
				Remote: o, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler),
			})
			k := newRemoteKind("g.example.com", "v1", &apidiscoveryv2.APIResourceDiscovery{
				Resource: "flunders", Scope: apidiscoveryv2.ScopeNamespace, Verbs: []string{"get"},
				ResponseKind: &metav1.GroupVersionKind{Kind: "Flunder"},
			})
			kinds := map[schema.GroupKind]*remoteKind{{Group: "g.example.com", Kind: "Flunder"}: k}
			g.remotes.kinds.Store(&kinds)
			ref := metav1.OwnerReference{APIVersion: "g.example.com/v1", Kind: "Flunder", Name: "a", UID: "1"}
			var s subject
			state, err := g.remoteState(t.Context(), "default", ref, &s)
			var later Again
			if errors.As(err, &later) != test.unknown || !test.unknown && (err != nil || state != test.want) {
				t.Fatalf("%v, %v", state, err)
			}
			if !s.unwatched || s.again() == nil {
				t.Error("an owner that cannot be watched is not looked up again")
			}
			if !test.unknown {
				return
			}
			paused(t, g, o, &now, func(ctx context.Context) error {
				_, err := g.remoteState(ctx, "default", ref, &s)
				return err
			})
		})
	}
}

// paused repeats requests about owners on an unresponsive server: each pause allows one request, and is longer than the
// previous one, up to the maximum.
func paused(t *testing.T, g *collector, o *otherServer, now *time.Time, ask func(context.Context) error) {
	t.Helper()
	last := pauseFirst
	for range 10 {
		requests := o.requests
		for range 100 {
			var later Again
			if err := ask(t.Context()); !errors.As(err, &later) {
				t.Fatal(err)
			}
		}
		if o.requests != requests {
			t.Fatalf("%d questions during a pause", o.requests-requests)
		}
		*now = now.Add(last)
		if err := ask(t.Context()); err == nil || o.requests == requests {
			t.Fatalf("nothing asked after a pause: %v", err)
		}
		if last = min(2*last, pauseMost); g.mu.remote.paused["/apis/g.example.com/v1/flunders"].last != last {
			t.Fatalf("paused for %v, want %v", g.mu.remote.paused["/apis/g.example.com/v1/flunders"].last, last)
		}
	}
}

// TestFollower creates and deletes objects of another server: dependents of deleted objects are checked, and the end of
// following is not a deletion.
func TestFollower(t *testing.T) {
	needed := map[string]bool{}
	g := newCollector(Config{
		Remote: &otherServer{}, Now: time.Now, Log: slog.New(slog.DiscardHandler), Catalog: catalog.New(),
	})
	g.Requests(func(key string) { needed[key] = true })
	f := &follower{
		g: g, uids: map[string]string{}, tracked: map[string]tracked{}, done: make(chan struct{}), cancel: func() {},
		kind: newRemoteKind("g.example.com", "v1", &apidiscoveryv2.APIResourceDiscovery{
			Resource: "flunders", Scope: apidiscoveryv2.ScopeNamespace,
			ResponseKind: &metav1.GroupVersionKind{Kind: "Flunder"},
		}),
	}
	close(f.done)
	object := func(name, uid string, owners ...string) *metav1.PartialObjectMetadata {
		m := &metav1.PartialObjectMetadata{}
		m.Namespace, m.Name, m.UID = "default", name, types.UID(uid)
		for _, owner := range owners {
			m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{
				APIVersion: "g.example.com/v1", Kind: "Flunder", Name: "owner", UID: types.UID(owner),
			})
		}
		return m
	}
	step := func(desc string, err error, want ...string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if have := slices.Sorted(maps.Keys(needed)); !slices.Equal(have, want) {
			t.Errorf("%s: %q are looked at, want %q", desc, have, want)
		}
		clear(needed)
	}
	const dependent = "/apis/g.example.com/v1/flunders default/dependent"
	g.mu.parked[location{f, "default/dependent"}] = true
	step("list", f.Replace([]any{object("owner", "1"), object("next", "2")}, ""), dependent)
	if !f.has("default/owner", "1") || f.has("default/owner", "2") || f.entry("default/owner") != nil {
		t.Error("what the list has is not known, or more than that")
	}
	kinds := map[schema.GroupKind]*remoteKind{{Group: "g.example.com", Kind: "Flunder"}: f.kind}
	g.remotes.kinds.Store(&kinds)
	step("dependents", errors.Join(f.Add(object("dependent", "3", "1")), f.Add(object("dependent2", "4", "2"))),
		dependent, dependent+"2")
	step("owner gone", f.Delete(object("owner", "1")), spreadPrefix+"1")
	step("a list without the other", f.Replace([]any{object("next", "5"), object("dependent2", "4", "2")}, ""),
		spreadPrefix+"2")
	if !g.gone("2") || g.gone("4") {
		t.Error("an owner whose name another object has is not gone, or one that is there is")
	}
	step("dependent let go", f.Update(object("dependent2", "4")))
	if f.entry("default/dependent2") != nil {
		t.Error("an object without owners is kept")
	}
	step("another dependent", f.Add(object("dependent", "6", "5")), dependent)
	f.end()
	step("end", nil)
	if all, _ := g.dependents("5"); len(all) != 0 || g.gone("5") {
		t.Errorf("after the end: %d dependents, gone %v", len(all), g.gone("5"))
	}
}
