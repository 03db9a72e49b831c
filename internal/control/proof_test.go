package control

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
)

var thingsResource = catalog.GroupResource{Group: "example.com", Resource: "things"}

// pair is two replicas on one store.
type pair struct {
	*testing.T
	a, b *verb.Verbs
	// check runs before the check of each object by a, in a proof.
	check func(name string)
	etcd  *memory.Etcd
}

func startPair(t *testing.T) *pair {
	p := &pair{T: t, check: func(string) {}}
	p.etcd = memory.New()
	p.a, p.b = p.start(p.etcd), p.start(p.etcd)
	return p
}

func (p *pair) start(etcd *memory.Etcd) *verb.Verbs {
	st, err := store.Open(p.Context(), store.Config{Etcd: etcd.Shared()})
	if err != nil {
		p.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	resources := kinds.Resources()
	for _, r := range resources {
		if r.Plural == definitionsResource.Resource {
			p.watch(r.Strategy)
		}
	}
	cat := catalog.New(resources...)
	view := watchcache.New(st, watchcache.Options{Log: log})
	Publish(cat, view, log)
	verbs := verb.New(verb.Config{
		Catalog: cat, View: view, Store: st, Now: time.Now, NewUID: uuid.NewString, NewSuffix: uuid.NewString, Log: log,
	})
	if err := view.Load(p.Context()); err != nil {
		p.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	var views sync.WaitGroup
	views.Go(func() { _ = view.Run(ctx) })
	p.Cleanup(func() {
		end()
		views.Wait()
		st.Close()
	})
	return verbs
}

// watch calls p.check before each check of an object.
func (p *pair) watch(s *catalog.Strategy) {
	proof := s.Proof
	s.Proof = func(obj, old catalog.Object) (*catalog.Proof, error) {
		out, err := proof(obj, old)
		if err != nil || out == nil {
			return out, err
		}
		check := out.Check
		out.Check = func(version string, obj catalog.Object) error {
			p.check(object.String(obj, "metadata", "name"))
			return check(version, obj)
		}
		return out, nil
	}
}

// call returns a call of a replica, whose view has all writes.
func (p *pair) call(v *verb.Verbs, gr catalog.GroupResource, name string) *verb.Call {
	p.Helper()
	if _, err := v.View().Fresh(p.Context()); err != nil {
		p.Fatal(err)
	}
	c, err := v.Call(gr, "", name, ControllerUser("test"))
	if err != nil {
		p.Fatal(err)
	}
	return c
}

func (p *pair) create(v *verb.Verbs, gr catalog.GroupResource, obj object.Object) {
	p.Helper()
	c := p.call(v, gr, "")
	obj, err := v.New(c, obj)
	if err != nil {
		p.Fatal(err)
	}
	if _, err := v.Create(p.Context(), c, obj, metav1.CreateOptions{}); err != nil {
		p.Fatal(err)
	}
}

func namedThing(name, bucket string) object.Object {
	return object.Object{"metadata": object.Object{"name": name}, "bucket": bucket}
}

func property(name string, of object.Object) object.Object {
	return object.Object{"openAPIV3Schema": object.Object{"type": "object", "properties": object.Object{name: of}}}
}

// define creates a definition of one version.
func (p *pair) define() {
	p.Helper()
	p.create(p.a, definitionsResource, object.Object{
		"metadata": object.Object{"name": "things.example.com"},
		"spec": object.Object{
			"group": "example.com", "scope": "Cluster", "names": object.Object{"plural": "things", "kind": "Thing"},
			"versions": []any{object.Object{"name": "v1", "served": true, "storage": true,
				"schema": property("bucket", object.Object{"type": "string"})}},
		},
	})
}

// addRules adds a version and rules to the definition. A bucket of more than 100 characters is invalid in it; generated
// objects have none.
func (p *pair) addRules(ctx context.Context) error {
	p.Helper()
	c := p.call(p.a, definitionsResource, "things.example.com")
	_, err := p.a.Update(ctx, c, metav1.UpdateOptions{}, func(obj object.Object) (object.Object, error) {
		object.Child(object.Meta(obj), "annotations")["bowsprit.dev/conversion"] =
			"steps: [{from: v1, to: v2, rules: [{wrap: bucket, to: buckets}]}]"
		spec := object.Map(obj, "spec")
		spec["conversion"] = object.Object{"strategy": "Declarative"}
		spec["versions"] = append(spec["versions"].([]any), object.Object{
			"name": "v2", "served": true, "storage": false, "schema": property("buckets", object.Object{
				"type": "array", "items": object.Object{"type": "string", "maxLength": int64(100)}})})
		return obj, nil
	})
	return err
}

// set updates a thing by a call that began earlier.
func (p *pair) set(v *verb.Verbs, c *verb.Call, bucket string) error {
	_, err := v.Update(p.Context(), c, metav1.UpdateOptions{}, func(obj object.Object) (object.Object, error) {
		obj["bucket"] = bucket
		return obj, nil
	})
	return err
}

// generation returns the generation of the definition.
func (p *pair) generation() int64 {
	p.Helper()
	return p.call(p.b, thingsResource, "").Resource.Definition.Generation
}

// TestProofCoversLateObjects checks that a proof includes an object that another replica wrote after the proof had
// begun, and that a write of an object that began before the change of the definition does not end after it.
func TestProofCoversLateObjects(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	p.define()
	p.create(p.a, thingsResource, namedThing("first", "a"))
	early := p.call(p.b, thingsResource, "first")
	var checked []string
	var writes sync.WaitGroup
	var lateWrite error
	p.check = func(name string) {
		checked = append(checked, name)
		switch name {
		case "first":
			p.create(p.b, thingsResource, namedThing("late", "b"))
		case "late": // the definition holds all writes of things
			writes.Go(func() { lateWrite = p.set(p.b, early, "longer") })
		}
	}
	if err := p.addRules(t.Context()); err != nil {
		t.Fatal(err)
	}
	writes.Wait()
	if got := strings.Join(checked, " "); got != "first late" {
		t.Errorf("checked: %s", got)
	}
	if !apierrors.IsTooManyRequests(lateWrite) {
		t.Errorf("a write that began under the former definition: %v", lateWrite)
	}
	if err := p.set(p.b, p.call(p.b, thingsResource, "first"), "c"); err != nil {
		t.Errorf("a write under the new definition: %v", err)
	}
}

// TestProofRefuses checks that objects that do not convert refuse the change of the definition, whenever they were
// written, and that writes go on afterwards.
func TestProofRefuses(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"first", "late"} {
		t.Run(bad, func(t *testing.T) {
			t.Parallel()
			p := startPair(t)
			p.define()
			text := map[string]string{"first": "a", "late": "b", bad: strings.Repeat("longer", 20)}
			p.create(p.a, thingsResource, namedThing("first", text["first"]))
			early := p.call(p.b, thingsResource, "first")
			p.check = func(name string) {
				if name == "first" {
					p.create(p.b, thingsResource, namedThing("late", text["late"]))
				}
			}
			err := p.addRules(t.Context())
			want := "object " + bad + ", stored in example.com/v1: in version v2 it is invalid: buckets[0]: Too long"
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) ||
				strings.Contains(err.Error(), "longer") {
				t.Errorf("got %v, want %s, without the value", err, want)
			}
			if g := p.generation(); g != 1 {
				t.Errorf("generation %d", g)
			}
			if err := p.set(p.b, early, "d"); err != nil {
				t.Errorf("a write after the refusal: %v", err)
			}
		})
	}
}

// TestProofEnds checks that a proof ends with the client's request, before or during the hold, with nothing changed.
func TestProofEnds(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"first", "late"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			p := startPair(t)
			p.define()
			p.create(p.a, thingsResource, namedThing("first", "a"))
			p.create(p.a, thingsResource, namedThing("second", "a"))
			early := p.call(p.b, thingsResource, "first")
			ctx, end := context.WithCancel(t.Context())
			defer end()
			p.check = func(name string) {
				switch name {
				case at:
					end()
				case "first":
					p.create(p.b, thingsResource, namedThing("late", "b"))
					p.create(p.b, thingsResource, namedThing("later", "b"))
				}
			}
			if err := p.addRules(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			if g := p.generation(); g != 1 {
				t.Errorf("generation %d", g)
			}
			if err := p.set(p.b, early, "d"); err != nil {
				t.Errorf("a write after the end: %v", err)
			}
		})
	}
}

// TestProofAtCreation checks that a new definition with rules is proven on the objects of a former one, which are in
// the store without a definition.
func TestProofAtCreation(t *testing.T) {
	t.Parallel()
	for bucket, want := range map[string]string{"short": "", strings.Repeat("long", 30): "object orphan, stored in example.com/v1"} {
		p := startPair(t)
		st, err := store.Open(t.Context(), store.Config{Etcd: p.etcd.Shared()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { st.Close() })
		if _, err := st.Create(t.Context(), "example.com/things/orphan", []byte(`{"apiVersion":"example.com/v1",`+
			`"kind":"Thing","metadata":{"name":"orphan","uid":"1"},"bucket":"`+bucket+`"}`)); err != nil {
			t.Fatal(err)
		}
		c := p.call(p.a, definitionsResource, "")
		obj, err := p.a.New(c, object.Object{
			"metadata": object.Object{"name": "things.example.com", "annotations": object.Object{
				"bowsprit.dev/conversion": "steps: [{from: v1, to: v2, rules: [{wrap: bucket, to: buckets}]}]"}},
			"spec": object.Object{
				"group": "example.com", "scope": "Cluster", "names": object.Object{"plural": "things", "kind": "Thing"},
				"conversion": object.Object{"strategy": "Declarative"},
				"versions": []any{
					object.Object{"name": "v1", "served": true, "storage": true,
						"schema": property("bucket", object.Object{"type": "string"})},
					object.Object{"name": "v2", "served": true, "storage": false,
						"schema": property("buckets", object.Object{"type": "array", "items": object.Object{
							"type": "string", "maxLength": int64(100)}})},
				},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.a.Create(t.Context(), c, obj, metav1.CreateOptions{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.5s: got %v, want %q", bucket, err, want)
		}
	}
}
