package schema

import (
	"errors"
	"fmt"
	"reflect"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkDefaults checks the defaults of a structural schema. If they are valid, it returns the schema's tree; the tree
// is nil, too, if there are neither defaults nor rules. As in Kubernetes, every format counts in this check; objects
// are checked against the formats of their type (KnowsFormat).
func checkDefaults(props *apiextensionsv1.JSONSchemaProps, path *field.Path, o CheckOptions) (field.ErrorList, *Node) {
	if !HasSchema(props,
		func(p *apiextensionsv1.JSONSchemaProps) bool { return p.Default != nil || len(p.XValidations) > 0 }) {
		return nil, nil
	}
	c := compiler{formats: true}
	root, err := c.node(props, true, nil)
	if err != nil {
		return field.ErrorList{field.Invalid(path, "", err.Error())}, nil
	}
	w := defaultChecker{options: o}
	// The root of a schema is a whole object, like an embedded resource.
	resource := *root
	resource.Embedded = true
	resource.flags |= metaBelow
	w.visit(&resource, path)
	if len(w.errs) > 0 {
		return w.errs, nil
	}
	return nil, root
}

// defaultChecker visits the nodes of a tree as compiled, before defaults are pruned.
type defaultChecker struct {
	options CheckOptions
	budget  int64 // of rules; a negative value ends the check
	errs    field.ErrorList

	resource   *Node  // the innermost embedded resource around the current node, or the root
	steps      []step // from there to the node
	insideMeta bool   // the steps lead through apiVersion, kind or metadata
}

func (w *defaultChecker) visit(n *Node, path *field.Path) {
	if !n.flags.has(defaultsBelow) || w.budget < 0 {
		return
	}
	if n.Embedded {
		outer := *w
		w.resource, w.steps, w.insideMeta = n, nil, false
		defer func() { w.resource, w.steps, w.insideMeta = outer.resource, outer.steps, outer.insideMeta }()
	}
	select {
	case <-w.options.Done:
		return
	default:
	}
	if n.Default != nil {
		w.check(n, path.Child("default"))
	}
	// Defaults below additionalProperties are forbidden elsewhere, or never checked: they stay with their item.
	if n.Items != nil {
		w.below(n.Items, path.Child("items"), step{list: true}, w.insideMeta)
	}
	for _, f := range n.fields {
		w.below(f.node, path.Child("properties").Key(f.name), step{key: f.name}, w.insideMeta || n.Embedded &&
			isMeta(f.name))
	}
}

func (w *defaultChecker) below(n *Node, path *field.Path, s step, insideMeta bool) {
	outer := w.insideMeta
	w.steps = append(w.steps, s)
	w.insideMeta = insideMeta
	w.visit(n, path)
	w.insideMeta = outer
	w.steps = w.steps[:len(w.steps)-1]
}

// check checks the default of n at path. It reports only the first kind of error, except for unknown fields.
func (w *defaultChecker) check(n *Node, path *field.Path) {
	value := runtime.DeepCopyJSONValue(n.Default)
	if w.insideMeta {
		if problem := w.metadataProblem(value); problem != nil {
			w.errs = append(w.errs,
				field.Invalid(path, n.Default, fmt.Sprintf("must result in valid metadata: %v", problem)))
			return
		}
	} else {
		if !w.options.AllowUnprunedDefault && isUnpruned(n) {
			// As in kube-apiserver, the error shows the value after the next step.
			w.errs = append(w.errs, field.Invalid(path, value, "must not have unknown fields"))
		}
		z := normalizer{coerce: true}
		z.value(n, value, false)
		if z.err != nil {
			w.errs = append(w.errs, moveError(path, z.err))
			return
		}
		if errs := explainMeta(n, value, path.String()); len(errs) > 0 {
			w.errs = append(w.errs, errs...)
			return
		}
	}
	if errs := new(walk).explain(literal(n), value, prior{}, path); len(errs) > 0 {
		w.errs = append(w.errs, errs...)
		return
	}
	if w.options.DefaultRules != nil {
		var errs field.ErrorList
		errs, w.budget = w.options.DefaultRules(n, n == w.resource, path, value, w.budget)
		w.errs = append(w.errs, errs...)
	}
}

// literal returns n without x-kubernetes-int-or-string: kube-apiserver checks defaults as if the keyword were missing,
// so only the node's type counts, and usually there is none.
func literal(n *Node) *Node {
	c := *n
	changed := n.IntOrString
	c.IntOrString = false
	sub := func(child *Node) *Node {
		if child == nil {
			return nil
		}
		l := literal(child)
		changed = changed || l != child
		return l
	}
	c.Items, c.AdditionalProperties = sub(n.Items), sub(n.AdditionalProperties)
	if len(n.fields) > 0 {
		c.fields = make([]property, len(n.fields))
		c.Properties = make(map[string]*Node, len(n.fields))
		for i, f := range n.fields {
			c.fields[i] = property{f.name, sub(f.node)}
			c.Properties[f.name] = c.fields[i].node
		}
	}
	if !changed {
		return n
	}
	c.prepare(true, &interner{})
	return &c
}

// isUnpruned reports whether pruning would remove fields from n's default.
func isUnpruned(n *Node) bool {
	z := normalizer{prune: true}
	z.value(n, runtime.DeepCopyJSONValue(n.Default), false)
	return len(z.unknown) > 0
}

// metadataProblem puts a default inside a resource's identity or metadata into an otherwise empty resource, and returns
// the resulting error.
func (w *defaultChecker) metadataProblem(value any) error {
	for i := len(w.steps) - 1; i >= 0; i-- {
		if s := w.steps[i]; s.list {
			value = []any{value}
		} else {
			value = map[string]any{s.key: value}
		}
	}
	obj, ok := value.(map[string]any)
	if !ok {
		return errNotObject
	}
	for key, filler := range map[string]string{"kind": "Validation", "apiVersion": "validation/v1"} {
		if _, ok := obj[key]; !ok {
			obj[key] = filler
		}
	}
	z := normalizer{coerce: true}
	z.value(w.resource, obj, false)
	if z.err != nil {
		return z.err
	}
	return explainMeta(w.resource, obj, "").ToAggregate()
}

// moveError moves an error about a part of a value to the value's path.
func moveError(path *field.Path, err error) *field.Error {
	var e *field.Error
	if !errors.As(err, &e) {
		return field.Invalid(path, "", err.Error())
	}
	moved := *e
	if len(e.Field) > 0 && e.Field[0] == '[' {
		moved.Field = path.String() + e.Field
	} else {
		moved.Field = path.String() + "." + e.Field
	}
	return &moved
}

// HasUnprunedDefault reports whether a default in the schema has fields that pruning would drop. It is false for
// schemas that are not structural.
func HasUnprunedDefault(props *apiextensionsv1.JSONSchemaProps) bool {
	if !HasSchema(props, func(p *apiextensionsv1.JSONSchemaProps) bool { return p.Default != nil }) ||
		CheckSupported(props) != nil || len(CheckStructural(props, nil)) > 0 {
		return false
	}
	c := compiler{}
	raw, err := c.node(props, true, nil)
	if err != nil {
		return false
	}
	pruned, err := c.node(props, true, nil)
	if err != nil || pruneDefaults(pruned) != nil {
		return false
	}
	return !sameDefaults(raw, pruned)
}

// sameDefaults compares two trees of the same schema.
func sameDefaults(a, b *Node) bool {
	if a == nil || !a.flags.has(defaultsBelow) {
		return true
	}
	for i := range a.fields {
		if !sameDefaults(a.fields[i].node, b.fields[i].node) {
			return false
		}
	}
	return reflect.DeepEqual(a.Default, b.Default) && sameDefaults(a.Items, b.Items) &&
		sameDefaults(a.AdditionalProperties, b.AdditionalProperties)
}
