package apply

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	gvk "k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// Ownership maintains the field owners of one resource's objects, for requests to one version and subresource. It is
// immutable and shared by requests.
type Ownership struct {
	group, kind string
	apiVersion  string
	subresource string
	types       func(apiVersion string) (*objectType, error)
	// foreign is nil where versions differ in name only.
	foreign *Foreign
	// blank is an empty object of the kind, to be copied; nil for custom kinds, which then have only apiVersion and
	// kind. Built-in kinds have the fields that their Go type always writes: no manager owns an empty spec.
	blank map[string]any
	// reach limits the fields that the endpoint can change, in version apiVersion. filters is the same limit for
	// structured-merge-diff, in all versions.
	reach   catalog.ResetFields
	filters map[fieldpath.APIVersion]fieldpath.Filter
}

// objectType holds the types of one version of a resource.
type objectType struct {
	root position
	// long returns the type for the long way.
	long func() typed.ParseableType
}

func newObjectType(root position) *objectType {
	return &objectType{root: root, long: sync.OnceValue(func() typed.ParseableType { return parseable(root) })}
}

// typeKey and ownershipKey are keys of values that versions cache for this package.
type (
	typeKey      struct{}
	ownershipKey struct{ subresource string }
)

type derivedType struct {
	typ *objectType
	err error
}

// typeOf returns the type of a version, compiled at the first call.
func typeOf(v *catalog.Version) (*objectType, error) {
	d := v.Derived(typeKey{}, func() any {
		s, err := v.Schema()
		if err != nil {
			return derivedType{err: err}
		}
		if s == nil {
			return derivedType{typ: newObjectType(rootOf(nil, v.PreserveUnknownFields))}
		}
		return derivedType{typ: newObjectType(rootOf(s.Root(), v.PreserveUnknownFields))}
	}).(derivedType)
	return d.typ, d.err
}

// NewOwnership returns the ownership of r's objects for writes in version v to subresource ("", "status", ...). It is
// cached with v, so it may be called for each request. Other versions convert by strategy None; see With.
func NewOwnership(r *catalog.Resource, v *catalog.Version, subresource string) (*Ownership, error) {
	if _, err := typeOf(v); err != nil {
		return nil, fmt.Errorf("types of %s: %w", r.Qualified(), err)
	}
	return v.Derived(ownershipKey{subresource}, func() any {
		return &Ownership{
			group: r.Group, kind: r.Kind, apiVersion: r.APIVersion(v), subresource: subresource,
			blank:   blank(r, v),
			reach:   v.ResetFieldsOf(subresource, v),
			filters: filters(r, v, subresource),
			types: func(apiVersion string) (*objectType, error) {
				for _, other := range r.Versions {
					if r.APIVersion(other) == apiVersion {
						return typeOf(other)
					}
				}
				return nil, errNoVersion{apiVersion}
			},
		}
	}).(*Ownership), nil
}

// blank returns the zero value of a built-in kind's Go type as decoded JSON.
func blank(r *catalog.Resource, v *catalog.Version) map[string]any {
	if v.New == nil {
		return nil
	}
	raw, err := json.Marshal(v.New())
	if err != nil {
		return nil
	}
	var obj map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &obj); err != nil {
		return nil
	}
	obj["apiVersion"], obj["kind"] = r.APIVersion(v), r.Kind
	return obj
}

func filters(r *catalog.Resource, v *catalog.Version, subresource string) map[fieldpath.APIVersion]fieldpath.Filter {
	out := map[fieldpath.APIVersion]fieldpath.Filter{}
	for _, of := range r.Versions {
		switch reach := v.ResetFieldsOf(subresource, of); {
		case reach.Only != nil:
			out[fieldpath.APIVersion(r.APIVersion(of))] = onlyFilter(reach.Only)
		case reach.Except != nil:
			out[fieldpath.APIVersion(r.APIVersion(of))] = exceptFilter(reach.Except)
		}
	}
	return out
}

func exceptFilter(paths [][]string) fieldpath.Filter {
	set := fieldpath.NewSet()
	for _, path := range paths {
		set.Insert(fieldpath.MakePathOrDie(elements(path)...))
	}
	return fieldpath.NewExcludeSetFilter(set)
}

func onlyFilter(paths [][]string) fieldpath.Filter {
	matchers := make([]*fieldpath.SetMatcher, len(paths))
	for i, path := range paths {
		matchers[i] = fieldpath.MakePrefixMatcherOrDie(elements(path)...)
	}
	return fieldpath.NewIncludeMatcherFilter(matchers...)
}

// elements returns the parts of a path in structured-merge-diff's form.
func elements(path []string) []any {
	out := make([]any, len(path))
	for i, name := range path {
		if out[i] = name; name == "*" {
			out[i] = fieldpath.MatchAnyPathElement()
		}
	}
	return out
}

// rename converts as strategy None does.
func rename(obj map[string]any, apiVersion string) map[string]any {
	out := make(map[string]any, len(obj))
	for k, v := range obj {
		out[k] = v
	}
	out["apiVersion"] = apiVersion
	return out
}

// errNoVersion: the resource does not have the version, or no longer; ownership in it is dropped.
type errNoVersion struct{ apiVersion string }

func (e errNoVersion) Error() string { return "no version " + e.apiVersion }

// Update records in obj.metadata.managedFields that name has written obj: a create (live is nil), an update or a patch
// other than apply. live, the object before, is read only; obj may share parts of its managedFields.
//
// managedFields in obj itself are used if they are valid (subresources ignore them). now becomes the entry's time if
// the fields of name changed. After an error obj has the managedFields of live, as in Kubernetes. The error means that
// the object does not match the types of its schema, which validation reports in better words, or that a webhook failed
// to convert it.
func (o *Ownership) Update(live, obj map[string]any, name string, now time.Time) error {
	if o.updateShort(live, obj, name, now) {
		return nil
	}
	return o.updateLong(live, obj, name, now)
}

func (o *Ownership) updateLong(live, obj map[string]any, name string, now time.Time) error {
	m := requested(live, obj, o.subresource)
	setManagedFields(obj, nil)
	m, err := o.update(live, obj, m, name, now)
	var entries []any
	if err == nil {
		entries, err = m.encode()
	}
	if err != nil {
		meta, _ := live["metadata"].(map[string]any)
		entries, _ = meta["managedFields"].([]any)
	}
	setManagedFields(obj, entries)
	return err
}

// update returns the managers after name has changed live to obj.
func (o *Ownership) update(live, obj map[string]any, m *managed, name string, now time.Time) (*managed, error) {
	if len(m.fields) == 0 && uid(live) != "" {
		return m, nil // an object that was never tracked stays untracked
	}
	if live == nil {
		live = o.empty()
	}
	newTyped, err := o.typed(obj, typed.AllowDuplicates)
	if err != nil {
		return nil, fmt.Errorf("failed to convert new object (%s) to smd typed: %w", o.describe(obj), err)
	}
	liveTyped, err := o.typed(live, typed.AllowDuplicates)
	if err != nil {
		return nil, fmt.Errorf("failed to convert live object (%s) to smd typed: %w", o.describe(live), err)
	}
	updater := o.updater()
	if o.foreign != nil {
		//lint:ignore SA1019 there is no other way to give an updater another converter for one update
		updater.Converter = o.prepare(live, obj, liveTyped, newTyped, m)
	}
	_, fields, err := updater.Update(liveTyped, newTyped, fieldpath.APIVersion(o.apiVersion), m.fields, self)
	if err != nil {
		return nil, fmt.Errorf("failed to update ManagedFields (%s): %w", o.describe(obj), err)
	}
	m = &managed{fields: fields, times: m.times}
	m.strip(self)
	if set, ok := m.fields[self]; ok {
		delete(m.fields, self)
		id := o.manager(name, metav1.ManagedFieldsOperationUpdate).id()
		if before, ok := m.fields[id]; ok {
			set = fieldpath.NewVersionedSet(set.Set().Union(before.Set()), set.APIVersion(), set.Applied())
		}
		m.fields[id] = set
		m.times[id] = &metav1.Time{Time: now.UTC()}
	}
	m.limit()
	return m, nil
}

// self is the writer's temporary name during an update, to distinguish its new fields from its old ones.
const self = "current-operation"

// beforeFirstApply is the name of a manager. At the first apply to an object without managers, it becomes the owner of
// the object's earlier fields.
const beforeFirstApply = "before-first-apply"

// manager returns the identity of a writer with the given name.
func (o *Ownership) manager(name string, operation metav1.ManagedFieldsOperationType) manager {
	if name == "" {
		name = "unknown"
	}
	m := manager{name: name, operation: operation, subresource: o.subresource}
	if operation == metav1.ManagedFieldsOperationUpdate {
		m.apiVersion = o.apiVersion
	}
	return m
}

// empty returns an empty object of the kind.
func (o *Ownership) empty() map[string]any {
	if o.blank != nil {
		return runtime.DeepCopyJSON(o.blank)
	}
	return map[string]any{"apiVersion": o.apiVersion, "kind": o.kind}
}

func (o *Ownership) typed(obj map[string]any, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	apiVersion, _ := obj["apiVersion"].(string)
	kind, _ := obj["kind"].(string)
	t, err := o.types(apiVersion)
	if err != nil || kind != o.kind {
		return nil, fmt.Errorf("no corresponding type for %v", kindOf(obj))
	}
	return t.long().FromUnstructured(obj, options...)
}

func (o *Ownership) updater() *merge.Updater {
	//lint:ignore SA1019 there is no other way to set these; kube does the same
	return &merge.Updater{Converter: converter{o, map[preparedKey]*typed.TypedValue{}}, IgnoreFilter: o.filters}
}

// describe names an object as kube's messages do.
func (o *Ownership) describe(obj map[string]any) string {
	meta, _ := obj["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	namespace, _ := meta["namespace"].(string)
	return fmt.Sprintf("%v/%v; %v", namespace, name, kindOf(obj))
}

// kindOf returns the kind and version of an object; zero if its apiVersion is malformed.
func kindOf(obj map[string]any) gvk.GroupVersionKind {
	apiVersion, _ := obj["apiVersion"].(string)
	kind, _ := obj["kind"].(string)
	gv, err := gvk.ParseGroupVersion(apiVersion)
	if err != nil {
		return gvk.GroupVersionKind{}
	}
	return gv.WithKind(kind)
}

func uid(obj map[string]any) string {
	meta, _ := obj["metadata"].(map[string]any)
	uid, _ := meta["uid"].(string)
	return uid
}

// copyObject copies an object down to where managedFields hangs.
func copyObject(obj map[string]any) map[string]any {
	out := make(map[string]any, len(obj))
	for k, v := range obj {
		out[k] = v
	}
	if meta, ok := out["metadata"].(map[string]any); ok {
		inner := make(map[string]any, len(meta)+1)
		for k, v := range meta {
			inner[k] = v
		}
		out["metadata"] = inner
	}
	return out
}
