package definitions

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
)

var (
	crds  = catalog.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	ships = catalog.GroupResource{Group: "example.com", Resource: "ships"}
)

const shipsName = "ships.example.com"

// replica is the verbs of a server with the part.
type replica struct {
	*testing.T
	*verb.Verbs
	// check runs before the check of each object by a proof.
	check func(name string)
}

func start(t *testing.T, etcd *memory.Etcd, s Settings) *replica {
	t.Helper()
	st, err := store.Open(t.Context(), store.Config{Etcd: etcd.Shared()})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	cat := catalog.New(kinds.Resources()...)
	view := watchcache.New(st, watchcache.Options{Log: log})
	control.Publish(cat, view, log)
	r := &replica{T: t, check: func(string) {}}
	protections := Part(s).Handlers(&part.Host{View: view}).Protections
	for name, k := range protections {
		protections[name] = r.watch(k)
	}
	r.Verbs = verb.New(verb.Config{
		Catalog: cat, View: view, Store: st, Protections: protections, Now: time.Now, NewUID: uuid.NewString,
		NewSuffix: uuid.NewString, Log: log,
	})
	if err := view.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	var views sync.WaitGroup
	views.Go(func() { _ = view.Run(ctx) })
	t.Cleanup(func() {
		end()
		views.Wait()
		st.Close()
	})
	return r
}

// watch calls r.check before each check of an object.
func (r *replica) watch(k verb.Protection) verb.Protection {
	proofs := k.Proofs
	k.Proofs = func(c *verb.Call, obj, old object.Object) ([]*catalog.Proof, field.ErrorList) {
		all, errs := proofs(c, obj, old)
		for _, p := range all {
			if check := p.Check; check != nil {
				p.Check = func(version string, obj object.Object) error {
					r.check(object.String(obj, "metadata", "name"))
					return check(version, obj)
				}
			}
		}
		return all, errs
	}
	return k
}

// call returns a call of the replica, whose view has all writes.
func (r *replica) call(gr catalog.GroupResource, name string) *verb.Call {
	r.Helper()
	if _, err := r.View().Fresh(r.Context()); err != nil {
		r.Fatal(err)
	}
	c, err := r.Call(gr, "", name, &user.DefaultInfo{Name: "test"})
	if err != nil {
		r.Fatal(err)
	}
	return c
}

func (r *replica) create(gr catalog.GroupResource, obj object.Object) {
	r.Helper()
	c := r.call(gr, "")
	obj, err := r.New(c, obj)
	if err != nil {
		r.Fatal(err)
	}
	if _, err := r.Create(r.Context(), c, obj, metav1.CreateOptions{}); err != nil {
		r.Fatal(err)
	}
}

// define creates the definition of ships with a version for each schema.
func (r *replica) define(annotations object.Object, versions ...any) {
	r.Helper()
	r.create(crds, object.Object{
		"metadata": object.Object{"name": shipsName, "annotations": annotations},
		"spec": object.Object{
			"group": "example.com", "scope": "Cluster", "names": object.Object{"plural": "ships", "kind": "Ship"},
			"versions": versions,
		},
	})
}

// version returns a version of the definition with fields of spec.
func version(name string, storage bool, fields object.Object) any {
	return object.Object{"name": name, "served": true, "storage": storage, "schema": object.Object{
		"openAPIV3Schema": object.Object{"type": "object", "properties": object.Object{
			"spec": object.Object{"type": "object", "properties": fields}}}}}
}

// redefine replaces the versions of the definition, and returns the warnings.
func (r *replica) redefine(ctx context.Context, dryRun []string, versions ...any) ([]string, error) {
	r.Helper()
	scope := &request.Scope{}
	_, err := r.Update(request.NewContext(ctx, scope), r.call(crds, shipsName), metav1.UpdateOptions{DryRun: dryRun},
		func(obj object.Object) (object.Object, error) {
			object.Map(obj, "spec")["versions"] = versions
			return obj, nil
		})
	return scope.Warnings(), err
}

// generation returns the generation of the definition.
func (r *replica) generation() int64 {
	r.Helper()
	return r.call(ships, "").Resource.Definition.Generation
}

func ship(name string, spec object.Object) object.Object {
	return object.Object{"metadata": object.Object{"name": name}, "spec": spec}
}

var (
	createOptions = metav1.CreateOptions{}
	updateOptions = metav1.UpdateOptions{}
)

// setPort returns a change of a ship.
func setPort(port string) func(object.Object) (object.Object, error) {
	return func(obj object.Object) (object.Object, error) {
		object.Map(obj, "spec")["port"] = port
		return obj, nil
	}
}
