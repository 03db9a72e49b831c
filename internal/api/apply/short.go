package apply

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The short way handles objects that match the types of their schema, with managers in the current version only and
// list items with unique identities. It works on stored managedFields and touches only the changes. In other cases it
// reports that, and has changed nothing.

// updateShort is Update by the short way; it returns false if the short way does not apply.
func (o *Ownership) updateShort(live, obj map[string]any, name string, now time.Time) bool {
	root, ok := o.here(obj)
	if !ok || live != nil && !o.isHere(live) {
		return false
	}
	meta, _ := obj["metadata"].(map[string]any)
	if meta == nil {
		return false
	}
	sent, isSent := meta["managedFields"]
	stored, wasStored := storedEntries(live)
	switch {
	case isSent && live == nil:
		return false
	case isSent && o.subresource == "" && !equal(sent, stored):
		return false // the client sends its own managedFields
	case !wasStored && live != nil:
		if uid(live) == "" {
			return false
		}
		delete(meta, "managedFields")
		return true // never tracked, and still not
	}
	entries, ok := o.decodeShort(root, stored)
	if !ok {
		return false
	}
	delete(meta, "managedFields")
	result, ok := o.recordShort(root, live, obj, entries, name, now)
	if !ok {
		if isSent {
			meta["managedFields"] = sent
		}
		return false
	}
	setManagedFields(obj, result)
	return true
}

// here returns the type of obj if it has o's kind and version.
func (o *Ownership) here(obj map[string]any) (position, bool) {
	t, err := o.types(o.apiVersion)
	if err != nil || t.root.atomicMap() || o.reach.Only != nil || !o.isHere(obj) {
		return position{}, false
	}
	return t.root, true
}

func (o *Ownership) isHere(obj map[string]any) bool {
	return obj["apiVersion"] == o.apiVersion && obj["kind"] == o.kind
}

// storedEntries returns the managedFields of a live object; ok is false if there are none.
func storedEntries(live map[string]any) ([]any, bool) {
	meta, _ := live["metadata"].(map[string]any)
	entries, _ := meta["managedFields"].([]any)
	return entries, len(entries) > 0
}

// shortEntry is one entry of managedFields. raw is the stored entry, and must not change.
type shortEntry struct {
	manager
	raw    map[string]any
	fields fields
	time   string
}

// decodeShort decodes stored entries. It requires entries like this server's: all in this version, one for each
// manager, and matching the schema.
func (o *Ownership) decodeShort(root position, stored []any) ([]shortEntry, bool) {
	entries := make([]shortEntry, 0, len(stored)+1)
	var managers managerSet
	for _, s := range stored {
		raw, ok := s.(map[string]any)
		if !ok || raw["apiVersion"] != o.apiVersion || raw["fieldsType"] != "FieldsV1" {
			return nil, false
		}
		e := shortEntry{raw: raw}
		known := 2
		for key, into := range map[string]*string{"manager": &e.name, "subresource": &e.subresource, "time": &e.time} {
			if value, ok := raw[key]; ok {
				if *into, ok = value.(string); !ok {
					return nil, false
				}
				known++
			}
		}
		operation, _ := raw["operation"].(string)
		e.operation = metav1.ManagedFieldsOperationType(operation)
		switch e.operation {
		case metav1.ManagedFieldsOperationApply:
		case metav1.ManagedFieldsOperationUpdate:
			e.apiVersion = o.apiVersion
		default:
			return nil, false
		}
		if e.fields, ok = raw["fieldsV1"].(fields); !ok || len(e.fields) == 0 || len(raw) != known+2 || e.time != "" &&
			len(e.time) != len(time.RFC3339)-len("07:00") {
			return nil, false
		}
		if !fits(root, e.fields, false) || !managers.add(e.manager) {
			return nil, false
		}
		entries = append(entries, e)
	}
	return entries, true
}

// managerSet is a set of managers: a list while it is small, as nearly always, else a map.
type managerSet struct {
	few  []manager
	many map[manager]struct{}
}

// fewManagers is where a search of the list begins to cost more than a map.
const fewManagers = 16

// add reports whether m is new.
func (s *managerSet) add(m manager) bool {
	if s.many == nil {
		if slices.Contains(s.few, m) {
			return false
		}
		if s.few = append(s.few, m); len(s.few) > fewManagers {
			s.many = make(map[manager]struct{}, 4*fewManagers)
			for _, m := range s.few {
				s.many[m] = struct{}{}
			}
		}
		return true
	}
	_, known := s.many[m]
	s.many[m] = struct{}{}
	return !known
}

// recordShort returns managedFields after name has made obj of live. obj has none.
func (o *Ownership) recordShort(
	root position, live, obj map[string]any, entries []shortEntry, name string, now time.Time,
) ([]any, bool) {
	if live == nil {
		live = o.empty()
	}
	var d diff
	c := d.objects(root, live, obj)
	if d.unsure {
		return nil, false
	}
	o.filter(&c)
	written := strip(unite(c.modified, c.added))
	entries = lose(entries, c)
	if len(written) > 0 {
		m := o.manager(name, metav1.ManagedFieldsOperationUpdate)
		i := slices.IndexFunc(entries, func(e shortEntry) bool { return e.manager == m })
		if i < 0 {
			i = len(entries)
			entries = append(entries, shortEntry{manager: m})
		}
		entries[i].fields = unite(entries[i].fields, written)
		entries[i].time = timestamp(now)
		entries[i].raw = nil
	}
	updaters := 0
	for _, e := range entries {
		if e.operation == metav1.ManagedFieldsOperationUpdate {
			updaters++
		}
	}
	if updaters > maxUpdaters {
		return nil, false // some must be merged
	}
	return encodeShort(entries, o.apiVersion), true
}

// filter drops changes outside of the endpoint's reach.
func (o *Ownership) filter(c *change) {
	for _, f := range []*fields{&c.added, &c.modified, &c.removed} {
		if *f = o.within(*f); len(*f) == 0 {
			*f = nil
		}
	}
}

// within returns f without fields outside of the endpoint's reach. It may change the top of f.
func (o *Ownership) within(f fields) fields {
	for _, path := range o.reach.Except {
		f = without(f, path)
	}
	return f
}

// without returns f without a path. It changes the top of f; shared nodes below are copied.
func without(f fields, path []string) fields {
	key := "f:" + path[0]
	below, ok := f[key].(fields)
	if len(path) == 1 || !ok {
		delete(f, key)
		return f
	}
	if below = without(maps.Clone(below), path[1:]); len(below) == 0 {
		delete(f, key)
	} else {
		f[key] = below
	}
	return f
}

// lose removes changed and removed fields from all managers, and drops managers without fields.
func lose(entries []shortEntry, c change) []shortEntry {
	kept := entries[:0]
	for _, e := range entries {
		for _, gone := range []fields{c.modified, c.added, c.removed} {
			if len(gone) == 0 || e.fields == nil {
				continue
			}
			rest, changed := subtract(e.fields, gone)
			if changed {
				e.fields, e.raw = rest, nil
			}
		}
		if e.fields != nil {
			kept = append(kept, e)
		}
	}
	return kept
}

// strip returns f without the fields that no manager owns. Its top and its metadata must not be shared.
func strip(f fields) fields {
	delete(f, "f:apiVersion")
	delete(f, "f:kind")
	meta, ok := f["f:metadata"].(fields)
	if !ok {
		return f
	}
	meta = maps.Clone(meta)
	delete(meta, own)
	for _, name := range serverOwnedMeta {
		key := "f:" + name
		switch below, ok := meta[key].(fields); {
		case !ok:
		case len(below) == 0:
			delete(meta, key)
		case member(below):
			below = maps.Clone(below)
			delete(below, own)
			meta[key] = below
		}
	}
	if len(meta) == 0 {
		delete(f, "f:metadata")
	} else {
		f["f:metadata"] = meta
	}
	return f
}

// encodeShort returns entries as managedFields; nil if there are none.
func encodeShort(entries []shortEntry, apiVersion string) []any {
	if len(entries) == 0 {
		return nil
	}
	out := make([]map[string]any, 0, len(entries))
	for _, e := range entries {
		raw := e.raw
		if raw == nil {
			raw = entry(e.manager, apiVersion, nil, e.fields)
			if e.time != "" {
				raw["time"] = e.time
			}
		}
		out = append(out, raw)
	}
	return sorted(out)
}
