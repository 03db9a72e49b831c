package apply

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sort"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/bowsprit/bowsprit/internal/api/apply"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

var (
	rounds = flag.Int("rounds", 300, "random definitions to try")
	seed   = flag.Uint64("seed", 0, "of the first definition; 0 is the fixed default")
)

const group = "example.com"

// world is one definition on both sides.
type world struct {
	crd      *apiextensionsv1.CustomResourceDefinition
	types    managedfields.TypeConverter
	resource *catalog.Resource
}

func newWorld(t *testing.T, versions map[string]*apiextensionsv1.JSONSchemaProps, status bool) *world {
	t.Helper()
	w := &world{crd: &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: group, Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{
			Plural: "things", Singular: "thing", Kind: "Thing", ListKind: "ThingList",
		},
	}}}
	w.resource = &catalog.Resource{
		Group: group, Plural: "things", Kind: "Thing", Definition: catalog.Definition{Name: "things." + group},
	}
	for name, props := range versions {
		v := apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: props},
		}
		if status {
			v.Subresources = &apiextensionsv1.CustomResourceSubresources{
				Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
			}
		}
		w.crd.Spec.Versions = append(w.crd.Spec.Versions, v)
		w.resource.Versions = append(w.resource.Versions, &catalog.Version{Name: name, Served: true, Status: status,
			Source: func() (*apiextensionsv1.JSONSchemaProps, error) { return props, nil }})
	}
	models := map[string]*spec.Schema{}
	for name := range versions {
		doc, err := builder.BuildOpenAPIV3(w.crd, name, builder.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for name, model := range doc.Components.Schemas {
			models[name] = model
		}
	}
	var err error
	if w.types, err = managedfields.NewTypeConverter(models, false); err != nil {
		t.Fatal(err)
	}
	return w
}

// theirs is the field manager as k8s.io/apiextensions-apiserver sets it up.
func (w *world) theirs(t *testing.T, version, subresource string, status bool) *managedfields.FieldManager {
	t.Helper()
	reset := map[fieldpath.APIVersion]*fieldpath.Set{}
	if status {
		switch subresource {
		case "":
			reset[fieldpath.APIVersion(group+"/"+version)] = fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
		case "status":
			for _, v := range w.crd.Spec.Versions {
				reset[fieldpath.APIVersion(group+"/"+v.Name)] = fieldpath.NewSet(fieldpath.MakePathOrDie("metadata"),
					fieldpath.MakePathOrDie("spec"))
			}
		}
	}
	kind := schema.GroupVersionKind{Group: group, Version: version, Kind: "Thing"}
	m, err := managedfields.NewDefaultCRDFieldManager(w.types, nopConverter{}, nopDefaulter{}, creater{}, kind,
		kind.GroupVersion(), subresource, fieldpath.NewExcludeFilterSetMap(reset))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (w *world) ours(t *testing.T, version, subresource string) *apply.Ownership {
	t.Helper()
	o, err := apply.NewOwnership(w.resource, w.resource.Version(version), subresource)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

type nopConverter struct{ runtime.ObjectConvertor }

func (nopConverter) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	u := in.(*unstructured.Unstructured).DeepCopy()
	kind, _ := target.KindForGroupVersionKinds([]schema.GroupVersionKind{u.GroupVersionKind()})
	u.SetGroupVersionKind(kind)
	return u, nil
}

type nopDefaulter struct{}

func (nopDefaulter) Default(runtime.Object) {}

type creater struct{}

func (creater) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u, nil
}

// longAgo is the time of every entry before a step, so that the entries that a step touches show.
const longAgo = "2020-01-01T00:00:00Z"

func age(obj map[string]any) map[string]any {
	obj = runtime.DeepCopyJSON(obj)
	meta, _ := obj["metadata"].(map[string]any)
	entries, _ := meta["managedFields"].([]any)
	for _, e := range entries {
		e.(map[string]any)["time"] = longAgo
	}
	return obj
}

// normal makes the two sides comparable: new times become one, entries are sorted without regard to time.
func normal(obj map[string]any) map[string]any {
	if obj == nil {
		return nil
	}
	obj = runtime.DeepCopyJSON(obj)
	meta, _ := obj["metadata"].(map[string]any)
	entries, _ := meta["managedFields"].([]any)
	for _, e := range entries {
		if e := e.(map[string]any); e["time"] != longAgo {
			e["time"] = "now"
		}
	}
	sort.Slice(entries, func(i, j int) bool { return text(entries[i]) < text(entries[j]) })
	return obj
}

func text(v any) string {
	raw, _ := json.MarshalIndent(v, "", " ")
	return string(raw)
}

// failure returns the text of an error as a client sees it, sorted.
func failure(err error) string {
	if err == nil {
		return ""
	}
	if status, ok := err.(*apierrors.StatusError); ok {
		var causes []string
		if status.ErrStatus.Details != nil {
			for _, c := range status.ErrStatus.Details.Causes {
				causes = append(causes, fmt.Sprint(c))
			}
		}
		sort.Strings(causes)
		return fmt.Sprint(status.ErrStatus.Code, status.ErrStatus.Reason, status.ErrStatus.Message, causes)
	}
	// The violation that is found first depends on the order of a map.
	message, _, _ := strings.Cut(strings.ReplaceAll(err.Error(), " (", ":"), ":")
	if strings.HasPrefix(message, ".") {
		message = "errors"
	}
	return message
}

// TestHistories plays random histories of one object on both sides, and compares the result of each step.
func TestHistories(t *testing.T) {
	first := uint64(1)
	if *seed != 0 {
		first = *seed
	}
	steps, failures, conflicts := 0, 0, 0
	for i := range uint64(*rounds) {
		g := generator{rand.New(rand.NewPCG(first+i, 7))}
		versions := map[string]*apiextensionsv1.JSONSchemaProps{"v1": g.schema()}
		if g.one(3) {
			versions["v2"] = versions["v1"]
			if g.one(2) {
				versions["v2"] = g.alter(versions["v1"])
			} else if g.one(8) {
				versions["v2"] = g.schema()
			}
		}
		status := g.one(2)
		w := newWorld(t, versions, status)
		var live map[string]any
		for step := range 12 {
			if g.one(20) { // the definition changes
				versions["v1"] = g.alter(versions["v1"])
				w = newWorld(t, versions, status)
			}
			version := "v1"
			if versions["v2"] != nil && g.one(3) {
				version = "v2"
			}
			subresource := ""
			if live != nil && status && g.one(4) {
				subresource = "status"
			}
			name := g.pick("alice", "bob", "carol", "kubectl")
			if g.one(40) {
				name = ""
			}
			gotObj, wantObj := map[string]any(nil), map[string]any(nil)
			var gotErr, wantErr error
			action := ""
			if live != nil {
				live = age(live)
				live["apiVersion"] = group + "/" + version
			}
			before := text(live)
			if g.one(2) {
				obj := g.instance(versions[version], version, 60)
				if live != nil && !g.one(3) {
					obj = g.mutate(live, versions[version], version)
				}
				g.identify(obj, live)
				g.tamper(obj, live)
				action = fmt.Sprintf("update by %q, version %s, subresource %q\n%s", name, version, subresource,
					text(obj))
				gotObj = runtime.DeepCopyJSON(obj)
				gotErr = w.ours(t, version, subresource).Update(live, gotObj, name, time.Now())
				wantObj, wantErr = theirUpdate(w.theirs(t, version, subresource, status), live, obj, version, name)
			} else {
				config := g.instance(versions[version], version, 40)
				if live != nil && g.one(3) {
					config = g.mutate(live, versions[version], version)
					delete(config["metadata"].(map[string]any), "managedFields")
				}
				force := g.one(3)
				action = fmt.Sprintf("apply by %q, version %s, subresource %q, force %v\n%s", name, version, subresource,
					force, text(config))
				kept := text(config)
				gotObj, gotErr = w.ours(t, version, subresource).Apply(live, config, name, force, time.Now())
				if text(config) != kept {
					t.Fatalf("seed %d step %d: %s\napplied configuration was changed", first+i, step, action)
				}
				wantObj, wantErr = theirApply(w.theirs(t, version, subresource, status), live, config, version, name,
					force)
			}
			if text(live) != before {
				t.Fatalf("seed %d step %d: %s\nlive object was changed", first+i, step, action)
			}
			steps++
			if failure(gotErr) != failure(wantErr) {
				t.Fatalf("seed %d step %d: %s\nlive %s\nerror\n%v\nkube says\n%v\nschema %s", first+i, step, action,
					before, gotErr, wantErr, text(versions))
			}
			if gotErr != nil {
				failures++
				if apierrors.IsConflict(gotErr) {
					conflicts++
				}
				continue
			}
			if got, want := normal(gotObj), normal(wantObj); !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d step %d: %s\nlive %s\n%s\nschema %s", first+i, step, action, before,
					difference(text(got), text(want)), text(versions))
			}
			live = runtime.DeepCopyJSON(gotObj)
			meta := live["metadata"].(map[string]any)
			meta["uid"] = "1234"
			meta["creationTimestamp"] = "2020-01-01T00:00:00Z"
			meta["resourceVersion"] = fmt.Sprint(step)
		}
	}
	t.Logf("%d definitions, %d steps, %d errors of which %d conflicts", *rounds, steps, failures, conflicts)
	if conflicts == 0 || failures == steps {
		t.Error("histories are not mixed enough")
	}
}

func difference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d: %s, kube has %s\n--- got\n%s\n--- want\n%s", i+1, g[i], w[i], got, want)
		}
	}
	return fmt.Sprintf("--- got\n%s\n--- want\n%s", got, want)
}

func theirUpdate(m *managedfields.FieldManager, live, obj map[string]any, version, name string) (map[string]any,
	error) {
	out, err := m.Update(wrap(live, version), &unstructured.Unstructured{Object: runtime.DeepCopyJSON(obj)}, name)
	if err != nil {
		return nil, err
	}
	return out.(*unstructured.Unstructured).Object, nil
}

func theirApply(
	m *managedfields.FieldManager, live, config map[string]any, version, name string, force bool,
) (map[string]any, error) {
	out, err := m.Apply(wrap(live, version), &unstructured.Unstructured{Object: runtime.DeepCopyJSON(config)}, name,
		force)
	if err != nil {
		return nil, err
	}
	return out.(*unstructured.Unstructured).Object, nil
}

// wrap is the live object as kube's handlers pass it; a new one has its kind only.
func wrap(live map[string]any, version string) *unstructured.Unstructured {
	if live == nil {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/" + version, "kind": "Thing"}}
	}
	return &unstructured.Unstructured{Object: runtime.DeepCopyJSON(live)}
}

func (g generator) instance(s *apiextensionsv1.JSONSchemaProps, version string, fill int) map[string]any {
	obj := g.fields(s, fill)
	obj["apiVersion"], obj["kind"] = group+"/"+version, "Thing"
	obj["metadata"] = g.meta("it", fill)
	return obj
}

// mutate returns live with new values for some top-level fields and fields of spec.
func (g generator) mutate(live map[string]any, s *apiextensionsv1.JSONSchemaProps, version string) map[string]any {
	obj := runtime.DeepCopyJSON(live)
	obj["apiVersion"] = group + "/" + version
	fresh := g.instance(s, version, 70)
	for range 1 + g.IntN(3) {
		for _, part := range []string{"spec", "status", "metadata", "extra"} {
			from, ok := fresh[part].(map[string]any)
			into, ok2 := obj[part].(map[string]any)
			if !ok || !ok2 || g.one(2) {
				continue
			}
			for k, v := range from {
				if g.one(3) {
					into[k] = v
				} else if g.one(6) {
					delete(into, k)
				}
			}
		}
	}
	return obj
}

// identify adds the fields to an update that the server would have set.
func (g generator) identify(obj, live map[string]any) {
	if live == nil {
		return
	}
	meta, from := obj["metadata"].(map[string]any), live["metadata"].(map[string]any)
	for _, k := range []string{"uid", "creationTimestamp"} {
		meta[k] = from[k]
	}
	meta["generation"] = int64(g.IntN(9))
}

// tamper sometimes sends managedFields.
func (g generator) tamper(obj, live map[string]any) {
	meta := obj["metadata"].(map[string]any)
	switch g.IntN(30) {
	case 0:
		meta["managedFields"] = []any{}
	case 1:
		meta["managedFields"] = []any{map[string]any{}}
	case 2:
		meta["managedFields"] = []any{map[string]any{"manager": "mallory", "operation": "Update", "apiVersion": group +
			"/v1", "fieldsType": "FieldsV1", "time": longAgo,
			"fieldsV1": map[string]any{
				"f:spec": map[string]any{
					".": map[string]any{}, "f:f0": map[string]any{}, "f:none": map[string]any{"f:x": map[string]any{}},
				},
			}}}
	case 3:
		meta["managedFields"] = []any{
			map[string]any{"manager": "mallory", "operation": "Steal", "apiVersion": group + "/v1"},
		}
	case 4:
		meta["managedFields"] = []any{map[string]any{"manager": "old", "operation": "Update", "apiVersion": group +
			"/v0", "fieldsType": "FieldsV1", "time": longAgo,
			"fieldsV1": map[string]any{"f:spec": map[string]any{}}}}
	case 5, 6, 7:
		delete(meta, "managedFields")
	}
}
