package rest_test

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/feature/plugins"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/plugin"
	"github.com/bowsprit/bowsprit/internal/feature/subresource"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/rest"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// gate is an admission plugin that blocks creations of one kind in the namespace "away", like a slow webhook.
type gate struct {
	plural  string
	arrived chan struct{}
	open    chan struct{}
}

func (*gate) Name() string { return "Gate" }

func (g *gate) Validate(ctx context.Context, a *admit.Attributes) error {
	if a.Operation != admit.Create || a.Resource.Plural != g.plural || a.Namespace != "away" {
		return nil
	}
	g.arrived <- struct{}{}
	select {
	case <-g.open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

var admin = &user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup}}

// server is both faces of objects: in process, and for HTTP.
type server struct {
	*verb.Verbs
	*rest.Server
	store *store.Store
}

// start returns a server of objects with its controllers, without package front.
func start(t testing.TB, plugins ...admit.Plugin) *server {
	t.Helper()
	return startWith(t, memory.New(),
		func(c *verb.Config) { c.Admit.Plugins = append(plugins, c.Admit.Plugins...) })
}

// topology is the plugin that hands labels of nodes on to pods.
func topology(view *watchcache.View) admit.Plugin {
	all := plugins.All(plugin.Config{View: view})
	return all[slices.IndexFunc(all, func(p admit.Plugin) bool { return p.Name() == "PodTopologyLabels" })]
}

// startWith is start with a separate etcd and a changed configuration.
func startWith(t testing.TB, etcd store.Opener, change func(*verb.Config)) *server {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	st, err := store.Open(t.Context(), store.Config{Etcd: etcd, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	cat := catalog.New(kinds.Resources()...)
	view := watchcache.New(st, watchcache.Options{Log: log})
	control.Publish(cat, view, log)
	var ids atomic.Int64
	id := func() string { return "id-" + strconv.FormatInt(ids.Add(1), 10) }
	config := verb.Config{
		Catalog: cat, View: view, Store: st,
		Admit: admit.Chain{Plugins: []admit.Plugin{admit.Lifecycle{View: view}, topology(view)}},
		Now:   time.Now, NewUID: id, NewSuffix: id, Log: log,
		Actions: subresource.Actions(),
	}
	change(&config)
	verbs := verb.New(config)
	s := &server{verbs, rest.New(rest.Config{Verbs: verbs, WatchAtLeast: time.Minute}), st}
	all := control.New(control.Config{
		Verbs: verbs, View: view, Catalog: cat, Now: time.Now, Log: log, Runs: func(string) bool { return true },
	})
	if err := view.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = view.Run(ctx) })
	if err := control.Bootstrap(ctx, verbs); err != nil {
		t.Fatal(err)
	}
	running.Go(func() { all.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func create(
	ctx context.Context, s *server, gr catalog.GroupResource, namespace string, obj object.Object,
) (*verb.Result, error) {
	call, err := s.Call(gr, namespace, "", admin)
	if err != nil {
		return nil, err
	}
	if obj, err = s.New(call, obj); err != nil {
		return nil, err
	}
	return s.Create(ctx, call, obj, metav1.CreateOptions{})
}

func remove(t *testing.T, s *server, gr catalog.GroupResource, name string) {
	t.Helper()
	call, err := s.Call(gr, "", name, admin)
	if err != nil {
		t.Fatal(err)
	}
	gone, err := s.View().Collection(call.Resource.Prefix).Watch(s.View().Revision())
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	if _, err := s.Delete(t.Context(), call, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for {
		events, _, err := gone.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range events {
			if ev.Type == watchcache.Deleted && ev.Entry.Name == name {
				return
			}
		}
	}
}

var (
	definitions = catalog.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	namespaces  = catalog.GroupResource{Resource: "namespaces"}
	crontabs    = catalog.GroupResource{Group: "stable.example.com", Resource: "crontabs"}
	configmaps  = catalog.GroupResource{Resource: "configmaps"}
)

func crontabDefinition() object.Object {
	return object.Object{
		"metadata": object.Object{"name": "crontabs.stable.example.com"},
		"spec": object.Object{
			"group": "stable.example.com", "scope": "Namespaced",
			"names": object.Object{
				"plural": "crontabs", "singular": "crontab", "kind": "CronTab", "listKind": "CronTabList",
			},
			"versions": []any{object.Object{
				"name": "v1", "served": true, "storage": true,
				"schema": object.Object{
					"openAPIV3Schema": object.Object{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
				},
			}},
		},
	}
}

func named(name string) object.Object { return object.Object{"metadata": object.Object{"name": name}} }

// TestNothingComesAfterDeletion checks that a creation running during the deletion of its definition or namespace
// leaves no object behind: neither for a later definition of the same name, nor in a missing namespace.
func TestNothingComesAfterDeletion(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind     catalog.GroupResource
		deleted  catalog.GroupResource
		name     string
		again    func() object.Object // recreated under the name, nil for nothing
		want     string               // in the error; "" means that the creation succeeds
		leftover int
	}{
		"definition": {crontabs, definitions, "crontabs.stable.example.com", nil,
			"the server could not find the requested resource", 0},
		"definition, anew": {crontabs, definitions, "crontabs.stable.example.com", crontabDefinition,
			"the server could not find the requested resource", 0},
		"namespace":            {configmaps, namespaces, "away", nil, `namespaces "away" not found`, 0},
		"namespace, anew":      {configmaps, namespaces, "away", func() object.Object { return named("away") }, "", 1},
		"namespace, of custom": {crontabs, namespaces, "away", nil, `namespaces "away" not found`, 0},
		"another namespace":    {configmaps, namespaces, "other", nil, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := &gate{plural: c.kind.Resource, arrived: make(chan struct{}), open: make(chan struct{})}
			s := start(t, g)
			for _, ns := range []string{"away", "other"} {
				if _, err := create(t.Context(), s, namespaces, "", named(ns)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := create(t.Context(), s, definitions, "", crontabDefinition()); err != nil {
				t.Fatal(err)
			}
			answered := make(chan error, 1)
			go func() {
				_, err := create(t.Context(), s, c.kind, "away", named("late"))
				answered <- err
			}()
			<-g.arrived
			remove(t, s, c.deleted, c.name)
			if c.again != nil {
				if _, err := create(t.Context(), s, c.deleted, "", c.again()); err != nil {
					t.Fatal(err)
				}
			}
			close(g.open)
			switch err := <-answered; {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("the late creation got %v, want %q", err, c.want)
			}
			r, err := s.store.Range(t.Context(), store.RangeOptions{Prefix: c.kind.Resource + "/away/"})
			if c.kind == crontabs {
				r, err = s.store.Range(t.Context(), store.RangeOptions{Prefix: "stable.example.com/crontabs/"})
			}
			if err != nil || len(r.Records) != c.leftover {
				t.Errorf("%d objects are left, %v; want %d", len(r.Records), err, c.leftover)
			}
		})
	}
}
