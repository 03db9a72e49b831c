package sensitive

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// UnmaskObject restores in obj, in place, the values of old where obj has the mask, and the metadata that MaskObject
// has removed. old is nil for a new object, and is not changed. The errors are about masks without a stored value, or
// with several candidates.
func (f *Fields) UnmaskObject(obj, old map[string]any) field.ErrorList {
	if f == nil {
		return nil
	}
	u := unmasking{}
	for name, child := range obj {
		if !system(name) {
			obj[name] = u.value(f.Property(name), child, old[name], old[name] != nil, field.NewPath(name))
		}
	}
	meta, _ := obj["metadata"].(map[string]any)
	was, _ := old["metadata"].(map[string]any)
	if meta == nil || was == nil {
		return u.errs
	}
	if stored, ok := was["annotations"].(map[string]any); ok && stored[lastApplied] != nil {
		annotations, ok := meta["annotations"].(map[string]any)
		if !ok {
			annotations = map[string]any{}
			meta["annotations"] = annotations
		}
		if _, ok := annotations[lastApplied]; !ok {
			annotations[lastApplied] = stored[lastApplied]
		}
	}
	if entries, ok := was["managedFields"].([]any); ok && codec.Equal(meta["managedFields"], f.maskManaged(entries)) {
		meta["managedFields"] = codec.Clone(entries)
	}
	return u.errs
}

// Unmask is UnmaskObject for a part of an object, as server-side apply has it: metadata is left alone.
func (f *Fields) Unmask(part, old map[string]any) field.ErrorList {
	u := unmasking{}
	for name, child := range part {
		if !system(name) {
			part[name] = u.value(f.Property(name), child, old[name], old[name] != nil, field.NewPath(name))
		}
	}
	return u.errs
}

// Texts of errors. The first is Deckhouse's.
const (
	noPrevious = "not allowed for sensitive fields without a previous value"
	whichItem  = "is ambiguous between several stored values: write the value itself"
)

type unmasking struct{ errs field.ErrorList }

func (u *unmasking) fail(at *field.Path, why string) {
	u.errs = append(u.errs, field.Invalid(at, Omitted, why))
}

// value returns v with the values of old in the place of masks. stored reports whether there is an old one.
func (u *unmasking) value(f *Fields, v, old any, stored bool, at *field.Path) any {
	switch {
	case f == nil:
		return v
	case f.whole:
		if v != Omitted {
			return v
		}
		if !stored {
			u.fail(at, noPrevious)
			return v
		}
		return codec.Clone(old)
	}
	switch v := v.(type) {
	case map[string]any:
		was, _ := old.(map[string]any)
		for name, child := range v {
			before, stored := was[name]
			v[name] = u.value(f.Property(name), child, before, stored && before != nil, at.Child(name))
		}
	case []any:
		was, _ := old.([]any)
		u.list(f, v, was, at)
	}
	return v
}

// list unmasks the items of a list, in place. Items of a list of type map are matched by their keys. An item of another
// list is matched with a stored item of equal masked form. If there is none and the length is unchanged, it is matched
// by index, unless that stored item has another match. An ambiguous mask is rejected: the password of one host must not
// become the password of another.
func (u *unmasking) list(f *Fields, list, old []any, at *field.Path) {
	if f.items == nil {
		return
	}
	if f.items.whole {
		u.scalars(f, list, old, at)
		return
	}
	var find func(i int) (j int, problem string)
	if len(f.keys) > 0 {
		find = f.byKeys(list, old)
	} else {
		find = f.byLooks(list, old)
	}
	for i, v := range list {
		if !f.items.hasMask(v) {
			continue
		}
		j, problem := find(i)
		switch {
		case problem != "":
			u.fail(at.Index(i), problem)
		case j < 0:
			list[i] = u.value(f.items, v, nil, false, at.Index(i))
		default:
			list[i] = u.value(f.items, v, old[j], true, at.Index(i))
		}
	}
}

// scalars unmasks a list with sensitive items: by index, unless the list has become shorter.
func (u *unmasking) scalars(f *Fields, list, old []any, at *field.Path) {
	for i, v := range list {
		switch {
		case v != Omitted:
		case i >= len(old) && len(list) >= len(old):
			u.fail(at.Index(i), noPrevious)
		case len(list) < len(old):
			u.fail(at.Index(i), whichItem)
		default:
			list[i] = codec.Clone(old[i])
		}
	}
}

// byKeys returns a function that finds the stored item with the keys of a new one, -1 if there is none.
func (f *Fields) byKeys(list, old []any) func(i int) (int, string) {
	places := make(map[string]int, len(old))
	for j, v := range old {
		places[f.keyOf(v)] = j
	}
	return func(i int) (int, string) {
		if j, ok := places[f.keyOf(list[i])]; ok {
			return j, ""
		}
		return -1, ""
	}
}

// keyOf encodes the keys of a list's item.
func (f *Fields) keyOf(v any) string {
	item, _ := v.(map[string]any)
	var key []byte
	for _, name := range f.keys {
		key = append(codec.AppendJSON(key, item[name]), 0)
	}
	return string(key)
}

// byLooks returns a function that finds the stored item with the masked form of a new one, -1 if there is none.
func (f *Fields) byLooks(list, old []any) func(i int) (int, string) {
	alike := make(map[string][]int, len(old))
	for j, v := range old {
		look := f.look(v)
		alike[look] = append(alike[look], j)
	}
	taken := make([]bool, len(old))
	for _, v := range list {
		for _, j := range alike[f.look(v)] {
			taken[j] = true
		}
	}
	return func(i int) (int, string) {
		candidates := alike[f.look(list[i])]
		switch {
		case len(candidates) == 0 && len(list) == len(old) && !taken[i]:
			return i, ""
		case len(candidates) == 0 && len(old) > 0:
			return -1, whichItem
		case len(candidates) == 0:
			return -1, ""
		}
		for _, j := range candidates {
			if j == i && len(list) >= len(old) {
				return j, ""
			}
		}
		for _, j := range candidates[1:] {
			if !codec.Equal(old[j], old[candidates[0]]) {
				return -1, whichItem
			}
		}
		return candidates[0], ""
	}
}

// look is how an item of a list would be shown.
func (f *Fields) look(v any) string { return string(codec.AppendJSON(nil, f.items.Mask(v))) }

// hasMask reports whether v contains the mask in a sensitive position.
func (f *Fields) hasMask(v any) bool {
	switch {
	case f == nil:
		return false
	case f.whole:
		return v == Omitted
	}
	switch v := v.(type) {
	case map[string]any:
		for name, child := range v {
			if f.Property(name).hasMask(child) {
				return true
			}
		}
	case []any:
		for _, child := range v {
			if f.items.hasMask(child) {
				return true
			}
		}
	}
	return false
}
