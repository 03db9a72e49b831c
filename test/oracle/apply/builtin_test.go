package apply

import (
	"encoding/json"
	"math/rand"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/meta"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/bowsprit/bowsprit/internal/api/apply"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/test/oracle/fixture"
)

// typedCopy stands for a conversion within one version, which also sets the object's kind.
type typedCopy struct {
	runtime.ObjectConvertor
	kind schema.GroupVersionKind
}

func (c typedCopy) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	out := in.DeepCopyObject()
	out.GetObjectKind().SetGroupVersionKind(c.kind)
	return out, nil
}

// builtinWorld is one version of a built-in kind on both sides.
type builtinWorld struct {
	r    *catalog.Resource
	v    *catalog.Version
	kind schema.GroupVersionKind
	ours *apply.Ownership
	// theirs is the field manager as k8s.io/apiserver sets it up for a built-in kind.
	theirs *managedfields.FieldManager
	fill   *randfill.Filler
	g      *rand.Rand
}

func newBuiltinWorld(
	t *testing.T, r *catalog.Resource, v *catalog.Version, converter managedfields.TypeConverter, s int64,
) *builtinWorld {
	t.Helper()
	w := &builtinWorld{
		r: r, v: v, kind: schema.FromAPIVersionAndKind(r.APIVersion(v), r.Kind), g: rand.New(rand.NewSource(s)),
	}
	w.fill = fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(s),
		serializer.NewCodecFactory(scheme.Scheme)).NumElements(1, 3).NilChance(0.5)
	var err error
	if w.ours, err = apply.NewOwnership(r, v, ""); err != nil {
		t.Fatal(err)
	}
	reset := map[fieldpath.APIVersion]*fieldpath.Set{}
	set := fieldpath.NewSet()
	for _, path := range v.ResetFieldsOf("", v).Except {
		set.Insert(fieldpath.MakePathOrDie(path[0])) // they have one name each
	}
	reset[fieldpath.APIVersion(r.APIVersion(v))] = set
	w.theirs, err = managedfields.NewDefaultFieldManager(converter, typedCopy{kind: w.kind}, nopDefaulter{},
		scheme.Scheme, w.kind, w.kind.GroupVersion(), "", fieldpath.NewExcludeFilterSetMap(reset))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// random fills a fresh object.
func (w *builtinWorld) random(t *testing.T) runtime.Object {
	t.Helper()
	obj := fixture.Empty(t, w.r, w.v)
	w.fill.Fill(obj)
	shorten(reflect.ValueOf(obj), map[reflect.Type]int{})
	w.identify(t, obj)
	return obj
}

// levels is how often a type may contain itself: the templates of a Workload, which validation limits to as many.
const levels = 4

// shorten removes the lists below the levels that are allowed. inside counts the types around v.
func shorten(v reflect.Value, inside map[reflect.Type]int) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			shorten(v.Elem(), inside)
		}
	case reflect.Slice:
		if inside[v.Type().Elem()] == levels {
			v.SetZero()
		}
		for i := range v.Len() {
			shorten(v.Index(i), inside)
		}
	case reflect.Struct:
		inside[v.Type()]++
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				shorten(v.Field(i), inside)
			}
		}
		inside[v.Type()]--
	}
}

func (w *builtinWorld) identify(t *testing.T, obj runtime.Object) {
	t.Helper()
	if secret, ok := obj.(*corev1.Secret); ok {
		secret.StringData = nil
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		t.Fatal(err)
	}
	m.SetName("it")
	m.SetNamespace("")
	m.SetUID(types.UID("1234"))
	m.SetManagedFields(nil)
	m.SetResourceVersion("")
	m.SetSelfLink("")
	m.SetGenerateName("")
	m.SetOwnerReferences(nil)
	m.SetCreationTimestamp(metav1.NewTime(time.Unix(1700000000, 0).UTC()))
	obj.GetObjectKind().SetGroupVersionKind(w.kind)
}

// object is a typed object as decoded JSON.
func object(t *testing.T, obj runtime.Object) map[string]any {
	t.Helper()
	raw, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	v, err := codec.DecodeJSON(raw)
	if err != nil {
		t.Fatal(err)
	}
	return v.(map[string]any)
}

func (w *builtinWorld) typed(t *testing.T, obj map[string]any) runtime.Object {
	t.Helper()
	out := fixture.Empty(t, w.r, w.v)
	if err := json.Unmarshal(codec.AppendJSON(nil, obj), out); err != nil {
		t.Fatal(err)
	}
	return out
}

// part returns a configuration with some of the object's fields, as an applier sends it.
func (w *builtinWorld) part(obj map[string]any) map[string]any {
	out := thin(w.g, obj).(map[string]any)
	out["apiVersion"], out["kind"] = w.kind.GroupVersion().String(), w.kind.Kind
	m, _ := out["metadata"].(map[string]any)
	if m == nil {
		m = map[string]any{}
		out["metadata"] = m
	}
	for _, name := range []string{"uid", "creationTimestamp", "generation", "managedFields", "resourceVersion"} {
		delete(m, name)
	}
	m["name"] = "it"
	return out
}

// thin drops fields of objects at random. Items of lists stay whole, because their fields include their keys.
func thin(g *rand.Rand, v any) any {
	obj, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := map[string]any{}
	for name, item := range obj {
		if g.Intn(3) > 0 && item != nil {
			out[name] = thin(g, item)
		}
	}
	return out
}

// TestBuiltinHistories plays short random histories of objects of every built-in kind on both sides: a create, updates,
// applies of parts, with and without force.
func TestBuiltinHistories(t *testing.T) {
	converter := applyconfigurations.NewTypeConverter(scheme.Scheme)
	steps, conflicts, count := 0, 0, 0
	for _, r := range kinds.Resources() {
		if r.Plural == "customresourcedefinitions" {
			continue // not in client-go's models, and endless when filled at random
		}
		if r.Virtual {
			continue // fields that are not stored cannot change
		}
		for _, v := range r.Versions {
			count++
			t.Run(r.Qualified()+" "+v.Name, func(t *testing.T) {
				for i := range int64(max(*rounds/60, 1)) {
					w := newBuiltinWorld(t, r, v, converter, i+1)
					s, c := w.play(t)
					steps, conflicts = steps+s, conflicts+c
				}
			})
		}
	}
	t.Logf("%d kinds, %d steps, %d conflicts", count, steps, conflicts)
}

func (w *builtinWorld) play(t *testing.T) (steps, conflicts int) {
	t.Helper()
	var live map[string]any
	for step := range 8 {
		name := []string{"alice", "bob", "carol", "kubectl"}[w.g.Intn(4)]
		liveTyped, _ := scheme.Scheme.New(w.kind)
		liveTyped.GetObjectKind().SetGroupVersionKind(w.kind)
		if live != nil {
			live = age(live)
			liveTyped = w.typed(t, live)
		}
		var got map[string]any
		var theirs runtime.Object
		var gotErr, wantErr error
		action := ""
		switch fresh := w.random(t); {
		case step == 0 || step%3 == 2:
			if live != nil { // some of the live object, some of the new one
				mixed := object(t, fresh)
				for key, value := range live {
					if w.g.Intn(2) == 0 || key == "metadata" {
						mixed[key] = value
					}
				}
				fresh = w.typed(t, mixed)
			}
			obj := object(t, fresh)
			action = "update by " + name + "\n" + text(obj)
			gotErr = w.ours.Update(live, obj, name, time.Now())
			got = obj
			theirs, wantErr = w.theirs.Update(liveTyped, fresh, name)
		default:
			from := object(t, fresh)
			if w.g.Intn(2) == 0 {
				from = live
			}
			config := w.part(from)
			force := w.g.Intn(2) == 0
			action = "apply by " + name + "\n" + text(config)
			got, gotErr = w.ours.Apply(live, config, name, force, time.Now())
			theirs, wantErr = w.theirs.Apply(liveTyped,
				&unstructured.Unstructured{Object: runtime.DeepCopyJSON(config)}, name, force)
		}
		steps++
		if failure(gotErr) != failure(wantErr) {
			t.Fatalf("step %d: %s\nlive %s\nerror\n%v\nkube says\n%v", step, action, text(live), gotErr, wantErr)
		}
		if gotErr != nil {
			conflicts++
			continue
		}
		want := object(t, w.typed(t, object(t, theirs)))
		gotAll, wantAll := normal(object(t, w.typed(t, got))), normal(want)
		if !reflect.DeepEqual(gotAll, wantAll) {
			t.Fatalf("step %d: %s\nlive %s\n%s", step, action, text(live), difference(text(gotAll), text(wantAll)))
		}
		live = object(t, w.typed(t, got))
	}
	return steps, conflicts
}
