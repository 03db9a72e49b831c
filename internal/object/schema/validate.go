package schema

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate returns all errors of obj. old is the object before an update (nil on create): old errors in unchanged parts
// pass. Neither is changed.
func (s *Schema) Validate(obj, old map[string]any) field.ErrorList {
	errs, _ := s.ValidateAfter(context.Background(), nil, obj, old, nil)
	return errs
}

// ValidateAfter is Validate for a caller with its own errors about the object's metadata. They come first, and may
// prevent the rules from running. warn receives the failures of rules that ratcheting accepts; nil drops them. The
// error is ctx's, if ctx ended early.
func (s *Schema) ValidateAfter(
	ctx context.Context, errs field.ErrorList, obj, old map[string]any, warn func(*field.Error),
) (field.ErrorList, error) {
	w := newWalk(ctx, s)
	if !w.valid(s.root, obj) {
		errs = append(errs, w.explain(s.root, obj, prior{old != nil, old}, nil)...)
		if w.ended {
			return nil, ctx.Err()
		}
		errs = s.explainScale(errs, obj, true)
		errs = append(errs, explainMeta(s.root, obj, "")...)
		if old == nil || len(s.explainLists(s.root, old, "")) == 0 {
			errs = append(errs, s.explainLists(s.root, obj, "")...)
		}
	} else {
		errs = s.explainScale(errs, obj, true)
		errs = append(errs, explainMeta(s.root, obj, "")...)
	}
	return s.evaluate(ctx, errs, obj, old, warn)
}

// ValidateStatus is ValidateAfter for the status subresource: only the status is checked, except that list types and
// rules are checked everywhere.
func (s *Schema) ValidateStatus(
	ctx context.Context, errs field.ErrorList, obj, old map[string]any, warn func(*field.Error),
) (field.ErrorList, error) {
	n, w := s.root.Properties["status"], newWalk(ctx, s)
	if status, ok := obj["status"]; ok && n != nil && !w.valid(n, status) {
		was, known := old["status"]
		errs = append(errs, w.explain(n, status, prior{known || was == nil, was}, field.NewPath("status"))...)
		if w.ended {
			return nil, ctx.Err()
		}
	}
	errs = s.explainScale(errs, obj, false)
	if lists := s.explainLists(s.root, obj, ""); len(lists) > 0 && len(s.explainLists(s.root, old, "")) == 0 {
		errs = append(errs, lists...)
	}
	return s.evaluate(ctx, errs, obj, old, warn)
}

// evaluate runs the rules, unless errs show that the object does not have the shape required by rules.
func (s *Schema) evaluate(
	ctx context.Context, errs field.ErrorList, obj, old map[string]any, warn func(*field.Error),
) (field.ErrorList, error) {
	if s.rules == nil {
		return errs, nil
	}
	if slices.ContainsFunc(errs, blocksRules) {
		return append(errs,
			field.Invalid(nil, nil,
				"some validation rules were not checked because the object was invalid; correct the existing errors to complete validation")), nil
	}
	errs = append(errs, s.rules.Evaluate(ctx, obj, old, warn)...)
	return errs, ctx.Err()
}

// blocksRules reports whether rules could fail, or cost too much, because of err.
func blocksRules(err *field.Error) bool {
	switch err.Type {
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany,
		field.ErrorTypeTypeInvalid:
		return true
	}
	return false
}
