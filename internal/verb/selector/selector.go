// Package selector selects the objects of a list or a watch: by labels, fields, namespace, shard and the caller's
// permissions. It also chooses the index that finds them, and filters the changes that wake up a watch.
//
// It works on entries of the view. It converts an entry to the client's version only for a selector on a field that the
// stored bytes lack. A Selector belongs to one goroutine.
package selector

import (
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Entries converts entries to a version.
type Entries interface {
	ObjectIn(r *catalog.Resource, v *catalog.Version, e *watchcache.Entry) (object.Object, error)
	JSONIn(r *catalog.Resource, v *catalog.Version, e *watchcache.Entry) ([]byte, error)
}

// Collection is the set of objects to select from.
type Collection struct {
	Resource  *catalog.Resource
	Version   *catalog.Version // version for field selectors
	Namespace string           // "" for all
	// NeedsWebhook is true if a conversion to the version calls a webhook. Then no index can be used.
	NeedsWebhook bool
	Entries      Entries
}

// Selector selects objects of a collection for a list or a watch.
type Selector struct {
	of     Collection
	labels labels.Selector     // nil: all
	fields fields.Requirements // each with = or !=
	// Name is set if the fields require one name with "=": the object is then looked up, not searched for. Namespace is
	// the collection's, or else the namespace that the fields require.
	Name, Namespace string
	// SkipUnreadable omits unreadable objects.
	SkipUnreadable bool
	Sight          *Sight // objects visible to the caller; nil: all
	Shard          *Shard // requested part of the collection; nil: all
}

// New returns a selector, or an error if the kind lacks a requested field. l and f may be nil; a nil visible shows all.
func New(of Collection, l labels.Selector, f fields.Selector, visible request.Visibility) (*Selector, error) {
	sel := &Selector{of: of, Namespace: of.Namespace, Sight: NewSight(visible)}
	if l != nil && !l.Empty() {
		sel.labels = l
	}
	if f == nil || f.Empty() {
		return sel, nil
	}
	for _, req := range f.Requirements() {
		if !of.knowsField(req.Field) {
			return nil, apierrors.NewBadRequest(of.unknownField(req.Field))
		}
		sel.fields = append(sel.fields, req)
	}
	// RequiresExactMatch scans all terms, and a selector may have tens of thousands: call it once for each field.
	if value, ok := f.RequiresExactMatch("metadata.name"); ok {
		sel.Name = value
	}
	if value, ok := f.RequiresExactMatch("metadata.namespace"); ok && sel.Namespace == "" && of.Resource.Namespaced {
		sel.Namespace = value
	}
	return sel, nil
}

func (c *Collection) strategy() *catalog.Strategy { return c.Resource.StrategyFor(c.Version) }

func (c *Collection) knowsField(name string) bool {
	switch name {
	case "metadata.name":
		return true
	case "metadata.namespace":
		// Built-in kinds have this field unless their strategy lists its fields.
		return c.Resource.Namespaced || !c.Resource.Custom() && (c.strategy() == nil || c.strategy().FieldLabels == nil)
	}
	if slices.Contains(c.Version.SelectableFields, "."+name) {
		return true
	}
	return c.strategy() != nil && c.strategy().FieldLabels[name] != nil
}

func (c *Collection) unknownField(name string) string {
	if c.strategy() != nil && c.strategy().UnknownField != "" {
		return fmt.Sprintf(c.strategy().UnknownField, name)
	}
	if c.Resource.Custom() || c.strategy() != nil && c.strategy().FieldLabels != nil {
		return "field label not supported: " + name
	}
	return fmt.Sprintf("%q is not a known field selector: only %q, %q", name, "metadata.name", "metadata.namespace")
}

// All reports whether the selector matches everything.
func (sel *Selector) All() bool {
	return sel.labels == nil && len(sel.fields) == 0 && sel.Sight == nil && sel.Shard == nil
}

// Matches reports whether the selector matches an entry.
func (sel *Selector) Matches(e *watchcache.Entry) bool {
	if e == nil || sel.SkipUnreadable && e.Unreadable() != nil || !sel.Shard.Includes(e) || !sel.Sight.Includes(e) {
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

// field returns the value of a selectable field, "" if the object lacks it.
func (sel *Selector) field(e *watchcache.Entry, name string) string {
	switch name {
	case "metadata.name":
		return e.Name
	case "metadata.namespace":
		return e.Namespace
	}
	return sel.of.fieldOf(e, name, e.Field)
}

// fieldOf returns the value of a field that is selectable by definition, "" if the object lacks it. find looks into the
// stored bytes.
func (c *Collection) fieldOf(e *watchcache.Entry, name string, find func(path string) (string, bool)) string {
	if rules := c.strategy(); rules != nil && rules.FieldLabels[name] != nil {
		obj, err := c.Entries.ObjectIn(c.Resource, c.Version, e)
		if err != nil {
			return ""
		}
		return rules.FieldLabels[name](obj)
	}
	if e.APIVersion == c.Resource.APIVersion(c.Version) || e.IsConverted() {
		if value, ok := find(name); ok {
			return value
		}
	}
	// The value may be a default of the current definition, or elsewhere in the stored version.
	raw, err := c.Entries.JSONIn(c.Resource, c.Version, e)
	if err != nil {
		return ""
	}
	value, _ := watchcache.FieldOf(raw, name)
	return value
}

// fieldIndex and labelIndex are names of indexes.
type (
	fieldIndex struct {
		version *catalog.Version // another definition may have other defaults
		field   string
	}
	labelIndex struct{ key string }
)

// Index returns the index for the selector and the value to look up: a field with a required value, else a label, else
// the shard. ok is false if there is none. The caller must still match the results.
func (sel *Selector) Index() (ix watchcache.Index, value string, ok bool) {
	// Selectors match on the webhook's result, for which an index cannot wait.
	if sel.of.NeedsWebhook {
		return ix, "", false
	}
	if ix, value, ok = sel.valueIndex(); !ok && sel.Shard != nil {
		ix, value = sel.Shard.index()
		ok = true
	}
	return ix, value, ok
}

// valueIndex is Index for fields and labels only.
func (sel *Selector) valueIndex() (ix watchcache.Index, value string, ok bool) {
	for _, q := range sel.fields {
		if f := q.Field; q.Operator == "!=" || q.Value == "" || f == "metadata.name" || f == "metadata.namespace" {
			continue
		}
		of, field := sel.of, q.Field
		return watchcache.Index{Name: fieldIndex{of.Version, field}, Value: func(e *watchcache.Entry) string {
			return of.fieldOf(e, field,
				func(path string) (string, bool) { return watchcache.FieldOf(e.JSON(), path) })
		}}, q.Value, true
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
		byLabel := func(e *watchcache.Entry) string { return e.Labels[key] }
		return watchcache.Index{Name: labelIndex{key}, Value: byLabel}, value, true
	}
	return ix, "", false
}

// keyIndex and namespaceIndex are names of indexes for watchers only.
type keyIndex struct{}
type namespaceIndex struct{}

// Concern returns the narrowest index and value that cover the events of a watch: one object, a field, a label, a shard
// or a namespace. ok is false if the watch needs all events.
func (sel *Selector) Concern() (ix watchcache.Index, value string, ok bool) {
	if sel.Name != "" && (sel.Namespace != "" || !sel.of.Resource.Namespaced) {
		key := sel.Name
		if sel.Namespace != "" {
			key = sel.Namespace + "/" + key
		}
		return watchcache.Index{Name: keyIndex{}, Value: (*watchcache.Entry).Key}, key, true
	}
	if !sel.of.NeedsWebhook {
		if ix, value, ok = sel.valueIndex(); ok {
			return ix, value, true
		}
	}
	if sel.Shard != nil { // the hash is the same in all versions
		ix, value = sel.Shard.concern(sel.Namespace)
		return ix, value, true
	}
	if sel.Namespace != "" {
		return watchcache.Index{Name: namespaceIndex{}, Value: func(e *watchcache.Entry) string { return e.Namespace }},
			sel.Namespace, true
	}
	return ix, "", false
}
