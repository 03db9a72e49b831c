package schema

import (
	"encoding/json"
	"hash/maphash"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// distinct reports whether no set or map list contains an element, or key, twice.
//
// It compares elements only by hash, so that a valid list costs no allocation up to 64 elements and n log n above;
// duplicates checks apparently equal elements again.
func (s *Schema) distinct(n *Node, list []any) bool {
	var few [64]uint64
	sums := few[:0]
	for _, v := range list {
		if n.flags.has(listSet) {
			sums = append(sums, s.hashElement(v))
			continue
		}
		item, ok := v.(map[string]any)
		if !ok && v != nil {
			return false
		}
		if len(n.ListMapKeys) == 1 {
			key, ok := item[n.ListMapKeys[0]]
			if !ok {
				sums = append(sums, 0)
			} else {
				sums = append(sums, s.hashElement(key))
			}
			continue
		}
		sum := uint64(0)
		for i, name := range n.ListMapKeys {
			if key, ok := item[name]; ok {
				sum += s.hash(key) * (2*uint64(i) + 3)
			}
		}
		sums = append(sums, sum)
	}
	slices.Sort(sums)
	for i := 1; i < len(sums); i++ {
		if sums[i] == sums[i-1] {
			return len(s.duplicates(n, "", list)) == 0
		}
	}
	return true
}

// hashElement hashes v as the elements of sets are compared: scalars with their Go type, the rest by its JSON text.
func (s *Schema) hashElement(v any) uint64 {
	if i, ok := v.(int64); ok {
		return mix(uint64(i)) + 1
	}
	return s.hash(v)
}

// hash hashes v so that values with the same JSON text have the same hash.
func (s *Schema) hash(v any) uint64 {
	switch v := v.(type) {
	case string:
		return maphash.String(s.seed, v)
	case bool:
		if v {
			return 0x9ae16a3b2f90404f
		}
		return 0xc949d7c7509e6557
	case int64:
		return mix(math.Float64bits(float64(v)))
	case float64:
		return mix(math.Float64bits(v))
	case []any:
		sum := uint64(len(v))
		for _, e := range v {
			sum = sum*0x100000001b3 + s.hash(e)
		}
		return mix(sum)
	case map[string]any:
		sum := uint64(len(v))
		for key, e := range v {
			sum += mix(maphash.String(s.seed, key) + 3*s.hash(e))
		}
		return mix(sum + 1)
	}
	return 0x2545f4914f6cdd1d
}

// mix is the finalizer of MurmurHash3.
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// explainLists reports duplicates in the set and map lists of v and below, at path.
func (s *Schema) explainLists(n *Node, v any, path string) (errs field.ErrorList) {
	if !n.flags.has(listsBelow) {
		return nil
	}
	switch v := v.(type) {
	case []any:
		errs = s.duplicates(n, path, v)
		if n.Items != nil {
			for i, e := range v {
				errs = append(errs, s.explainLists(n.Items, e, indexPath(path, i))...)
			}
		}
	case map[string]any:
		for _, key := range sortedKeys(v) {
			if n.AdditionalProperties != nil {
				errs = append(errs, s.explainLists(n.AdditionalProperties, v[key], keyPath(path, key))...)
			}
			if child := n.Properties[key]; child != nil {
				errs = append(errs, s.explainLists(child, v[key], childPath(path, key))...)
			}
		}
	}
	return errs
}

// duplicates reports each element, or key, of a set or map list at its second appearance.
func (s *Schema) duplicates(n *Node, path string, list []any) (errs field.ErrorList) {
	switch {
	case n.flags.has(listSet):
		for _, i := range repeated(list) {
			errs = append(errs, field.Duplicate(field.NewPath(indexPath(path, i)), list[i]))
		}
	case n.flags.has(listMap):
		keys, bad := mapKeys(n.ListMapKeys, list)
		if bad >= 0 {
			return field.ErrorList{
				field.Invalid(field.NewPath(indexPath(path, bad)), list[bad],
					"must be an object for an array of list-type map"),
			}
		}
		for _, i := range repeated(keys) {
			value := keys[i]
			if len(n.ListMapKeys) == 1 {
				if _, missing := value.(noKey); missing {
					value = map[string]any{}
				} else {
					value = map[string]any{n.ListMapKeys[0]: value}
				}
			}
			errs = append(errs, field.Duplicate(field.NewPath(indexPath(path, i)), value))
		}
	}
	return errs
}

// noKey represents a missing key, which differs from a null.
type noKey struct{}

// mapKeys returns the key of each element: the value of a single key field, or an object of the existing key fields.
// bad is the index of the first element that is neither an object nor null, or -1.
func mapKeys(names []string, list []any) (keys []any, bad int) {
	keys = make([]any, len(list))
	for i, v := range list {
		item, ok := v.(map[string]any)
		if !ok && v != nil {
			return nil, i
		}
		if len(names) == 1 {
			if keys[i], ok = item[names[0]]; !ok {
				keys[i] = noKey{}
			}
			continue
		}
		key := map[string]any{}
		for _, name := range names {
			if k, ok := item[name]; ok {
				key[name] = k
			}
		}
		keys[i] = key
	}
	return keys, -1
}

// repeated returns the index of the second appearance of each element that appears more than once.
func repeated(list []any) (indexes []int) {
	type text string
	seen := make(map[any]int, len(list))
	for i, v := range list {
		switch v.(type) {
		case map[string]any, []any:
			raw, _ := json.Marshal(v) // decoded JSON can always be encoded
			v = text(raw)
		}
		if seen[v]++; seen[v] == 2 {
			indexes = append(indexes, i)
		}
	}
	return indexes
}
