package admission

import (
	"context"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/admit/registration"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

// admissionStrategy is the strategy of a kind that configures admission. A write returns when the view shows it, so
// that later requests are subject to the new configuration.
func admissionStrategy(defaults func(object.Object)) *catalog.Strategy {
	return &catalog.Strategy{Default: defaults, VisibleOnReturn: true}
}

// checked makes a function for rules from a check of an object and its former state, nil for a new object. ended is
// true once the request has ended.
func checked[T any](check func(obj, old *T, ended func() bool) field.ErrorList) rule.Function {
	return func(val *rule.Validation, v rule.Value) {
		rule.Typed(func(obj *T) field.ErrorList { return check(obj, nil, val.Ended) },
			func(obj, old *T, _ string) field.ErrorList { return check(obj, old, val.Ended) })(val, v)
	}
}

func paramKind(k *admissionregistrationv1.ParamKind) string {
	if k == nil {
		return rule.Unset
	}
	return k.APIVersion + "/" + k.Kind
}

func paramRef(r *admissionregistrationv1.ParamRef) string {
	switch {
	case r == nil:
		return rule.Unset
	case r.Name != "" && r.Namespace != "":
		return r.Namespace + "/" + r.Name
	case r.Name != "":
		return "*/" + r.Name
	case r.Selector != nil:
		return r.Selector.String()
	}
	return rule.Unset
}

// admissionKind returns a kind that configures admission.
func admissionKind(
	name, plural string, rules *catalog.Strategy, cells func(object.Object, catalog.Env) []any,
) rule.Kind {
	rules.Cells = cells
	return rule.Kind{
		Group: admissionregistrationV1, Kind: name, AnyFinalizer: true, Plural: plural,
		Categories:    rule.CategoryExtensions,
		ClusterScoped: true,
		Generation:    true, Strategy: rules,
		Warn: warnStaticSuffix,
	}
}

// reserved is the text about a name that belongs to manifests.
var reserved = fmt.Sprintf("names ending with %q are reserved for static manifest-based configurations and cannot be "+
	"managed via the API", registration.ManifestSuffix)

// warnStaticSuffix warns about a name that belongs to manifests.
func warnStaticSuffix(w *rule.Warnings) {
	if strings.HasSuffix(object.String(w.Obj, "metadata", "name"), registration.ManifestSuffix) {
		w.Addf(field.NewPath("metadata", "name"), "%s", reserved)
	}
}

// ReserveNames makes a kind of this group refuse new objects with the names of manifests.
func ReserveNames(s *catalog.Strategy) {
	validate, warnings := s.Validate, s.Warnings
	s.Validate = func(ctx context.Context, obj object.Object) field.ErrorList {
		errs := validate(ctx, obj)
		if name := object.String(obj, "metadata", "name"); strings.HasSuffix(name, registration.ManifestSuffix) {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), name, reserved))
		}
		return errs
	}
	s.Warnings = func(obj, old object.Object, subresource string) []string {
		if old == nil {
			return nil // the write fails
		}
		return warnings(obj, old, subresource)
	}
}
