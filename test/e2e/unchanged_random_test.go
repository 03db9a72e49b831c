package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

// change sets the field or element at a path to a value.
type change struct {
	path  []any // names and indexes
	value any
}

// inventor invents changes of objects by the definitions of OpenAPI.
type inventor struct {
	*rand.Rand
	definitions map[string]any
	root        string // name of the object's definition
}

// mutable are the fields of metadata that a client may set.
var mutable = []string{"annotations", "finalizers", "labels", "ownerReferences"}

// invent returns a change of an object that mostly has no meaning.
func (i *inventor) invent(obj map[string]any, status bool) change {
	if root := map[bool]string{true: "status", false: "spec"}[status]; obj[root] != nil && (status || i.IntN(3) > 0) {
		below := i.definition(i.definitions[i.root], root)
		return i.walk([]any{root}, obj[root], below)
	}
	if status {
		return change{[]any{"status"}, map[string]any{}}
	}
	if meta := obj["metadata"].(map[string]any); i.IntN(4) == 0 {
		name := mutable[i.IntN(len(mutable))]
		return change{[]any{"metadata", name}, i.value(meta[name], "")}
	}
	return i.walk(nil, obj, i.definitions[i.root])
}

// definition returns the definition of a field of an object, or of the elements of a list or map if name is "".
func (i *inventor) definition(of any, name string) any {
	d, _ := i.resolve(of).(map[string]any)
	if name == "" {
		if d["items"] != nil {
			return d["items"]
		}
		return d["additionalProperties"]
	}
	properties, _ := d["properties"].(map[string]any)
	if properties[name] == nil {
		return d["additionalProperties"]
	}
	return properties[name]
}

// resolve follows the reference of a definition.
func (i *inventor) resolve(of any) any {
	d, _ := of.(map[string]any)
	if ref, ok := d["$ref"].(string); ok {
		return i.definitions[strings.TrimPrefix(ref, "#/definitions/")]
	}
	return of
}

// walk descends into v and returns a change of a part of it.
func (i *inventor) walk(path []any, v, definition any) change {
	path = slices.Clip(path)
	switch v := v.(type) {
	case map[string]any:
		d, _ := i.resolve(definition).(map[string]any)
		properties, _ := d["properties"].(map[string]any)
		names := slices.Concat(slices.Collect(maps.Keys(v)), slices.Collect(maps.Keys(properties)))
		slices.Sort(names)
		names = slices.DeleteFunc(names, func(n string) bool {
			return len(path) == 0 && slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, n)
		})
		if len(names) == 0 || i.IntN(12) == 0 && len(path) > 0 {
			return change{path, i.value(v, "")}
		}
		name := names[i.IntN(len(names))]
		return i.walk(append(path, name), v[name], i.definition(definition, name))
	case []any:
		if len(v) == 0 || i.IntN(4) == 0 {
			return change{path, i.value(v, "")}
		}
		n := i.IntN(len(v))
		return i.walk(append(path, n), v[n], i.definition(definition, ""))
	}
	d, _ := i.resolve(definition).(map[string]any)
	return change{path, i.value(v, fmt.Sprint(d["type"]))}
}

// value returns v, a null, or an empty value of v's type. The type of a missing value is kind.
func (i *inventor) value(v any, kind string) any {
	choice := i.IntN(4)
	if choice == 0 {
		return nil
	}
	switch was := v.(type) {
	case map[string]any:
		kind = "object"
	case []any:
		kind = "array"
	case bool:
		kind = "boolean"
	case float64:
		kind = "number"
	case string:
		if q, err := resource.ParseQuantity(was); err == nil && choice == 1 {
			return otherNotation(q)
		}
		kind = "string"
	}
	if v != nil && choice == 2 {
		return v
	}
	switch kind {
	case "object":
		return map[string]any{}
	case "array":
		return []any{}
	case "boolean":
		return false
	case "number", "integer":
		return 0
	case "string":
		return ""
	}
	return nil
}

// otherNotation writes a quantity in another way.
func otherNotation(q resource.Quantity) string {
	if whole, ok := q.AsInt64(); ok && whole%1024 == 0 && whole > 0 {
		return fmt.Sprintf("%dKi", whole/1024)
	}
	return fmt.Sprintf("%dm", q.MilliValue())
}

// repeatedWrite is a write that is sent again and again.
type repeatedWrite struct {
	subject  *unchangedSubject
	verb     string // put, json, merge, strategic or apply
	target   string // the path, with the subresource
	changes  []change
	sent     string // the last body
	attempts map[*writer][]attempt
	servers  []*writer
}

// attempt is the result of one write.
type attempt struct {
	code  int
	wrote bool
	why   any
	state string // of the object before the write
}

// ownStatus are the kinds with a status that the servers themselves write.
var ownStatus = []string{"FlowSchema", "PriorityLevelConfiguration", "ServiceCIDR"}

// randomWrite invents a write of the subject.
func (s *unchangedSubject) randomWrite(t *testing.T, servers []*writer, i *inventor) *repeatedWrite {
	t.Helper()
	_, live := servers[0].do(t, http.MethodGet, s.path, "", nil)
	verbs := []string{"put", "json", "merge", "apply", "strategic"}
	if s.kind == "Lot" {
		verbs = verbs[:4]
	}
	w := &repeatedWrite{subject: s, target: s.path, verb: verbs[i.IntN(len(verbs))], attempts: map[*writer][]attempt{},
		servers: servers}
	status := live["status"] != nil && i.IntN(6) == 0 && !slices.Contains(ownStatus, s.kind)
	if status {
		w.target += "/status"
	}
	for range 1 + i.IntN(3) {
		c := i.invent(live, status)
		indexed := slices.ContainsFunc(c.path, func(e any) bool { _, ok := e.(int); return ok })
		if indexed && (w.verb == "merge" || w.verb == "strategic") {
			w.verb = "json"
		}
		w.changes = append(w.changes, c)
	}
	return w
}

// set changes obj, decoded JSON, if it has the parent of the path.
func (c change) set(obj any) {
	for n, step := range c.path {
		last := n == len(c.path)-1
		switch v := obj.(type) {
		case map[string]any:
			name, _ := step.(string)
			if last {
				v[name] = c.value
			}
			obj = v[name]
		case []any:
			index, ok := step.(int)
			if !ok || index >= len(v) {
				return
			}
			if last {
				v[index] = c.value
			}
			obj = v[index]
		default:
			return
		}
	}
}

// nest adds the change to a merge patch.
func (c change) nest(patch map[string]any) {
	for n, step := range c.path {
		name := step.(string)
		below, ok := patch[name].(map[string]any)
		if n == len(c.path)-1 {
			patch[name] = c.value
		} else if !ok {
			below = map[string]any{}
			patch[name] = below
		}
		patch = below
	}
}

// pointer returns the JSON pointer of the change.
func (c change) pointer() string {
	var b strings.Builder
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	for _, step := range c.path {
		b.WriteString("/" + escape.Replace(fmt.Sprint(step)))
	}
	return b.String()
}

// body returns the method, the media type and the body of the write of a live object.
func (w *repeatedWrite) body(live map[string]any) (method, media string, body any) {
	switch w.verb {
	case "put":
		next := deepCopy(live)
		for _, c := range w.changes {
			c.set(next)
		}
		return http.MethodPut, "application/json", next
	case "json":
		var operations []map[string]any
		for _, c := range w.changes {
			op := "add"
			if _, ok := c.path[len(c.path)-1].(int); ok {
				op = "replace"
			}
			operations = append(operations, map[string]any{"op": op, "path": c.pointer(), "value": c.value})
		}
		return http.MethodPatch, "application/json-patch+json", operations
	case "apply":
		next := deepCopy(w.subject.manifest)
		if strings.HasSuffix(w.target, "/status") {
			next = map[string]any{"apiVersion": next["apiVersion"], "kind": next["kind"], "metadata": map[string]any{
				"name": next["metadata"].(map[string]any)["name"]}, "status": deepCopy(live["status"])}
		}
		for _, c := range w.changes {
			c.set(next)
		}
		return http.MethodPatch, "application/apply-patch+yaml", next
	}
	patch := map[string]any{}
	for _, c := range w.changes {
		c.nest(patch)
	}
	return http.MethodPatch, "application/" + map[string]string{"merge": "", "strategic": "strategic-"}[w.verb] +
		"merge-patch+json", patch
}

// send sends the write to every server.
func (w *repeatedWrite) send(t *testing.T, servers []*writer) {
	t.Helper()
	for _, s := range servers {
		_, live := s.do(t, http.MethodGet, w.subject.path, "", nil)
		method, media, body := w.body(live)
		sent, _ := json.Marshal(body)
		w.sent = string(sent)
		query := "?fieldManager=" + w.verb
		if w.verb == "apply" {
			query += "&force=true"
		}
		code, answer := s.do(t, method, w.target+query, media, body)
		o := attempt{code: code, why: answer["message"], state: stateOf(live)}
		if code < http.StatusMultipleChoices {
			was, _ := live["metadata"].(map[string]any)
			is, _ := answer["metadata"].(map[string]any)
			o.wrote = was["resourceVersion"] != is["resourceVersion"]
		}
		w.attempts[s] = append(w.attempts[s], o)
	}
}

// judge fails the test if the server has written too often, and returns the verdict.
func (w *repeatedWrite) judge(t *testing.T) string {
	t.Helper()
	ours := w.attempts[w.servers[0]]
	verdict := "accepted"
	for n, o := range ours {
		theirs := attempt{code: o.code, state: o.state}
		if len(w.servers) > 1 {
			theirs = w.attempts[w.servers[1]][n]
		}
		accepted := o.code < http.StatusMultipleChoices
		switch {
		case accepted != (theirs.code < http.StatusMultipleChoices):
			t.Logf("%s of %s%s: %d %v; kube-apiserver: %d %v", w.verb, w.target, w.changesText(), o.code, o.why,
				theirs.code, theirs.why)
			return "accepted by one server only"
		case !accepted:
			return "refused"
		case o.wrote && !theirs.wrote && w.counts(n, o.state == theirs.state):
			t.Errorf("%s of %s%s changed the object at the attempts %v, here and at kube-apiserver %v", w.verb, w.target,
				w.changesText(), writing(ours), writing(w.attempts[w.servers[len(w.servers)-1]]))
			return "written too often"
		case theirs.wrote && !o.wrote:
			verdict = "written by kube-apiserver only"
		}
	}
	return verdict
}

// counts reports whether the write must not have changed the object at attempt n, as kube-apiserver has not. alike is
// true if both servers had the same object before. Without kube-apiserver only the last attempt counts: some writes
// settle with the second one.
func (w *repeatedWrite) counts(n int, alike bool) bool {
	if len(w.servers) > 1 {
		// kube-apiserver's conversion of old autoscalers adds annotations to managedFields, here or one write later.
		return n > 0 || alike && !strings.HasPrefix(w.target, "/apis/autoscaling/v1/")
	}
	return n == 2 && !w.renews()
}

// renews reports whether Kubernetes' own rules change the object at each such write: a device's taint without a time
// gets the time of the write, and the generation of an EndpointSlice counts a topology that is dropped afterwards.
func (w *repeatedWrite) renews() bool {
	if slices.ContainsFunc(w.changes, func(c change) bool {
		return c.value == nil && strings.HasSuffix(c.pointer(), "/timeAdded")
	}) {
		return true
	}
	switch w.subject.kind {
	case "ResourceSlice":
		return strings.Count(w.sent, `"effect":`) > strings.Count(w.sent, `"timeAdded":`)
	case "EndpointSlice":
		return strings.Contains(w.sent, `"deprecatedTopology":`)
	}
	return false
}

// stateOf returns the part of an object that both servers have alike, unless an earlier write was accepted by one of
// them only.
func stateOf(live map[string]any) string {
	obj := deepCopy(live)
	meta, _ := obj["metadata"].(map[string]any)
	uid := fmt.Sprint(meta["uid"])
	for _, own := range []string{"uid", "resourceVersion", "creationTimestamp", "generation"} {
		delete(meta, own)
	}
	entries, _ := meta["managedFields"].([]any)
	for _, e := range entries {
		delete(e.(map[string]any), "time")
	}
	data, _ := json.Marshal(obj)
	return strings.ReplaceAll(string(data), uid, "UID")
}

// writing returns the numbers of the writes that changed the object.
func writing(of []attempt) (out []int) {
	for n, o := range of {
		if o.wrote {
			out = append(out, n+1)
		}
	}
	return out
}

func (w *repeatedWrite) changesText() string {
	var b strings.Builder
	for _, c := range w.changes {
		fmt.Fprintf(&b, " %s=%v", c.pointer(), c.value)
	}
	return b.String()
}
