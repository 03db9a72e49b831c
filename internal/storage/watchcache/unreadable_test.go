package watchcache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/testing/logtest"
)

var errLocked = errors.New("no key fits")

// lock is a cipher that can be disabled; its values begin with "enc:".
type lock struct{ closed atomic.Bool }

func (l *lock) decrypt(_, _ string, value []byte) ([]byte, error) {
	plain, encrypted := bytes.CutPrefix(value, []byte("enc:"))
	if encrypted && l.closed.Load() {
		return nil, errLocked
	}
	return plain, nil
}

func encrypted(key string, n int) []byte { return append([]byte("enc:"), object(key, n)...) }

// eventLog records the events of a subscriber that depends on readable objects.
type eventLog struct {
	mu  sync.Mutex
	log []string
}

func (h *eventLog) observe(events []*Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, ev := range events {
		if ev = ev.Readable(); ev != nil {
			prev := "-"
			if ev.Prev != nil {
				prev = ev.Prev.UID
			}
			h.log = append(h.log, fmt.Sprintf("%v %s %s<%s", ev.Type, ev.Entry.Key(), ev.Entry.UID, prev))
		}
	}
}

func (h *eventLog) take() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer func() { h.log = nil }()
	return strings.Join(h.log, "; ")
}

// TestUnreadable overwrites an object with a value that is not an object, and back: the entry exists all the time.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	s := openStore(t)
	for key, value := range map[string]string{"protobuf": "k8s\x00\n\x0c\n\x02v1", "empty": "", "word": `"x"`} {
		if _, err := s.Create(ctx, "pods/ns/"+key, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	good := create(t, s, "pods/ns/good", 1)
	var log logtest.Log
	v := New(s, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	received := &eventLog{}
	v.Subscribe(received.observe)
	run(t, v)
	pods := v.Collection("pods")
	if all := pods.Snapshot(); all.Len() != 4 || all.Unreadable() != 3 || all.Get("ns", "good").Unreadable() != nil {
		t.Errorf("%d objects, %d unreadable", all.Len(), all.Unreadable())
	}
	if strings.Count(log.String(), "cannot be read") != 1 || !strings.Contains(log.String(), "objects=3") {
		t.Errorf("log: %s", log.String())
	}
	if got := received.take(); got != "ADDED ns/good u1<-" {
		t.Errorf("at load: %s", got)
	}
	w, err := pods.Watch(v.Revision())
	if err != nil {
		t.Fatal(err)
	}
	bad, err := s.Update(ctx, "pods/ns/good", []byte("{"), good)
	if err != nil {
		t.Fatal(err)
	}
	events, _, err := w.Next(ctx)
	if err != nil || describe(events) != fmt.Sprintf("MODIFIED pods/ns/good@%d", bad) {
		t.Errorf("%s, %v", describe(events), err)
	}
	e := pods.Snapshot().Get("ns", "good")
	why := e.Unreadable()
	if why == nil || !why.Undecodable || why.Key != "pods/ns/good" || e.JSON() != nil || e.UID != "u1" ||
		e.Revision != bad || e.LastReadable() == nil || e.LastReadable().Revision != good {
		t.Fatalf("%+v: %v", e, why)
	}
	if _, found := e.Field("spec.x"); found || e.at(9).Unreadable() != why || e.at(9).Revision != 9 {
		t.Error("an unreadable entry has a field, or a copy that is readable")
	}
	if n := pods.Snapshot().Unreadable(); n != 4 {
		t.Errorf("%d unreadable", n)
	}
	if got := received.take(); got != "" {
		t.Errorf("what goes by what can be read hears %s", got)
	}
	again, err := s.Update(ctx, "pods/ns/good", object("good", 2), bad)
	if err != nil {
		t.Fatal(err)
	}
	if events, _, err := w.Next(ctx); err != nil || events[0].Type != Modified {
		t.Errorf("%s, %v", describe(events), err)
	}
	if got := received.take(); got != "MODIFIED ns/good u2<u1" {
		t.Errorf("readable again: %s", got)
	}
	if n := pods.Snapshot().Unreadable(); n != 3 {
		t.Errorf("%d unreadable", n)
	}
	// States of other times count for themselves.
	for revision, want := range map[int64]int{good: 3, bad: 4, again: 3} {
		if at, err := pods.SnapshotAt(ctx, revision); err != nil || at.Unreadable() != want {
			t.Errorf("at %d: %v unreadable, %v; want %d", revision, at.Unreadable(), err, want)
		}
	}
	if bad, err = s.Update(ctx, "pods/ns/good", []byte("{"), again); err != nil {
		t.Fatal(err)
	}
	remove(t, s, "pods/ns/good", bad)
	r, err := s.Get(ctx, "pods/ns/empty")
	if err != nil {
		t.Fatal(err)
	}
	if err := v.WaitFor(ctx, remove(t, s, "pods/ns/empty", r.Revision)); err != nil {
		t.Fatal(err)
	}
	if got := received.take(); got != "DELETED ns/good u2<u2; DELETED ns/empty <" {
		t.Errorf("deleted: %s", got)
	}
}

// TestHeal locks and unlocks a cipher. Unreadable objects become readable without a write, on request and by the view
// itself, and a full reread detects objects that become unreadable.
func TestHeal(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	s := openStore(t)
	for i := range healOneByOne + 20 {
		key := fmt.Sprintf("secrets/ns/s%03d", i)
		if _, err := s.Create(ctx, key, encrypted(key, i)); err != nil {
			t.Fatal(err)
		}
	}
	cipher := &lock{}
	cipher.closed.Store(true)
	v := New(s, Options{Log: slog.New(slog.DiscardHandler), Decrypt: cipher.decrypt})
	received := &eventLog{}
	v.Subscribe(received.observe)
	run(t, v)
	secrets := v.Collection("secrets")
	total := healOneByOne + 20
	if n := secrets.Snapshot().Unreadable(); n != total {
		t.Fatalf("%d unreadable", n)
	}
	if why := secrets.Snapshot().Get("ns", "s000").Unreadable(); !errors.Is(why, errLocked) || why.Undecodable {
		t.Errorf("%v", why)
	}
	w, err := secrets.Watch(v.Revision())
	if err != nil {
		t.Fatal(err)
	}
	if err := secrets.Heal(ctx); err != nil || secrets.Snapshot().Unreadable() != total {
		t.Errorf("healed while the lock is closed: %v", err)
	}
	if _, _, err := w.Poll(); err != nil {
		t.Errorf("a watch ends though nothing has changed: %v", err)
	}
	cipher.closed.Store(false)
	if err := secrets.Heal(ctx, "ns/s007", "ns/none"); err != nil || secrets.Snapshot().Unreadable() != total-1 {
		t.Errorf("%v, %d unreadable", err, secrets.Snapshot().Unreadable())
	}
	if got := received.take(); got != "ADDED ns/s007 u7<-" {
		t.Errorf("told %s", got)
	}
	if _, _, err := w.Poll(); !errors.Is(err, ErrExpired) {
		t.Errorf("a watch that has missed an object: %v", err)
	}
	if err := secrets.Heal(ctx); err != nil || secrets.Snapshot().Unreadable() != 0 {
		t.Errorf("%v, %d unreadable", err, secrets.Snapshot().Unreadable())
	}
	if got := strings.Count(received.take(), "ADDED"); got != total-1 {
		t.Errorf("%d told", got)
	}

	before := secrets.Snapshot().Get("ns", "s001")
	if w, err = secrets.Watch(v.Revision()); err != nil {
		t.Fatal(err)
	}
	if err := secrets.Reread(ctx); err != nil || secrets.Snapshot().Get("ns", "s001") != before {
		t.Errorf("%v, or an entry was replaced by its like", err)
	}
	cipher.closed.Store(true)
	if err := secrets.Reread(ctx); err != nil || secrets.Snapshot().Unreadable() != total {
		t.Errorf("%v, %d unreadable", err, secrets.Snapshot().Unreadable())
	}
	if e := secrets.Snapshot().Get("ns", "s001"); e.LastReadable() != before || e.UID != "u1" {
		t.Errorf("%+v", e)
	}
	if _, _, err := w.Poll(); err != nil || received.take() != "" {
		t.Errorf("loss of a key ends watches: %v", err)
	}
	if err := secrets.Heal(canceled()); err == nil {
		t.Error("healed without a context")
	}
}

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// TestSweepWaitsForNoSearch sweeps while an index is being built.
func TestSweepWaitsForNoSearch(t *testing.T) {
	t.Parallel()
	v := New(nil, Options{Log: slog.New(slog.DiscardHandler)})
	c := v.Collection("a.b/cs")
	for i := range indexAbove + 1 {
		v.apply(store.WatchBatch{Revision: int64(i + 1), Events: []store.Event{{
			Key: fmt.Sprintf("a.b/cs/o%d", i), Revision: int64(i + 1), Created: 1, Value: object("o", i),
		}}})
	}
	calls := 0
	ix := Index{Name: "x", Value: func(*Entry) string {
		if calls++; calls == 1 {
			v.sweep() // it would deadlock
			c.indexes.sweep(time.Now().Add(time.Hour))
		}
		return ""
	}}
	for range indexUses {
		c.SnapshotBy(ix)
	}
	if calls == 0 || len(c.indexes.list) != 1 {
		t.Errorf("%d calls, %d indexes", calls, len(c.indexes.list))
	}
	c.indexes.sweep(time.Now().Add(time.Hour))
	if len(c.indexes.list) != 0 {
		t.Error("an index that is not used stays")
	}
}
