package schema

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// explainer describes the errors of an object. It visits keywords in the order of
// k8s.io/kube-openapi/pkg/validation/validate, except that properties are sorted by name, and counts successes: of the
// alternatives of anyOf and oneOf, Kubernetes reports the one with the most.
type explainer struct {
	state    walk
	path     []byte // current path: ".a[0].b"; leading dot only below the root's additionalProperties
	failures []failure
}

// failure is one error.
type failure struct {
	kind    failureKind
	path    string // "" is the root
	value   any
	message string // with the path; failures with equal messages are one
	limit   int64  // of tooLong, tooMany
	enum    []any  // of notSupported
}

type failureKind uint8

const (
	invalidValue failureKind = iota
	invalidType
	missing
	notSupported
	tooLong
	tooMany
	general // not about a particular field
)

// explain returns all errors of v under n's keywords. was is v before the update; failures in unchanged parts are left
// out. at is the path of v in the object, nil for the whole object. If the walk must end early, the errors are
// incomplete.
func (w *walk) explain(n *Node, v any, was prior, at *field.Path) field.ErrorList {
	x := &explainer{state: *w} // a copy, so that w stays on the stack of a successful validation
	x.walk(n, v, was)
	*w = x.state
	if len(x.failures) == 0 {
		return nil
	}
	errs := make(field.ErrorList, 0, len(x.failures))
	seen := make(map[string]bool, len(x.failures))
	for i := range x.failures {
		if f := &x.failures[i]; !seen[f.message] {
			seen[f.message] = true
			errs = append(errs, f.error(at))
		}
	}
	return errs
}

// walk checks v, a value in the structural part of the schema, and discards its failures if v has not changed.
func (x *explainer) walk(n *Node, v any, was prior) (passed int) {
	mark := len(x.failures)
	changed := false
	passed = x.check(n, v, &descent{was: was, changed: &changed})
	if len(x.failures) > mark && !changed && n.unchanged(v, was) {
		x.failures = x.failures[:mark]
	}
	return passed
}

// descent carries the state for the children of a value in the structural part. nil means that the value is below
// allOf, anyOf, oneOf or not, where there is no ratcheting.
type descent struct {
	was     prior
	changed *bool // set when a child's failures show that the value has changed
}

// check reports the errors of v and returns the number of passed checks.
func (x *explainer) check(n *Node, v any, d *descent) (passed int) {
	if x.state.over() {
		return 0
	}
	if v == nil {
		return x.checkNull(n)
	}
	if n.types != 0 || n.knownFormat() != "" {
		passed++
		if x.checkType(n, v) {
			passed++
		}
	}
	passed += x.checkJunctions(n, v) + 1
	switch v := v.(type) {
	case string:
		passed++
		x.checkText(n, v)
		if n.format != nil {
			passed++
			if !n.format.check(v) {
				x.wrongType(n.format.name, v)
			}
		}
	case int64, float64:
		passed += 2
		if n.numeric != nil {
			x.explainNumber(n.numeric, v)
		}
	case []any:
		passed += 2 + x.checkList(n, v, d)
	}
	passed++
	if len(n.Enum) > 0 && !inEnum(n.Enum, v) {
		x.wrongEnum(n, v)
	}
	if m, ok := v.(map[string]any); ok {
		passed += 1 + x.checkObject(n, m, d)
	}
	return passed + 1
}

func (x *explainer) checkNull(n *Node) (passed int) {
	if n.acceptsNull() {
		passed = 1
	} else {
		x.wrongType(typeNames(n), "null")
	}
	if len(n.Enum) > 0 {
		x.wrongEnum(n, nil)
	}
	return passed
}

func (x *explainer) checkType(n *Node, v any) bool {
	kind, format, ok := "", "", false
	switch v := v.(type) {
	case string:
		kind, ok = "string", n.accepts&kindString != 0
	case []any:
		kind, ok = "array", n.accepts&kindArray != 0
	case bool:
		kind, ok = "boolean", n.accepts&kindBoolean != 0
	case map[string]any:
		kind, ok = "object", n.accepts&kindObject != 0
	case int64:
		kind, format, ok = "integer", "int64", n.accepts&kindInteger != 0
	case float64:
		kind, format, ok = "number", "float64", n.acceptsFloat(v)
	}
	if ok {
		return true
	}
	known := n.knownFormat()
	if known != "" && known != format && kind != "string" && kind != "array" {
		x.wrongType(known, format)
	} else {
		x.wrongType(typeNames(n), kind)
	}
	return false
}

// typeNames returns the accepted types in Kubernetes' spelling.
func typeNames(n *Node) string {
	if n.IntOrString {
		return "integer,string"
	}
	return n.Type
}

// checkText reports the first failure only, as kube does.
func (x *explainer) checkText(n *Node, v string) {
	length := int64(utf8.RuneCountInString(v))
	switch {
	case n.MaxLength != nil && length > *n.MaxLength:
		x.fail(failure{
			kind: tooLong, limit: *n.MaxLength, message: x.text("should be at most %d chars long", *n.MaxLength),
		})
	case n.MinLength != nil && length < *n.MinLength:
		x.invalid(v, "should be at least %d chars long", *n.MinLength)
	case n.badRE != "":
		x.invalid(v, "should match '%s, but pattern is invalid: %s'", n.Pattern, n.badRE)
	case n.pattern != nil && !x.state.matches(n, v):
		x.invalid(v, "should match '%s'", n.Pattern)
	}
}

func (x *explainer) checkList(n *Node, list []any, d *descent) (passed int) {
	if n.Items != nil {
		was := func(any) prior { return prior{} }
		if d != nil {
			was = d.was.items(n)
		}
		for i, v := range list {
			mark, size := len(x.failures), len(x.path)
			x.path = append(strconv.AppendInt(append(x.path, '['), int64(i), 10), ']')
			if d == nil {
				passed += x.check(n.Items, v, nil)
			} else {
				x.walk(n.Items, v, was(v))
				*d.changed = *d.changed || n.ListType == "map" && len(x.failures) > mark
			}
			x.path = x.path[:size]
		}
	}
	size := int64(len(list))
	if n.MinItems != nil && size < *n.MinItems {
		x.invalid(size, "should have at least %d items", *n.MinItems)
	}
	if n.MaxItems != nil && size > *n.MaxItems {
		x.fail(failure{
			kind: tooMany, value: size, limit: *n.MaxItems,
			message: x.text("should have at most %d items", *n.MaxItems),
		})
	}
	return passed
}

func (x *explainer) checkObject(n *Node, m map[string]any, d *descent) (passed int) {
	size := int64(len(m))
	if n.MinProps != nil && size < *n.MinProps {
		x.invalid(size, "should have at least %d properties", *n.MinProps)
	}
	if n.MaxProps != nil && size > *n.MaxProps {
		x.fail(failure{
			kind: tooMany, value: size, limit: *n.MaxProps,
			message: x.text("should have at most %d properties", *n.MaxProps),
		})
	}
	if n.flags.has(closed) || n.AdditionalProperties != nil {
		for _, key := range sortedKeys(m) {
			switch {
			case n.Properties[key] != nil:
			case n.flags.has(closed):
				x.fail(failure{value: key, message: fmt.Sprintf("%s.%s in body is a forbidden property", x.path, key)})
			default:
				passed += x.checkChild(n.AdditionalProperties, key, m[key], true, n, d)
			}
		}
	}
	for _, f := range n.fields {
		if v, ok := m[f.name]; ok {
			passed += x.checkChild(f.node, f.name, v, len(x.path) > 0, n, d)
		}
	}
	for _, name := range n.Required {
		if _, ok := m[name]; !ok {
			path := string(x.path) + "." + name
			x.failures = append(x.failures, failure{kind: missing, path: path, message: path + " in body is required"})
		}
	}
	return passed
}

// checkChild checks the property key of parent. dot is true if a dot precedes the key in the path.
func (x *explainer) checkChild(n *Node, key string, v any, dot bool, parent *Node, d *descent) (passed int) {
	mark, size := len(x.failures), len(x.path)
	if dot {
		x.path = append(x.path, '.')
	}
	x.path = append(x.path, key...)
	switch {
	case d == nil:
		passed = x.check(n, v, nil)
	case size == 0 && (key == "kind" || key == "apiVersion"):
		// Never ratcheted: both old and new have the version of the request.
		x.walk(n, v, prior{})
	default:
		x.walk(n, v, d.was.child(parent, key))
		*d.changed = *d.changed || len(x.failures) > mark
	}
	x.path = x.path[:size]
	return passed
}

// attempt is the result of one alternative.
type attempt struct {
	passed   int
	failures []failure
}

// fail reports f at the value at hand.
func (x *explainer) fail(f failure) {
	f.path = string(x.path)
	x.failures = append(x.failures, f)
}

// general reports something about the whole object; its text names the place.
func (x *explainer) general(message string) {
	x.failures = append(x.failures, failure{kind: general, message: message})
}

func (x *explainer) invalid(value any, format string, args ...any) {
	x.fail(failure{value: value, message: x.text(format, args...)})
}

// wrongType reports that a value is not of the named type or format. is is the value, or its type.
func (x *explainer) wrongType(name, is string) {
	x.fail(failure{kind: invalidType, value: is, message: x.text("must be of type %s: %q", name, is)})
}

func (x *explainer) wrongEnum(n *Node, v any) {
	x.fail(failure{kind: notSupported, value: v, enum: n.Enum, message: x.text("should be one of %v", n.Enum)})
}

// text is a message about the value at hand.
func (x *explainer) text(format string, args ...any) string {
	return string(x.path) + " in body " + fmt.Sprintf(format, args...)
}

// error is f as kube reports it, under at.
func (f *failure) error(at *field.Path) *field.Error {
	path := at
	if f.kind == general {
		return field.Invalid(at, "", f.message)
	}
	if f.path != "" && f.path != "." {
		path = at.Child(strings.TrimPrefix(f.path, "."))
	}
	switch f.kind {
	case invalidType:
		return field.TypeInvalid(path, f.value, f.message)
	case missing:
		return field.Required(path, "")
	case notSupported:
		names := make([]string, len(f.enum))
		for i, e := range f.enum {
			names[i] = enumName(e)
		}
		return field.NotSupported(path, f.value, names)
	case tooLong:
		return field.TooLong(path, "", int(f.limit))
	case tooMany:
		return field.TooMany(path, int(f.value.(int64)), int(f.limit))
	}
	return field.Invalid(path, f.value, f.message)
}

// enumName is an allowed value as kube lists it.
func enumName(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	raw, _ := json.Marshal(v) // decoded JSON can always be encoded
	return string(raw)
}
