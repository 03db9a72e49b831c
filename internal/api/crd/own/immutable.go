package own

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/schema/cel/jsonpath"
)

// ImmutableKeyword is the keyword of a schema for a value that cannot change once it is set. It is a shorthand for
// validation rules.
const ImmutableKeyword = "x-bowsprit-immutable"

const (
	validations   = "x-kubernetes-validations"
	unchanged     = "self == oldSelf"
	immutableText = "is immutable"
)

// TakeImmutable replaces the keyword by validation rules in the schemas of a definition of v1 or v1beta1: the value
// equals the old one, and a property stays. A keyword that has no rules stays for the validation.
func TakeImmutable(obj object.Object) {
	eachSchema(obj, func(root object.Object, _ *field.Path) {
		walk(root, nil, spot{root: true}, func(s object.Object, _ *field.Path, p spot) {
			v, set := s[ImmutableKeyword]
			switch {
			case !set:
			case v == nil || v == false:
				delete(s, ImmutableKeyword)
			case v == true && p.forbids() == "":
				delete(s, ImmutableKeyword)
				addRule(s, object.Object{"rule": unchanged, "message": immutableText})
				if rule, at := stays(p); rule != "" {
					addRule(p.parent, object.Object{"rule": rule, "message": immutableText, "fieldPath": at})
				}
			}
		})
	})
}

// stays returns the rule of an object that keeps a property, and the property's path for errors. Required properties,
// items and the values of maps have none.
func stays(p spot) (rule, at string) {
	if p.parent == nil {
		return "", ""
	}
	if required, _ := p.parent["required"].([]any); slices.Contains(required, any(p.name)) {
		return "", ""
	}
	escaped, _ := jsonpath.Escape(p.name)
	return fmt.Sprintf("!has(oldSelf.%[1]s) || has(self.%[1]s)", escaped), fmt.Sprintf("['%s']", p.name)
}

// addRule adds a validation rule to a schema that does not have it.
func addRule(s, rule object.Object) {
	rules, _ := s[validations].([]any)
	for _, have := range object.Objects(rules) {
		if have["rule"] == rule["rule"] {
			return
		}
	}
	s[validations] = append(slices.Clone(rules), rule)
}

// CheckImmutable returns the errors in keywords that TakeImmutable has left.
func CheckImmutable(obj object.Object) (errs field.ErrorList) {
	eachSchema(obj, func(root object.Object, at *field.Path) {
		walk(root, at, spot{root: true}, func(s object.Object, at *field.Path, p spot) {
			v, set := s[ImmutableKeyword]
			switch v.(type) {
			case bool:
				errs = append(errs, field.Forbidden(at.Child(ImmutableKeyword), p.forbids()))
			default:
				if set {
					errs = append(errs, field.Invalid(at.Child(ImmutableKeyword), v, "must be true or false"))
				}
			}
		})
	})
	return errs
}

// spot is the place of a schema within another one.
type spot struct {
	root    bool
	junctor bool          // below allOf, anyOf, oneOf or not
	parent  object.Object // the schema of which it is a property, nil for others
	name    string        // of the property
	system  bool          // apiVersion, kind or metadata of an object, or below
}

// forbids returns the reason against the immutable keyword, "" if it is allowed.
func (p spot) forbids() string {
	switch _, ok := jsonpath.Escape(p.name); {
	case p.root:
		return "must not be used at the root of the schema: the status would be immutable, too"
	case p.junctor:
		return "must not be used below allOf, anyOf, oneOf and not"
	case p.system:
		return "must not be used for apiVersion, kind and metadata"
	case p.parent != nil && !ok:
		return "must not be used for a field that validation rules cannot name"
	}
	return ""
}

// eachSchema calls f with the schemas of a definition of v1 or v1beta1.
func eachSchema(obj object.Object, f func(root object.Object, at *field.Path)) {
	spec := field.NewPath("spec")
	one := func(v any, at *field.Path) {
		holder, _ := v.(object.Object)
		if root, ok := holder["openAPIV3Schema"].(object.Object); ok {
			f(root, at.Child("openAPIV3Schema"))
		}
	}
	one(object.Map(obj, "spec")["validation"], spec.Child("validation"))
	for i, version := range versions(obj) {
		one(version["schema"], spec.Child("versions").Index(i).Child("schema"))
	}
}

// walk calls f with a schema and all schemas in it, in a fixed order, inner ones first.
func walk(s object.Object, at *field.Path, p spot, f func(s object.Object, at *field.Path, p spot)) {
	below := func(v any, at *field.Path, p spot) {
		if child, ok := v.(object.Object); ok {
			walk(child, at, p, f)
		}
	}
	properties, _ := s["properties"].(object.Object)
	embedded := p.root || s["x-kubernetes-embedded-resource"] == true
	for _, name := range object.Keys(properties) {
		system := p.system || embedded && (name == "apiVersion" || name == "kind" || name == "metadata")
		below(properties[name], at.Child("properties").Key(name),
			spot{junctor: p.junctor, parent: s, name: name, system: system})
	}
	inner := spot{junctor: p.junctor, system: p.system}
	below(s["items"], at.Child("items"), inner)
	below(s["additionalProperties"], at.Child("additionalProperties"), inner)
	inner.junctor = true
	for _, name := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := s[name].([]any)
		for i, v := range list {
			below(v, at.Child(name).Index(i), inner)
		}
	}
	below(s["not"], at.Child("not"), inner)
	f(s, at, p)
}
