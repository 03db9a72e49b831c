package control_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/testing/parttest"
)

// TestPublishDeleted delivers a definition's change and its deletion together, as on a busy server: its kind is no
// longer served.
func TestPublishDeleted(t *testing.T) {
	t.Parallel()
	st := parttest.OpenStore(t, store.Config{Etcd: memory.New()})
	log := slog.New(slog.DiscardHandler)
	cat, view := catalog.New(), watchcache.New(st, watchcache.Options{Log: log})
	control.Publish(cat, view, log)
	if err := view.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	key := func(name string) string { return control.DefinitionsPrefix + "/" + name + ".g.io" }
	definition := func(name string) []byte {
		return []byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"` +
			name + `.g.io","uid":"` + name + `"},"spec":{"group":"g.io","scope":"Cluster","names":{"plural":"` + name +
			`","kind":"Kind","listKind":"KindList","singular":"kind"},"versions":[{"name":"v1","served":true,
			"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]},"status":{"acceptedNames":{"plural":"` +
			name + `","kind":"Kind","listKind":"KindList","singular":"kind"},"conditions":[{"type":"Established",
			"status":"True"},{"type":"NamesAccepted","status":"True"}]}}`)
	}
	var last int64
	do := func(revision int64, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		last = revision
	}
	// All changes exist before the view starts, so that they arrive together.
	do(st.Create(t.Context(), key("stays"), definition("stays")))
	do(st.Create(t.Context(), key("goes"), definition("goes")))
	do(st.Update(t.Context(), key("goes"), definition("goes"), last))
	do(st.Delete(t.Context(), key("goes"), last))
	do(st.Create(t.Context(), key("later"), definition("later")))

	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = view.Run(ctx) })
	defer running.Wait()
	defer cancel()
	if err := view.WaitFor(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"stays": true, "goes": false, "later": true} {
		if r, _ := cat.Snapshot().Served("g.io", "v1", name); (r != nil) != want {
			t.Errorf("%s served: %v, want %v", name, r != nil, want)
		}
	}
}
