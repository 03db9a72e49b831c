package control

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
)

func TestUntilFree(t *testing.T) {
	t.Parallel()
	now := time.Now()
	lease := func(holder string, seconds int32) *coordinationv1.Lease {
		return &coordinationv1.Lease{
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds},
		}
	}
	for name, c := range map[string]struct {
		seen sighting
		want time.Duration
	}{
		"none":                {sighting{}, 0},
		"released":            {sighting{lease("", 6), now}, 0},
		"our own":             {sighting{lease("me", 6), now}, 0},
		"just renewed":        {sighting{lease("other", 6), now}, 6 * time.Second},
		"renewed a while ago": {sighting{lease("other", 6), now.Add(-5 * time.Second)}, time.Second},
		"over":                {sighting{lease("other", 6), now.Add(-7 * time.Second)}, -time.Second},
		"without a duration": {
			sighting{
				&coordinationv1.Lease{
					Spec: coordinationv1.LeaseSpec{HolderIdentity: lease("other", 0).Spec.HolderIdentity},
				}, now,
			}, 9 * time.Second,
		},
	} {
		if got := untilFree(c.seen, "me", 9*time.Second, now); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// watched records the keys to reconcile.
type watched struct {
	replica string
	looks   chan<- look
}

type look struct{ replica, key string }

func (w *watched) Observe(ev *watchcache.Event, need func(string)) {
	if ev.Collection.Prefix() == "configmaps" {
		need(ev.Entry.Name)
	}
}

func (w *watched) Reconcile(ctx context.Context, key string) error {
	select {
	case w.looks <- look{w.replica, key}:
	case <-ctx.Done():
	}
	return nil
}

// replica is a server of objects on a store that others use too.
type replica struct {
	verbs *verb.Verbs
	stop  func()
}

func startReplica(t *testing.T, st *store.Store, name string, looks chan<- look) *replica {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	cat := catalog.New(kinds.Resources()...)
	view := watchcache.New(st, watchcache.Options{Log: log})
	Publish(cat, view, log)
	r := &replica{}
	r.verbs = verb.New(verb.Config{
		Catalog: cat, View: view, Store: st, Now: time.Now, NewUID: uuid.NewString, NewSuffix: uuid.NewString, Log: log,
	})
	all := &Controllers{
		election: ownElection,
		config:   Config{Verbs: r.verbs, View: view, Catalog: cat, Now: time.Now, Log: log, Identity: name},
	}
	all.Add(Loop{Name: "watched", Work: &watched{name, looks}, Workers: 2})
	if err := view.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	viewing, endView := context.WithCancel(context.Background())
	working, endWork := context.WithCancel(context.Background())
	var views, workers sync.WaitGroup
	views.Go(func() { _ = view.Run(viewing) })
	if err := Bootstrap(t.Context(), r.verbs); err != nil {
		t.Fatal(err)
	}
	workers.Go(func() { all.Run(working) })
	var once atomic.Bool
	r.stop = func() {
		if once.CompareAndSwap(false, true) {
			endWork()
			workers.Wait()
			endView()
			views.Wait()
		}
	}
	t.Cleanup(r.stop)
	return r
}

func (r *replica) createConfigMap(t *testing.T, name string) {
	t.Helper()
	call, err := r.verbs.Call(catalog.GroupResource{Resource: "configmaps"}, "default", "", ControllerUser("test"))
	if err != nil {
		t.Fatal(err)
	}
	obj, err := r.verbs.New(call, object.Object{"metadata": object.Object{"name": name}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.verbs.Create(t.Context(), call, obj, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestElection checks that controllers run on one replica, and that when it stops the next one begins at once, with all
// existing objects.
func TestElection(t *testing.T) {
	t.Parallel()
	st, err := store.Open(t.Context(),
		store.Config{
			Etcd: memory.New(),
			Log:  slog.New(slog.DiscardHandler),
		})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	looks := make(chan look)
	all := map[string]*replica{}
	for i := range 3 {
		name := fmt.Sprintf("replica-%d", i)
		all[name] = startReplica(t, st, name, looks)
	}
	known := 0
	for len(all) > 0 {
		for _, r := range all {
			r.createConfigMap(t, fmt.Sprintf("round-%d", known))
			break
		}
		known++
		leader, seen := "", map[string]bool{}
		for len(seen) < known { // the leader handles keys of its term and earlier ones
			l := <-looks
			if leader != "" && l.replica != leader {
				t.Errorf("%s and %s work at the same time", leader, l.replica)
			}
			leader, seen[l.key] = l.replica, true
		}
		all[leader].stop()
		delete(all, leader)
	}
}
