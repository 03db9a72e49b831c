package control

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
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/rest"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// nominate makes a candidate for the Lease default/l that emulates a version and was there at renewed.
func (s *still) nominate(name, version string, renewed time.Time) {
	s.Helper()
	s.create(candidatesResource, "default", `{"metadata":{"name":"`+name+
		`"},"spec":{"leaseName":"l","strategy":"OldestEmulationVersion",
		"binaryVersion":"`+version+`","emulationVersion":"`+version+`","renewTime":"`+renewed.Format(metav1.RFC3339Micro)+`"}}`)
}

// set changes the spec of an object as a client does.
func (s *still) set(gr catalog.GroupResource, name string, fields rest.Object) {
	s.Helper()
	_, err := s.Rest.Update(s.Context(), s.call(gr, "default", name), metav1.UpdateOptions{},
		func(obj rest.Object) (rest.Object, error) {
			for field, value := range fields {
				obj["spec"].(rest.Object)[field] = value
			}
			return obj, nil
		})
	if err != nil {
		s.Fatal(err)
	}
}

// holds wants the Lease default/l to be held by one and preferred for another.
func (s *still) holds(holder, preferred string) {
	s.Helper()
	lease := &coordinationv1.Lease{}
	if err := json.Unmarshal([]byte(s.stored(leasesPrefix, "default", "l")), lease); err != nil {
		s.Fatal(err)
	}
	if got := text(lease.Spec.HolderIdentity); got != holder {
		s.Errorf("held by %q, want %q", got, holder)
	}
	if got := text(lease.Spec.PreferredHolder); got != preferred {
		s.Errorf("preferred for %q, want %q", got, preferred)
	}
}

// asked tells whether a candidate has been asked now whether it is there.
func (s *still) asked(name string) bool {
	s.Helper()
	c := &coordinationv1beta1.LeaseCandidate{}
	if err := json.Unmarshal([]byte(s.stored(candidatesPrefix, "default", name)), c); err != nil {
		s.Fatal(err)
	}
	return c.Spec.PingTime != nil && c.Spec.PingTime.Time.Equal(s.now)
}

func TestCoordination(t *testing.T) {
	t.Parallel()
	s := startStill(t, openStore(t, store.Config{Embedded: embedded(t)}))
	if err := Bootstrap(t.Context(), s.Rest); err != nil {
		t.Fatal(err)
	}
	c := &coordination{s.Config}
	step := func(want time.Duration) {
		t.Helper()
		if got := s.does(c, "default/l"); got != want {
			t.Errorf("looks again in %s, want %s", got, want)
		}
	}
	micro := func() string { return s.now.Format(metav1.RFC3339Micro) }

	step(0) // nobody is a candidate
	s.nominate("a", "1.20.0", s.now)
	s.nominate("old", "1.10.0", s.now.Add(-31*time.Minute))
	step(lookEvery)
	s.holds("a", "")
	s.has(s.stored(leasesPrefix, "default", "l"), `"leaseDurationSeconds":5`, `"manager":"kube-apiserver"`,
		`"strategy":"OldestEmulationVersion"`)
	if s.asked("old") {
		t.Error("a candidate of the past is asked")
	}

	// A better one comes: it is asked, answers, and is preferred until the leader lets go.
	s.nominate("b", "1.19.0", s.now.Add(-time.Minute))
	s.set(candidatesResource, "a", rest.Object{"renewTime": micro()})
	step(lookEvery)
	if !s.asked("b") || s.asked("a") {
		t.Error("the one who may lead was not asked, or another was")
	}
	step(lookEvery)
	s.holds("a", "")
	s.now = s.now.Add(time.Second)
	s.set(candidatesResource, "b", rest.Object{"renewTime": micro()})
	step(lookEvery)
	s.holds("a", "b")
	revision := s.stored(leasesPrefix, "default", "l")
	step(lookEvery)
	if s.stored(leasesPrefix, "default", "l") != revision {
		t.Error("what is so already was written again")
	}
	s.set(leasesResource, "l", rest.Object{"holderIdentity": ""})
	step(lookEvery)
	s.holds("b", "")

	// It is gone without a word; the other one is asked first.
	s.now = s.now.Add(6 * time.Second)
	step(lookEvery)
	if !s.asked("a") || !s.asked("b") {
		t.Error("not all were asked")
	}
	s.now = s.now.Add(time.Second)
	s.set(candidatesResource, "a", rest.Object{"renewTime": micro()})
	step(lookEvery)
	s.holds("b", "")
	s.now = s.now.Add(4500 * time.Millisecond) // b's time to answer is over, a's answer is not
	s.set(candidatesResource, "a", rest.Object{"renewTime": micro()})
	step(lookEvery)
	s.holds("a", "")

	// They do not agree how to elect.
	s.create(candidatesResource, "default",
		`{"metadata":{"name":"c"},"spec":{"leaseName":"l","strategy":"example.com/own","binaryVersion":"1.20.0","renewTime":"`+micro()+`"}}`)
	s.set(candidatesResource, "b", rest.Object{"leaseName": "l", "renewTime": micro()})
	step(lookEvery)
	s.holds("a", "")
}

// What has changed since it was looked at is left alone.
func TestCoordinationOutdated(t *testing.T) {
	t.Parallel()
	s := startStill(t, openStore(t, store.Config{Embedded: embedded(t)}))
	if err := Bootstrap(t.Context(), s.Rest); err != nil {
		t.Fatal(err)
	}
	c := &coordination{s.Config}
	s.nominate("a", "1.20.0", s.now.Add(-time.Minute))
	s.stored(candidatesPrefix, "default", "a")
	round, err := c.round("default", "l")
	if err != nil || len(round.Candidates) != 1 {
		t.Fatalf("%+v, %v", round, err)
	}
	s.set(candidatesResource, "a", rest.Object{"renewTime": s.now.Format(metav1.RFC3339Micro)})
	if err := c.ping(t.Context(), round.Candidates[0], s.now); err != nil || s.asked("a") {
		t.Errorf("a candidate was asked that has answered meanwhile (%v)", err)
	}
	s.create(leasesResource, "default", `{"metadata":{"name":"l"},"spec":{"holderIdentity":"other"}}`)
	holder := "a"
	if err := c.write(t.Context(), "default", "l", nil,
		&coordinationv1.LeaseSpec{HolderIdentity: &holder}); err != nil {
		t.Error(err)
	}
	s.holds("other", "")
	s.delete(candidatesResource, "default", "a")
	if err := c.ping(t.Context(), round.Candidates[0], s.now); err != nil {
		t.Error(err)
	}
}

func TestCandidatesOfThePast(t *testing.T) {
	t.Parallel()
	s := startStill(t, openStore(t, store.Config{Embedded: embedded(t)}))
	if err := Bootstrap(t.Context(), s.Rest); err != nil {
		t.Fatal(err)
	}
	c := &candidates{s.Config}
	s.nominate("a", "1.20.0", s.now.Add(-time.Minute))
	s.create(candidatesResource, "default",
		`{"metadata":{"name":"never"},"spec":{"leaseName":"l","strategy":"example.com/own","binaryVersion":"1.20.0"}}`)
	for name, want := range map[string]time.Duration{
		"a": 29*time.Minute + 1, "never": 30*time.Minute + 1, "absent": 0,
	} {
		if got := s.does(c, "default/"+name); got != want {
			t.Errorf("%s: looks again in %s, want %s", name, got, want)
		}
	}
	s.now = s.now.Add(29 * time.Minute)
	s.set(candidatesResource, "never", rest.Object{"renewTime": s.now.Format(metav1.RFC3339Micro)})
	for name, want := range map[string]time.Duration{"a": 1, "never": 30*time.Minute + 1} {
		if got := s.does(c, "default/"+name); got != want {
			t.Errorf("%s: looks again in %s, want %s", name, got, want)
		}
	}
	s.now = s.now.Add(1)
	s.does(c, "default/a")
	if got := s.stored(candidatesPrefix, "default", "a"); got != "" {
		t.Errorf("is still there: %s", got)
	}
	if s.stored(candidatesPrefix, "default", "never") == "" {
		t.Error("one that is there is gone")
	}
}

// What changes is looked at.
func TestCoordinationObserves(t *testing.T) {
	t.Parallel()
	st := openStore(t, store.Config{Embedded: embedded(t)})
	s := startStill(t, st)
	if err := Bootstrap(t.Context(), s.Rest); err != nil {
		t.Fatal(err)
	}
	s.create(leasesResource, "default", `{"metadata":{"name":"alone"}}`)
	s.nominate("a", "1.20.0", s.now)
	s.create(leasesResource, "default", `{"metadata":{"name":"l"}}`)
	s.stored(leasesPrefix, "default", "l")
	var looks, collects []string
	elects, collector := &coordination{s.Config}, &candidates{s.Config}
	if err := s.View.Replay(t.Context(), func(events []*watchcache.Event) {
		for _, ev := range events {
			if ev.Entry.Namespace == "default" {
				elects.observe(ev, func(key string) { looks = append(looks, key) })
				collector.observe(ev, func(key string) { collects = append(collects, key) })
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

// Who coordinates is found by kube's Lease, which is let go of at the end.
func TestCoordinationSeat(t *testing.T) {
	t.Parallel()
	st := openStore(t, store.Config{Embedded: embedded(t)})
	log := slog.New(slog.DiscardHandler)
	cat, view := catalog.New(kinds.Resources()...), watchcache.New(st, watchcache.Options{Log: log})
	Publish(cat, view, log)
	config := Config{
		View: view, Catalog: cat, Now: time.Now, Log: log, Enabled: []string{"-*"}, Identity: "one",
		Coordination: &Coordination{RetryPeriod: time.Second},
	}
	config.Rest = rest.New(rest.Config{
		Catalog: cat, View: view, Store: st, Now: time.Now, NewUID: func() string { return "u" },
		NewSuffix: func() string { return "s" }, Log: log,
	})
	all := New(config)
	if err := view.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	viewing, endView := context.WithCancel(context.Background())
	working, endWork := context.WithCancel(context.Background())
	var views, workers sync.WaitGroup
	views.Go(func() { _ = view.Run(viewing) })
	t.Cleanup(func() { endWork(); workers.Wait(); endView(); views.Wait() })
	if err := Bootstrap(t.Context(), config.Rest); err != nil {
		t.Fatal(err)
	}
	workers.Go(func() { all.Run(working) })
	held := func(name string) *coordinationv1.Lease {
		e := view.Collection(leasesPrefix).Snapshot().Get(electionNamespace, name)
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
			changed := view.Collection(leasesPrefix).Changed()
			if text(held(name).Spec.HolderIdentity) == "one" {
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
	if got := text(held("leader-election-controller").Spec.HolderIdentity); got != "" {
		t.Errorf("still held by %q", got)
	}
}
