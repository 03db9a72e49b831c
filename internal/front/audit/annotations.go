package audit

import "sort"

// annotation is one annotation of an event.
type annotation struct{ key, value string }

// annotations holds the annotations of an event, sorted by key. A request has two or three; making, filling and sorting
// a map would add a tenth to the cost of its events.
type annotations []annotation

// add adds an annotation. The first value of a key wins.
func (a *annotations) add(key, value string) {
	at := sort.Search(len(*a), func(i int) bool { return (*a)[i].key >= key })
	if at < len(*a) && (*a)[at].key == key {
		return
	}
	*a = append(*a, annotation{})
	copy((*a)[at+1:], (*a)[at:])
	(*a)[at] = annotation{key, value}
}

// asMap returns the annotations in the form of Kubernetes' backends.
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
