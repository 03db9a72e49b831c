package candidates

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/testing/parttest"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// still is a server without running controllers.
type still struct{ *parttest.Server }

func start(t *testing.T, st *store.Store) *still {
	t.Helper()
	return &still{parttest.Start(t, st)}
}

// nominate creates a candidate for the Lease default/l with an emulation version and a renewal time.
func (s *still) nominate(name, version string, renewed time.Time) {
	s.Helper()
	s.Create(candidatesResource, "default", `{"metadata":{"name":"`+name+
		`"},"spec":{"leaseName":"l","strategy":"OldestEmulationVersion",
		"binaryVersion":"`+version+`","emulationVersion":"`+version+`","renewTime":"`+renewed.Format(metav1.RFC3339Micro)+`"}}`)
}

// set changes the spec of an object as a client does.
func (s *still) set(gr catalog.GroupResource, name string, fields object.Object) {
	s.Helper()
	_, err := s.Verbs.Update(s.Context(), s.Call(gr, "default", name), metav1.UpdateOptions{},
		func(obj object.Object) (object.Object, error) {
			for field, value := range fields {
				obj["spec"].(object.Object)[field] = value
			}
			return obj, nil
		})
	if err != nil {
		s.Fatal(err)
	}
}

// holds checks the holder and the preferred holder of the Lease default/l.
func (s *still) holds(holder, preferred string) {
	s.Helper()
	lease := &coordinationv1.Lease{}
	if err := json.Unmarshal([]byte(s.Stored(ref.Leases.Prefix, "default", "l")), lease); err != nil {
		s.Fatal(err)
	}
	if got := deref(lease.Spec.HolderIdentity); got != holder {
		s.Errorf("held by %q, want %q", got, holder)
	}
	if got := deref(lease.Spec.PreferredHolder); got != preferred {
		s.Errorf("preferred for %q, want %q", got, preferred)
	}
}

// requested reports whether a candidate has just been pinged.
func (s *still) requested(name string) bool {
	s.Helper()
	c := &coordinationv1beta1.LeaseCandidate{}
	if err := json.Unmarshal([]byte(s.Stored(ref.LeaseCandidates.Prefix, "default", name)), c); err != nil {
		s.Fatal(err)
	}
	return c.Spec.PingTime != nil && c.Spec.PingTime.Time.Equal(s.Time)
}

func TestCoordination(t *testing.T) {
	t.Parallel()
	s := start(t, parttest.OpenStore(t, store.Config{Etcd: memory.New()}))
	if err := control.Bootstrap(t.Context(), s.Verbs); err != nil {
		t.Fatal(err)
	}
	c := &coordination{s.Host}
	step := func(want time.Duration) {
		t.Helper()
		if got := s.Does(c, "default/l"); got != want {
			t.Errorf("looks again in %s, want %s", got, want)
		}
	}
	micro := func() string { return s.Time.Format(metav1.RFC3339Micro) }

	step(0) // there is no candidate
	s.nominate("a", "1.20.0", s.Time)
	s.nominate("old", "1.10.0", s.Time.Add(-31*time.Minute))
	step(lookEvery)
	s.holds("a", "")
	s.Has(s.Stored(ref.Leases.Prefix, "default", "l"), `"leaseDurationSeconds":5`, `"manager":"kube-apiserver"`,
		`"strategy":"OldestEmulationVersion"`)
	if s.requested("old") {
		t.Error("a candidate of the past is asked")
	}

	// A better one is added: it is pinged, answers, and is preferred until the leader releases the Lease.
	s.nominate("b", "1.19.0", s.Time.Add(-time.Minute))
	s.set(candidatesResource, "a", object.Object{"renewTime": micro()})
	step(lookEvery)
	if !s.requested("b") || s.requested("a") {
		t.Error("the one who may lead was not asked, or another was")
	}
	step(lookEvery)
	s.holds("a", "")
	s.Time = s.Time.Add(time.Second)
	s.set(candidatesResource, "b", object.Object{"renewTime": micro()})
	step(lookEvery)
	s.holds("a", "b")
	revision := s.Stored(ref.Leases.Prefix, "default", "l")
	step(lookEvery)
	if s.Stored(ref.Leases.Prefix, "default", "l") != revision {
		t.Error("what is so already was written again")
	}
	s.set(leasesResource, "l", object.Object{"holderIdentity": ""})
	step(lookEvery)
	s.holds("b", "")

	// The holder disappears; the other candidate is pinged first.
	s.Time = s.Time.Add(6 * time.Second)
	step(lookEvery)
	if !s.requested("a") || !s.requested("b") {
		t.Error("not all were asked")
	}
	s.Time = s.Time.Add(time.Second)
	s.set(candidatesResource, "a", object.Object{"renewTime": micro()})
	step(lookEvery)
	s.holds("b", "")
	s.Time = s.Time.Add(4500 * time.Millisecond) // b's time to answer is over, a's answer still counts
	s.set(candidatesResource, "a", object.Object{"renewTime": micro()})
	step(lookEvery)
	s.holds("a", "")

	// They do not agree how to elect.
	s.Create(candidatesResource, "default",
		`{"metadata":{"name":"c"},"spec":{"leaseName":"l","strategy":"example.com/own","binaryVersion":"1.20.0","renewTime":"`+micro()+`"}}`)
	s.set(candidatesResource, "b", object.Object{"leaseName": "l", "renewTime": micro()})
	step(lookEvery)
	s.holds("a", "")
}

// TestCoordinationOutdated checks that an object that has changed since it was read is left alone.
func TestCoordinationOutdated(t *testing.T) {
	t.Parallel()
	s := start(t, parttest.OpenStore(t, store.Config{Etcd: memory.New()}))
	if err := control.Bootstrap(t.Context(), s.Verbs); err != nil {
		t.Fatal(err)
	}
	c := &coordination{s.Host}
	s.nominate("a", "1.20.0", s.Time.Add(-time.Minute))
	s.Stored(ref.LeaseCandidates.Prefix, "default", "a")
	round, err := c.round("default", "l")
	if err != nil || len(round.Candidates) != 1 {
		t.Fatalf("%+v, %v", round, err)
	}
	s.set(candidatesResource, "a", object.Object{"renewTime": s.Time.Format(metav1.RFC3339Micro)})
	if err := c.ping(t.Context(), round.Candidates[0], s.Time); err != nil || s.requested("a") {
		t.Errorf("a candidate was asked that has answered meanwhile (%v)", err)
	}
	s.Create(leasesResource, "default", `{"metadata":{"name":"l"},"spec":{"holderIdentity":"other"}}`)
	holder := "a"
	if err := c.write(t.Context(), "default", "l", nil,
		&coordinationv1.LeaseSpec{HolderIdentity: &holder}); err != nil {
		t.Error(err)
	}
	s.holds("other", "")
	s.Delete(candidatesResource, "default", "a")
	if err := c.ping(t.Context(), round.Candidates[0], s.Time); err != nil {
		t.Error(err)
	}
}

func TestCandidatesOfThePast(t *testing.T) {
	t.Parallel()
	s := start(t, parttest.OpenStore(t, store.Config{Etcd: memory.New()}))
	if err := control.Bootstrap(t.Context(), s.Verbs); err != nil {
		t.Fatal(err)
	}
	c := &candidates{s.Host}
	s.nominate("a", "1.20.0", s.Time.Add(-time.Minute))
	s.Create(candidatesResource, "default",
		`{"metadata":{"name":"never"},"spec":{"leaseName":"l","strategy":"example.com/own","binaryVersion":"1.20.0"}}`)
	for name, want := range map[string]time.Duration{
		"a": 29*time.Minute + 1, "never": 30*time.Minute + 1, "absent": 0,
	} {
		if got := s.Does(c, "default/"+name); got != want {
			t.Errorf("%s: looks again in %s, want %s", name, got, want)
		}
	}
	s.Time = s.Time.Add(29 * time.Minute)
	s.set(candidatesResource, "never", object.Object{"renewTime": s.Time.Format(metav1.RFC3339Micro)})
	for name, want := range map[string]time.Duration{"a": 1, "never": 30*time.Minute + 1} {
		if got := s.Does(c, "default/"+name); got != want {
			t.Errorf("%s: looks again in %s, want %s", name, got, want)
		}
	}
	s.Time = s.Time.Add(1)
	s.Does(c, "default/a")
	if got := s.Stored(ref.LeaseCandidates.Prefix, "default", "a"); got != "" {
		t.Errorf("is still there: %s", got)
	}
	if s.Stored(ref.LeaseCandidates.Prefix, "default", "never") == "" {
		t.Error("one that is there is gone")
	}
}

// TestCoordinationObserves checks that changes request a reconcile.
func TestCoordinationObserves(t *testing.T) {
	t.Parallel()
	st := parttest.OpenStore(t, store.Config{Etcd: memory.New()})
	s := start(t, st)
	if err := control.Bootstrap(t.Context(), s.Verbs); err != nil {
		t.Fatal(err)
	}
	s.Create(leasesResource, "default", `{"metadata":{"name":"alone"}}`)
	s.nominate("a", "1.20.0", s.Time)
	s.Create(leasesResource, "default", `{"metadata":{"name":"l"}}`)
	s.Stored(ref.Leases.Prefix, "default", "l")
	var looks, collects []string
	elects, collector := &coordination{s.Host}, &candidates{s.Host}
	if err := s.View.Replay(t.Context(), func(events []*watchcache.Event) {
		for _, ev := range events {
			if ev.Entry.Namespace == "default" {
				elects.Observe(ev, func(key string) { looks = append(looks, key) })
				collector.Observe(ev, func(key string) { collects = append(collects, key) })
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(looks)
	if got := strings.Join(slices.Compact(looks), " "); got != "default/alone default/l" {
		t.Errorf("looks at %s", got)
	}
	if got := strings.Join(collects, " "); got != "default/a" {
		t.Errorf("collects %s", got)
	}
}

// TestCoordinationSeat checks that kube-apiserver's Lease elects the coordinator, and is released at the end.
func TestCoordinationSeat(t *testing.T) {
	t.Parallel()
	st := parttest.OpenStore(t, store.Config{Etcd: memory.New()})
	log := slog.New(slog.DiscardHandler)
	resources := kinds.Resources()
	for _, r := range resources {
		if r.Plural == ref.LeaseCandidates.Prefix {
			r.Served = true
		}
	}
	cat, view := catalog.New(resources...), watchcache.New(st, watchcache.Options{Log: log})
	control.Publish(cat, view, log)
	config := control.Config{
		View: view, Catalog: cat, Now: time.Now, Log: log, Runs: func(string) bool { return false }, Identity: "one",
	}
	config.Verbs = verb.New(verb.Config{
		Catalog: cat, View: view, Store: st, Now: time.Now, NewUID: func() string { return "u" },
		NewSuffix: func() string { return "s" }, Log: log,
	})
	all := control.New(config)
	for _, l := range Part(Times{15 * time.Second, 10 * time.Second, time.Second}).Loops {
		h := &part.Host{Log: log, Catalog: cat, View: view, Verbs: config.Verbs, Now: time.Now}
		all.Add(control.Loop{Name: l.Name, Work: l.New(h), Workers: l.Workers, Election: l.Election})
	}
	if err := view.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	viewing, endView := context.WithCancel(context.Background())
	working, endWork := context.WithCancel(context.Background())
	var views, workers sync.WaitGroup
	views.Go(func() { _ = view.Run(viewing) })
	t.Cleanup(func() { endWork(); workers.Wait(); endView(); views.Wait() })
	if err := control.Bootstrap(t.Context(), config.Verbs); err != nil {
		t.Fatal(err)
	}
	workers.Go(func() { all.Run(working) })
	held := func(name string) *coordinationv1.Lease {
		e := view.Collection(ref.Leases.Prefix).Snapshot().Get("kube-system", name)
		lease := &coordinationv1.Lease{}
		if e != nil {
			if err := json.Unmarshal(e.JSON(), lease); err != nil {
				t.Fatal(err)
			}
		}
		return lease
	}
	for _, name := range []string{"leader-election-controller", "bowsprit-controllers"} {
		for {
			changed := view.Collection(ref.Leases.Prefix).Changed()
			if deref(held(name).Spec.HolderIdentity) == "one" {
				break
			}
			select {
			case <-changed:
			case <-t.Context().Done():
				t.Fatal(t.Context().Err())
			}
		}
	}
	if got := *held("leader-election-controller").Spec.LeaseDurationSeconds; got != 15 {
		t.Errorf("good for %d s", got)
	}
	endWork()
	workers.Wait()
	if _, err := view.Fresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := deref(held("leader-election-controller").Spec.HolderIdentity); got != "" {
		t.Errorf("still held by %q", got)
	}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
