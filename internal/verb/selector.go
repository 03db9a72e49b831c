package verb

import (
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// selector is what a list or a watch keeps of a collection.
type selector struct {
	r      *Reader
	c      *Call
	labels labels.Selector     // nil: all
	fields fields.Requirements // each of = or !=
	// name is set if the fields ask for one name with "=": then the object is looked up, not searched for. namespace
	// is the call's, or the one that the fields ask for.
	name, namespace string
}

// selector checks that the call's kind has the fields that are asked for.
func (r *Reader) selector(c *Call, l labels.Selector, f fields.Selector) (*selector, error) {
	sel := &selector{r: r, c: c, namespace: c.Namespace}
	if l != nil && !l.Empty() {
		sel.labels = l
	}
	if f == nil || f.Empty() {
		return sel, nil
	}
	for _, req := range f.Requirements() {
		if !c.knowsField(req.Field) {
			return nil, apierrors.NewBadRequest(c.unknownField(req.Field))
		}
		sel.fields = append(sel.fields, req)
	}
	// Each of these looks at all terms: a selector may have tens of thousands.
	if value, ok := f.RequiresExactMatch("metadata.name"); ok {
		sel.name = value
	}
	if value, ok := f.RequiresExactMatch("metadata.namespace"); ok && sel.namespace == "" && c.Resource.Namespaced {
		sel.namespace = value
	}
	return sel, nil
}

func (c *Call) knowsField(name string) bool {
	switch name {
	case "metadata.name":
		return true
	case "metadata.namespace":
		// Kube's own kinds know it unless they say which fields they know.
		return c.Resource.Namespaced || !c.Resource.Custom() && (c.Strategy() == nil || c.Strategy().FieldLabels == nil)
	}
	if slices.Contains(c.Version.SelectableFields, "."+name) {
		return true
	}
	return c.Strategy() != nil && c.Strategy().FieldLabels[name] != nil
}

func (c *Call) unknownField(name string) string {
	if c.Strategy() != nil && c.Strategy().UnknownField != "" {
		return fmt.Sprintf(c.Strategy().UnknownField, name)
	}
	if c.Resource.Custom() || c.Strategy() != nil && c.Strategy().FieldLabels != nil {
		return "field label not supported: " + name
	}
	return fmt.Sprintf("%q is not a known field selector: only %q, %q", name, "metadata.name", "metadata.namespace")
}

// all reports whether the selector keeps everything.
func (sel *selector) all() bool { return sel.labels == nil && len(sel.fields) == 0 }

// matches reports whether an entry is kept.
func (sel *selector) matches(e *watchcache.Entry) bool {
	if e == nil {
		return false
	}
	if sel.labels != nil && !sel.labels.Matches(labels.Set(e.Labels)) {
		return false
	}
	for _, req := range sel.fields {
		equal := sel.field(e, req.Field) == req.Value
		if negated := req.Operator == "!="; equal == negated {
			return false
		}
	}
	return true
}

// field returns the value of a selectable field, "" if the object does not have it.
func (sel *selector) field(e *watchcache.Entry, name string) string {
	switch name {
	case "metadata.name":
		return e.Name
	case "metadata.namespace":
		return e.Namespace
	}
	return sel.r.fieldOf(sel.c, e, name, e.Field)
}

// fieldOf returns the value of a field that is selectable by definition, "" if the object does not have it. find looks
// into the stored bytes.
func (r *Reader) fieldOf(c *Call, e *watchcache.Entry, name string, find func(path string) (string, bool)) string {
	if rules := c.Strategy(); rules != nil && rules.FieldLabels[name] != nil {
		obj, err := r.Object(c, e)
		if err != nil {
			return ""
		}
		return rules.FieldLabels[name](obj)
	}
	if e.APIVersion == c.APIVersion() || e.IsConverted() {
		if value, ok := find(name); ok {
			return value
		}
	}
	// It may be a default of today's definition, or lie elsewhere in the stored version.
	raw, err := r.JSON(c, e)
	if err != nil {
		return ""
	}
	value, _ := watchcache.FieldOf(raw, name)
	return value
}

// snapshot returns the newest state of the collection, with the index that the selector can use if there is one.
func (sel *selector) snapshot(collection *watchcache.Collection) *watchcache.Snapshot {
	if ix, _, ok := sel.index(); ok {
		return collection.SnapshotBy(ix)
	}
	return collection.Snapshot()
}

// fieldIndex and labelIndex are names of indexes.
type (
	fieldIndex struct {
		version *catalog.Version // another definition may have other defaults
		field   string
	}
	labelIndex struct{ key string }
)

// index returns the index that leads to what the selector keeps, and the value to look for: a field that must be equal
// to a text, else a label. false if there is none. What it finds must still be matched.
func (sel *selector) index() (ix watchcache.Index, value string, ok bool) {
	// selectors look at what the webhook answers, which an index cannot wait for
	if sel.r.convert.NeedsWebhook(sel.c.Resource) {
		return ix, "", false
	}
	for _, req := range sel.fields {
		if req.Operator == "!=" || req.Value == "" || req.Field == "metadata.name" ||
			req.Field == "metadata.namespace" {
			continue
		}
		call, r, field := &Call{Resource: sel.c.Resource, Version: sel.c.Version}, sel.r, req.Field
		return watchcache.Index{Name: fieldIndex{call.Version, field}, Value: func(e *watchcache.Entry) string {
			return r.fieldOf(call, e, field,
				func(path string) (string, bool) { return watchcache.FieldOf(e.JSON(), path) })
		}}, req.Value, true
	}
	if sel.labels == nil {
		return ix, "", false
	}
	requirements, _ := sel.labels.Requirements()
	for _, req := range requirements {
		values := req.Values()
		if op := req.Operator(); op != selection.Equals && op != selection.DoubleEquals && op != selection.In ||
			len(values) != 1 {
			continue
		}
		if value, _ = values.PopAny(); value == "" {
			continue
		}
		key := req.Key()
		return watchcache.Index{
			Name: labelIndex{key}, Value: func(e *watchcache.Entry) string { return e.Labels[key] },
		}, value, true
	}
	return ix, "", false
}

// keyIndex and namespaceIndex are names of what watchers wait by beside the indexes of lists.
type (
	keyIndex       struct{}
	namespaceIndex struct{}
)

// concern returns by what, and by which value of it, a watch knows the events that it may have to send: one object,
// what index says, or a namespace. false if it is all.
func (sel *selector) concern() (ix watchcache.Index, value string, ok bool) {
	if sel.name != "" && (sel.namespace != "" || !sel.c.Resource.Namespaced) {
		key := sel.name
		if sel.namespace != "" {
			key = sel.namespace + "/" + key
		}
		return watchcache.Index{Name: keyIndex{}, Value: (*watchcache.Entry).Key}, key, true
	}
	if ix, value, ok = sel.index(); ok {
		return ix, value, true
	}
	if sel.namespace != "" {
		return watchcache.Index{Name: namespaceIndex{}, Value: func(e *watchcache.Entry) string { return e.Namespace }},
			sel.namespace, true
	}
	return ix, "", false
}
