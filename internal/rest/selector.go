package rest

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bowsprit/bowsprit/internal/watchcache"
)

// selector is what a list or a watch keeps of a collection.
type selector struct {
	s      *Server
	c      *Call
	labels labels.Selector     // nil: all
	fields fields.Requirements // each of = or !=
	// name is set if the fields ask for one name with "=": then the object is looked up, not searched for.
	name string
}

// selector checks that the call's kind has the fields that are asked for.
func (s *Server) selector(c *Call, l labels.Selector, f fields.Selector) (*selector, error) {
	sel := &selector{s: s, c: c}
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
		if value, ok := f.RequiresExactMatch("metadata.name"); ok {
			sel.name = value
		}
		sel.fields = append(sel.fields, req)
	}
	return sel, nil
}

func (c *Call) knowsField(name string) bool {
	switch name {
	case "metadata.name":
		return true
	case "metadata.namespace":
		return c.Resource.Namespaced || !c.Resource.Custom()
	}
	if slices.Contains(c.Version.SelectableFields, "."+name) {
		return true
	}
	return c.rules() != nil && c.rules().FieldLabels[name] != nil
}

func (c *Call) unknownField(name string) string {
	if c.Resource.Custom() || c.rules() != nil && c.rules().FieldLabels != nil {
		return "field label not supported: " + name
	}
	return fmt.Sprintf("%q is not a known field selector: only %q, %q", name, "metadata.name", "metadata.namespace")
}

// all tells whether the selector keeps everything.
func (sel *selector) all() bool { return sel.labels == nil && len(sel.fields) == 0 }

// matches tells whether an entry is kept.
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
	if rules := sel.c.rules(); rules != nil && rules.FieldLabels[name] != nil {
		obj, err := sel.s.fromEntry(sel.c, e)
		if err != nil {
			return ""
		}
		return rules.FieldLabels[name](obj)
	}
	if sel.c.Version == sel.c.Resource.Storage || e.IsConverted() {
		value, _ := e.Field(name)
		return value
	}
	obj, err := sel.s.fromEntry(sel.c, e) // the field may lie elsewhere in the stored version
	if err != nil {
		return ""
	}
	return fieldText(obj, name)
}

// fieldText prints the value at a dotted path as selectors compare it.
func fieldText(obj Object, path string) string {
	var v any = obj
	for _, key := range strings.Split(path, ".") {
		m, ok := v.(Object)
		if !ok {
			return ""
		}
		v = m[key]
	}
	switch v.(type) {
	case string, bool, int64:
		return fmt.Sprint(v)
	}
	return ""
}
