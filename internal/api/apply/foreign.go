package apply

import (
	"errors"
	"reflect"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// Foreign converts objects of kinds with a conversion webhook. Webhook calls are costly, so they are limited to served
// versions in which a manager owns fields, and to changes beyond metadata, which all versions share. Managers in an
// unserved version keep their fields unchanged: no client can write in it.
type Foreign struct {
	// Convert returns objs in another version. It does not change objs.
	Convert func(objs []map[string]any, apiVersion string) ([]map[string]any, error)
	// Served reports whether a version is served.
	Served func(apiVersion string) bool
}

// With returns the same ownership for objects that f converts.
func (o *Ownership) With(f Foreign) *Ownership {
	with := *o
	with.foreign = &f
	return &with
}

// prepared looks up earlier conversions. If one is missing, it returns only the object's metadata: then nothing else
// has changed, and managers keep their fields.
type prepared struct {
	o    *Ownership
	made map[preparedKey]*typed.TypedValue
}

type preparedKey struct {
	object  *typed.TypedValue
	version fieldpath.APIVersion
}

var _ merge.Converter = prepared{}

func (p prepared) Convert(object *typed.TypedValue, version fieldpath.APIVersion) (*typed.TypedValue, error) {
	obj, ok := object.AsValue().Unstructured().(map[string]any)
	if !ok {
		return object, errors.New("not an object")
	}
	if obj["apiVersion"] == string(version) {
		return object, nil
	}
	if made := p.made[preparedKey{object, version}]; made != nil {
		return made, nil
	}
	if _, err := p.o.types(string(version)); err != nil {
		return object, err
	}
	shared := map[string]any{"apiVersion": string(version), "kind": obj["kind"]}
	if meta, ok := obj["metadata"]; ok {
		shared["metadata"] = meta
	}
	return p.o.typed(shared, typed.AllowDuplicates)
}

func (prepared) IsMissingVersionError(err error) bool { return errors.As(err, new(errNoVersion)) }

// prepare returns the converter for an update of live to obj, for the managers of m. A failed conversion does not stop
// the update, because it concerns another version than the client's.
func (o *Ownership) prepare(
	live, obj map[string]any, liveTyped, newTyped *typed.TypedValue, m *managed,
) merge.Converter {
	p := prepared{o: o, made: map[preparedKey]*typed.TypedValue{}}
	if sameBeyondMetadata(live, obj) {
		return p
	}
	for _, set := range m.fields {
		version := set.APIVersion()
		if _, done := p.made[preparedKey{newTyped, version}]; done || string(version) == o.apiVersion ||
			!o.foreign.Served(string(version)) {
			continue
		}
		if converted, err := o.foreign.Convert([]map[string]any{live, obj}, string(version)); err == nil {
			before, err1 := o.typed(converted[0], typed.AllowDuplicates)
			after, err2 := o.typed(converted[1], typed.AllowDuplicates)
			if err1 == nil && err2 == nil {
				p.made[preparedKey{liveTyped, version}], p.made[preparedKey{newTyped, version}] = before, after
			}
		}
	}
	return p
}

func sameBeyondMetadata(a, b map[string]any) bool {
	if len(a) != len(b) {
		return false
	}
	for key, v := range a {
		w, ok := b[key]
		if key != "metadata" && (!ok || !reflect.DeepEqual(v, w)) {
			return false
		}
	}
	return true
}

// unserved removes the managers in unserved versions from m, and returns a function that restores them.
func (o *Ownership) unserved(m *managed) (restore func(*managed)) {
	if o.foreign == nil {
		return func(*managed) {}
	}
	aside := fieldpath.ManagedFields{}
	for id, set := range m.fields {
		if v := string(set.APIVersion()); v != o.apiVersion && !o.foreign.Served(v) {
			if _, err := o.types(v); err == nil {
				aside[id] = set
				delete(m.fields, id)
			}
		}
	}
	return func(after *managed) {
		for id, set := range aside {
			if _, replaced := after.fields[id]; !replaced {
				after.fields[id] = set
			}
		}
	}
}
