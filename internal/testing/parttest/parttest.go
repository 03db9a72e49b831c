// Package parttest gives tests of parts a Host on a real store without running controllers: the test calls the code
// under test, at a time that it sets.
package parttest

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/auth/rbac"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// Server is a server of the built-in kinds, without HTTP, admission and controllers.
type Server struct {
	*testing.T
	*part.Host
	// Time is the time of the server's clock.
	Time time.Time

	config verb.Config
}

// Start returns a server on a store, with the resources and handlers of parts. It stops with the test.
func Start(t *testing.T, st *store.Store, parts ...part.Part) *Server {
	t.Helper()
	s := &Server{T: t, Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	s.Host = &part.Host{
		Log: slog.New(slog.DiscardHandler), Store: st, Now: func() time.Time { return s.Time }, NewUID: uuid.NewString,
		AfterFunc: func(time.Duration, func()) func() bool { return func() bool { return true } },
		Runs:      func(string) bool { return true }, Port: 6443,
	}
	resources := kinds.Resources()
	kinds.CoordinateLeases(resources)
	for _, one := range parts {
		if one.Resources != nil {
			resources = one.Resources(s.Host, resources)
		}
	}
	s.Catalog, s.View = catalog.New(resources...), watchcache.New(st, watchcache.Options{Log: s.Host.Log})
	control.Publish(s.Catalog, s.View, s.Host.Log)
	s.Roles = rbac.New(s.Host.Log)
	s.Roles.Follow(s.View)
	s.Authorizer = authz.Union{s.Roles}
	var handlers part.Handlers
	for _, one := range parts {
		if one.Handlers != nil {
			handlers.Merge(one.Handlers(s.Host))
		}
	}
	s.config = verb.Config{
		Catalog: s.Catalog, View: s.View, Store: st, Now: s.Now, NewUID: s.NewUID, NewSuffix: uuid.NewString,
		Log:     s.Host.Log,
		Answers: handlers.Answers, Actions: handlers.Actions, Finders: handlers.Finders,
		Allocators: handlers.Allocators,
		Guards:     handlers.Guards,
		Updated:    handlers.Updated,
	}
	s.Verbs = verb.New(s.config)
	if err := s.View.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = s.View.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return s
}

// Admit sets the admission plugins for later writes through Host.Verbs.
func (s *Server) Admit(plugins ...admit.Plugin) {
	s.config.Admit.Plugins = plugins
	s.Verbs = verb.New(s.config)
}

// OpenStore opens a store that is closed with the test.
func OpenStore(t *testing.T, c store.Config) *store.Store {
	t.Helper()
	c.Log = slog.New(slog.DiscardHandler)
	st, err := store.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

// Call returns a call of a controller named test.
func (s *Server) Call(gr catalog.GroupResource, namespace, name string) *verb.Call {
	s.Helper()
	c, err := s.Verbs.Call(gr, namespace, name, control.ControllerUser("test"))
	if err != nil {
		s.Fatal(err)
	}
	return c
}

// Create creates an object, given as JSON.
func (s *Server) Create(gr catalog.GroupResource, namespace, text string) {
	s.Helper()
	var obj object.Object
	if err := json.Unmarshal([]byte(text), &obj); err != nil {
		s.Fatal(err)
	}
	c := s.Call(gr, namespace, "")
	obj, err := s.Verbs.New(c, obj)
	if err == nil {
		_, err = s.Verbs.Create(s.Context(), c, obj, metav1.CreateOptions{})
	}
	if err != nil {
		s.Fatal(err)
	}
}

// Delete deletes an object.
func (s *Server) Delete(gr catalog.GroupResource, namespace, name string) {
	s.Helper()
	if _, err := s.Verbs.Delete(s.Context(), s.Call(gr, namespace, name), metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
}

// Stored returns an object from a current view, "" if it does not exist.
func (s *Server) Stored(prefix, namespace, name string) string {
	s.Helper()
	s.CatchUp()
	e := s.View.Collection(prefix).Snapshot().Get(namespace, name)
	if e == nil {
		return ""
	}
	return string(e.JSON())
}

// CatchUp waits until the view is current.
func (s *Server) CatchUp() {
	s.Helper()
	if _, err := s.View.Fresh(s.Context()); err != nil {
		s.Fatal(err)
	}
}

// Does makes a controller reconcile a key, and returns the requested delay.
func (s *Server) Does(r control.Reconciler, key string) time.Duration {
	s.Helper()
	s.CatchUp()
	err := r.Reconcile(s.Context(), key)
	var wait control.Again
	if err != nil && !errors.As(err, &wait) {
		s.Fatal(err)
	}
	return time.Duration(wait)
}

// Has checks that an object contains pieces of text.
func (s *Server) Has(object string, pieces ...string) {
	s.Helper()
	for _, piece := range pieces {
		if !strings.Contains(object, piece) {
			s.Errorf("%s lacks %s", object, piece)
		}
	}
}
