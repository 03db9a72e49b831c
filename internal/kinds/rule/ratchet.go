package rule

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unversioned "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/object"
)

// Exception is a rule that an object may violate if it did so before the update: an older Kubernetes has accepted it,
// and a client must be able to change other fields.
//
// Source: GetValidationOptionsFromPodSpecAndMeta of pkg/api/pod and its like in pkg/registry.
type Exception string

// SelectorValues is the rule that a selector selects by values that labels can have.
const SelectorValues Exception = "a selector selects by possible labels"

// allowedKey is the context key of the lifted rules.
type allowedKey struct{}

// Allow returns a context in which every object may violate a rule, because an enabled feature lifts it.
func Allow(ctx context.Context, rule Exception) context.Context {
	before, _ := ctx.Value(allowedKey{}).([]Exception)
	return context.WithValue(ctx, allowedKey{}, append(slices.Clip(before), rule))
}

// lackedKey is the context key of disabled features.
type lackedKey struct{}

// Without returns a context in which Kubernetes' features of these names are disabled, too.
func Without(ctx context.Context, features ...string) context.Context {
	before, _ := ctx.Value(lackedKey{}).([]string)
	return context.WithValue(ctx, lackedKey{}, slices.Concat(before, features))
}

// NewValidation returns a Validation for functions that are called directly, with disabled features.
func NewValidation(obj, old object.Object, off []string) *Validation {
	return &Validation{Obj: obj, Old: old, lacked: off}
}

// Lacks reports whether a feature that is on by default is disabled (Without).
func (val *Validation) Lacks(feature string) bool { return slices.Contains(val.lacked, feature) }

// Excused reports whether an object that violates a rule did so before the update, or may in any case. Only after a
// violation, which is rare, it also validates the old object.
func (val *Validation) Excused(rule Exception) bool {
	if slices.Contains(val.allowed, rule) {
		return true
	}
	if val.breaks == nil {
		val.breaks = map[Exception]bool{}
	}
	val.breaks[rule] = true
	return val.Was(rule)
}

// Was reports whether the old object broke a rule.
func (val *Validation) Was(rule Exception) bool {
	if val.Old == nil {
		return false
	}
	if val.broke == nil {
		past := Validation{
			blocks: val.blocks, done: val.done, kind: val.kind, Obj: val.Old, allowed: val.allowed,
			breaks: map[Exception]bool{},
		}
		past.Block(val.kind, val.Old, nil, nil)
		val.broke = past.breaks
	}
	return val.broke[rule]
}

// Selects validates a selector, if there is one. If the object violated the rule before, values may be invalid label
// values.
func (val *Validation) Selects(v any, rule Exception, path *field.Path) {
	s := LabelSelector(v)
	errs := SelectorErrors(s, false, path)
	if len(errs) > 0 && val.Excused(rule) {
		errs = SelectorErrors(s, true, path)
	}
	val.Errs = append(val.Errs, errs...)
}

// SelectorErrors returns the errors in a selector, which may be nil. anyValue accepts invalid label values.
func SelectorErrors(s *metav1.LabelSelector, anyValue bool, path *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	return unversioned.ValidateLabelSelector(s,
		unversioned.LabelSelectorValidationOptions{AllowInvalidLabelValueInSelector: anyValue}, path)
}
