package rule

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
)

// converted returns the rules of a version with other fields than the storage version: the rules of the storage
// version, on converted objects, as in Kubernetes, where rules are for internal types. Paths in errors are the storage
// version's, except in errors of declarative rules. Decoding and defaults are the version's own.
func (k Kind) converted(v *Version) *catalog.Strategy {
	rules := k.Strategy
	from, to := &catalog.Version{Name: v.Name}, &catalog.Version{Name: k.Group.Version}
	// The conversions of built-in kinds accept every decoded object.
	stored := func(obj object.Object) object.Object {
		if obj == nil {
			return nil
		}
		out := runtime.DeepCopyJSON(obj)
		_ = k.Convert(from, to, out)
		return out
	}
	inPlace := func(obj object.Object, change func()) {
		_ = k.Convert(from, to, obj)
		change()
		_ = k.Convert(to, from, obj)
	}
	own := *rules
	own.Decode, own.Default = v.decode, v.Default
	own.PrepareCreate = func(obj object.Object, e catalog.Env) {
		inPlace(obj, func() {
			if rules.PrepareCreate != nil {
				rules.PrepareCreate(obj, e)
			}
		})
	}
	own.PrepareUpdate = func(obj, old object.Object, subresource string, e catalog.Env) {
		inPlace(obj, func() { rules.PrepareUpdate(obj, stored(old), subresource, e) })
	}
	own.Validate = func(ctx context.Context, obj object.Object) field.ErrorList {
		return k.older(rules.Validate(ctx, stored(obj)))
	}
	own.ValidateUpdate = func(ctx context.Context, obj, old object.Object, subresource string) field.ErrorList {
		return k.older(rules.ValidateUpdate(ctx, stored(obj), stored(old), subresource))
	}
	if rules.ValidateIn != nil {
		own.ValidateIn = func(
			obj, old object.Object, subresource string, labels func() (map[string]string, error),
		) field.ErrorList {
			return rules.ValidateIn(stored(obj), stored(old), subresource, labels)
		}
	}
	own.Warnings = func(obj, old object.Object, subresource string) []string {
		return rules.Warnings(stored(obj), stored(old), subresource)
	}
	own.Cells = func(obj object.Object, e catalog.Env) []any { return rules.Cells(stored(obj), e) }
	own.Store = func(obj object.Object) { inPlace(obj, func() { rules.Store(obj) }) }
	return &own
}

// older changes the errors of declarative rules to the older version's.
func (k Kind) older(errs field.ErrorList) field.ErrorList {
	for _, e := range errs {
		if k.OlderError != nil && e.IsBeta() {
			k.OlderError(e)
		}
	}
	return errs
}
