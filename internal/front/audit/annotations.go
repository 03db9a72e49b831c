package audit

import "sort"

// annotation is one of an event.
type annotation struct{ key, value string }

// annotations are those of an event, by key. A request has two or three, for which a map would be made, filled and
// sorted at a tenth of what the rest of its events costs.
type annotations []annotation

// add adds an annotation. The first value of a key stays.
func (a *annotations) add(key, value string) {
	at := sort.Search(len(*a), func(i int) bool { return (*a)[i].key >= key })
	if at < len(*a) && (*a)[at].key == key {
		return
	}
	*a = append(*a, annotation{})
	copy((*a)[at+1:], (*a)[at:])
	(*a)[at] = annotation{key, value}
}

// asMap is for Kubernetes' backends.
func (a annotations) asMap() map[string]string {
	if len(a) == 0 {
		return nil
	}
	out := make(map[string]string, len(a))
	for _, one := range a {
		out[one.key] = one.value
	}
	return out
}
