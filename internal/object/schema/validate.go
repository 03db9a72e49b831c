package schema

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate returns everything that is wrong with obj. old is the object before an update (nil on create): what was
// wrong and has not changed passes. Neither is changed.
func (s *Schema) Validate(obj, old map[string]any) field.ErrorList {
	return s.ValidateAfter(nil, obj, old)
}

// ValidateAfter is Validate for a caller that has found errors of its own, in the object's metadata. They come first,
// and may be such that rules are not run.
func (s *Schema) ValidateAfter(errs field.ErrorList, obj, old map[string]any) field.ErrorList {
	if !s.valid(s.root, obj) {
		errs = append(errs, explain(s.root, obj, prior{old != nil, old}, nil)...)
		errs = s.explainScale(errs, obj, true)
		errs = append(errs, explainMeta(s.root, obj, "")...)
		if old == nil || len(s.explainLists(s.root, old, "")) == 0 {
			errs = append(errs, s.explainLists(s.root, obj, "")...)
		}
	} else {
		errs = s.explainScale(errs, obj, true)
		errs = append(errs, explainMeta(s.root, obj, "")...)
	}
	return s.evaluate(errs, obj, old)
}

// ValidateStatus is ValidateAfter for the status subresource: only the status is checked, except that list types and
// rules are checked everywhere.
func (s *Schema) ValidateStatus(errs field.ErrorList, obj, old map[string]any) field.ErrorList {
	n := s.root.Properties["status"]
	if status, ok := obj["status"]; ok && n != nil && !s.valid(n, status) {
		was, known := old["status"]
		errs = append(errs, explain(n, status, prior{known || was == nil, was}, field.NewPath("status"))...)
	}
	errs = s.explainScale(errs, obj, false)
	if lists := s.explainLists(s.root, obj, ""); len(lists) > 0 && len(s.explainLists(s.root, old, "")) == 0 {
		errs = append(errs, lists...)
	}
	return s.evaluate(errs, obj, old)
}

// evaluate runs the rules, unless errs say that the object does not have the shape that rules rely on.
func (s *Schema) evaluate(errs field.ErrorList, obj, old map[string]any) field.ErrorList {
	if s.rules == nil {
		return errs
	}
	if slices.ContainsFunc(errs, blocksRules) {
		return append(errs,
			field.Invalid(nil, nil,
				"some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"))
	}
	return append(errs, s.rules.Evaluate(obj, old)...)
}

// blocksRules says whether rules could fail, or cost too much, because of err.
func blocksRules(err *field.Error) bool {
	switch err.Type {
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany,
		field.ErrorTypeTypeInvalid:
		return true
	}
	return false
}
