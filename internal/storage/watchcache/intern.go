package watchcache

import "encoding/json"

// internLimit bounds the values of an interner. When it is reached, the interner starts over, which loses only sharing.
const internLimit = 1024

// interner makes equal values share memory: objects of one kind have the same apiVersion, and often the same labels. It
// belongs to one goroutine.
type interner struct {
	texts map[string]string
	sets  map[string]map[string]string // by the raw JSON of the labels
}

func newInterner() *interner {
	return &interner{texts: map[string]string{}, sets: map[string]map[string]string{}}
}

// text returns the meaning of the raw content of a JSON string.
func (in *interner) text(raw []byte) string {
	if s, ok := in.texts[string(raw)]; ok {
		return s
	}
	if len(in.texts) >= internLimit {
		clear(in.texts)
	}
	s := unquote(raw)
	in.texts[string(raw)] = s
	return s
}

// labels returns the string members of a JSON object; nil if there are none.
func (in *interner) labels(raw []byte) map[string]string {
	if len(raw) <= len(`{}`) {
		return nil
	}
	if m, ok := in.sets[string(raw)]; ok {
		return m
	}
	if len(in.sets) >= internLimit {
		clear(in.sets)
	}
	var all map[string]any
	_ = json.Unmarshal(raw, &all) // the scanner found it valid
	var m map[string]string
	for k, v := range all {
		if s, ok := v.(string); ok {
			if m == nil {
				m = make(map[string]string, len(all))
			}
			m[k] = s
		}
	}
	in.sets[string(raw)] = m
	return m
}
