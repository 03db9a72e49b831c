package apply

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// applyShort is Apply by the short way; ok is false if the short way does not apply, and in all cases of errors. It
// handles applies that remove nothing: a manager's first, and later ones with all fields of the previous one.
func (o *Ownership) applyShort(
	live, applied map[string]any, name string, force bool, now time.Time,
) (result map[string]any, ok bool) {
	root, ok := o.here(live)
	if !ok || !o.isHere(applied) || name == kubectl && annotation(live, lastAppliedAnnotation) != "" {
		return nil, false
	}
	meta, _ := applied["metadata"].(map[string]any)
	if _, ok := meta["managedFields"]; ok || meta == nil {
		return nil, false
	}
	stored, tracked := storedEntries(live)
	if !tracked && (uid(live) != "" || len(live) > len(o.empty())) {
		return nil, false // the owners of existing fields must be determined first
	}
	entries, ok := o.decodeShort(root, stored)
	if !ok {
		return nil, false
	}

	d := diff{distinct: true}
	claimed := d.claims(root, applied)
	d.distinct = false
	if d.unsure {
		return nil, false
	}
	claimed = o.within(claimed)
	m := o.manager(name, metav1.ManagedFieldsOperationApply)
	self := slices.IndexFunc(entries, func(e shortEntry) bool { return e.manager == m })
	if self >= 0 && !contains(claimed, entries[self].fields) {
		return nil, false // a previously applied field is missing and may have to be removed
	}

	before := copyObject(live)
	setManagedFields(before, nil)
	result, _ = d.union(root, before, applied).(map[string]any)
	if d.unsure || result == nil {
		return nil, false
	}
	c := d.objects(root, before, result)
	if d.unsure {
		return nil, false
	}
	o.filter(&c)
	entries, ok = o.take(entries, m, strip(claimed), c, force)
	if !ok {
		return nil, false
	}
	if equal(before, result) {
		result = runtime.DeepCopyJSON(before) // 1 stays 1 if 1.0 is applied
	} else if self := slices.IndexFunc(entries, func(e shortEntry) bool { return e.manager == m }); self >= 0 {
		entries[self].time, entries[self].raw = timestamp(now), nil
	}
	setManagedFields(result, encodeShort(entries, o.apiVersion))
	return result, true
}

// take gives m the claimed fields, and takes changed values from other managers; ok is false if that is a conflict.
func (o *Ownership) take(entries []shortEntry, m manager, claimed fields, c change, force bool) ([]shortEntry, bool) {
	others := make([]shortEntry, 0, len(entries)+1)
	mine := shortEntry{manager: m}
	for _, e := range entries {
		if e.manager == m {
			mine = e
		} else {
			others = append(others, e)
		}
	}
	if !force &&
		slices.ContainsFunc(others,
			func(e shortEntry) bool { return overlap(e.fields, c.modified) || overlap(e.fields, c.added) }) {
		return nil, false
	}
	entries = lose(others, c)
	if len(claimed) == 0 {
		return entries, true
	}
	if !sameFields(mine.fields, claimed) {
		mine.fields, mine.raw = claimed, nil
	}
	return append(entries, mine), true
}

// contains reports whether all members of g are in f.
func contains(f, g fields) bool {
	for key, value := range g {
		if key == own {
			continue
		}
		theirs, _ := value.(fields)
		mine, ok := f[key].(fields)
		if !ok || member(theirs) && !member(mine) || !contains(mine, theirs) {
			return false
		}
	}
	return true
}

// overlap reports whether f and g have a member in common.
func overlap(f, g fields) bool {
	for key := range smaller(f, g) {
		value, common := g[key]
		mine, ok := f[key].(fields)
		if key == own || !common {
			continue
		}
		theirs, _ := value.(fields)
		if ok && (member(theirs) && member(mine) || overlap(mine, theirs)) {
			return true
		}
	}
	return false
}

// claims returns the fields named by an applied configuration: its leaves and list items, and maps that are empty or
// undeclared.
func (d *diff) claims(p position, obj map[string]any) fields {
	f := fields{}
	for name, value := range obj {
		below, declared, ok := p.field(name)
		if !ok {
			d.unsure = true
			return nil
		}
		if child := d.claim(below, value, !declared); child != nil {
			f["f:"+name] = child
		}
	}
	return f
}

// claim is claims for any value; nil if it claims nothing. self is true if the value itself is always claimed.
func (d *diff) claim(p position, value any, self bool) fields {
	var f fields
	switch value := value.(type) {
	case nil:
		return d.leaf()
	case map[string]any:
		if _, _, object := p.shapes(); !object {
			d.unsure = true
			return nil
		}
		if p.atomicMap() || len(value) == 0 {
			d.check(p, value)
			return d.leaf()
		}
		f = d.claims(p, value)
	case []any:
		if _, list, _ := p.shapes(); !list {
			d.unsure = true
			return nil
		}
		if p.atomicList() {
			d.check(p, value)
			return d.leaf()
		}
		f = make(fields, len(value))
		below := p.item()
		for _, item := range value {
			f[d.key(p, item)] = d.claim(below, item, true)
		}
		if len(f) != len(value) {
			d.unsure = true // two items with one identity
		}
	default:
		d.check(p, value)
		return d.leaf()
	}
	switch {
	case len(f) == 0 && !self:
		return nil
	case len(f) > 0 && self:
		f[own] = d.leaf()
	}
	return f
}

// union merges applied into old at p: applied's values where it has some, otherwise old's. The result shares nothing
// with either.
func (d *diff) union(p position, old, applied any) any {
	switch applied := applied.(type) {
	case map[string]any:
		was, ok := old.(map[string]any)
		if !ok {
			break
		}
		if p.atomicMap() || len(was) == 0 && len(applied) == 0 {
			return runtime.DeepCopyJSON(applied)
		}
		out := make(map[string]any, max(len(was), len(applied))+1)
		for name, value := range was {
			if _, ok := applied[name]; !ok {
				out[name] = runtime.DeepCopyJSONValue(value)
			}
		}
		for name, value := range applied {
			below, _, ok := p.field(name)
			if !ok {
				d.unsure = true
				return nil
			}
			if before, ok := was[name]; ok {
				out[name] = d.union(below, before, value)
			} else {
				out[name] = runtime.DeepCopyJSONValue(value)
			}
		}
		return out
	case []any:
		was, ok := old.([]any)
		if !ok {
			break
		}
		if p.atomicList() || len(was) == 0 && len(applied) == 0 {
			return runtime.DeepCopyJSONValue(applied)
		}
		return d.unionLists(p, was, applied)
	default:
		if isScalar(applied) && isScalar(old) {
			return applied
		}
	}
	d.unsure = true
	return nil
}

// unionLists merges lists of items with identities, with common items in the same order. Before each common item come
// the items only in old, then the items only in applied.
func (d *diff) unionLists(p position, old, applied []any) any {
	position := make(map[string]int, len(applied))
	for i, item := range applied {
		position[d.identity(p, item)] = i
	}
	below := p.item()
	out := make([]any, 0, max(len(old), len(applied)))
	next := 0
	seen := make(map[string]struct{}, len(old))
	for _, item := range old {
		id := d.identity(p, item)
		if _, twice := seen[id]; twice {
			d.unsure = true
			return nil
		}
		seen[id] = struct{}{}
		at, common := position[id]
		if !common {
			out = append(out, runtime.DeepCopyJSONValue(item))
			continue
		}
		if at < next {
			d.unsure = true // applied has another order
			return nil
		}
		for ; next < at; next++ {
			out = append(out, runtime.DeepCopyJSONValue(applied[next]))
		}
		out = append(out, d.union(below, item, applied[at]))
		next = at + 1
	}
	for ; next < len(applied); next++ {
		out = append(out, runtime.DeepCopyJSONValue(applied[next]))
	}
	return out
}
