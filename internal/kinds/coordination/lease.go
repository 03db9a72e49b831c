package coordination

import (
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func leaseKind() rule.Kind {
	return rule.Of[coordinationv1.Lease](rule.Kind{
		Group: coordinationV1, Kind: "Lease", AnyFinalizer: true, Plural: "leases",
		Strategy: &catalog.Strategy{
			PrepareCreate:  func(obj object.Object, _ catalog.Env) { dropCoordination(obj, nil) },
			PrepareUpdate:  func(obj, old object.Object, _ string, _ catalog.Env) { dropCoordination(obj, old) },
			CreateOnUpdate: true,
			Cells:          leaseCells,
		},
	})
}

// dropCoordination drops the fields for coordinated leader election from a Lease, except fields that old has. old is
// nil for a new object.
func dropCoordination(lease, old object.Object) {
	spec, was := object.Map(lease, "spec"), object.Map(old, "spec")
	for _, name := range []string{"strategy", "preferredHolder"} {
		if was[name] == nil {
			delete(spec, name)
		}
	}
}

var coordinationV1 = rule.Group{Name: "coordination.k8s.io", Version: "v1", Priority: 16500, Rank: 15}

func validateLease(l *coordinationv1.Lease) field.ErrorList {
	var errs field.ErrorList
	path, spec := field.NewPath("spec"), l.Spec
	if d := spec.LeaseDurationSeconds; d != nil && *d <= 0 {
		errs = append(errs, field.Invalid(path.Child("leaseDurationSeconds"), *d, "must be greater than 0"))
	}
	if n := spec.LeaseTransitions; n != nil && *n < 0 {
		errs = append(errs, field.Invalid(path.Child("leaseTransitions"), *n, "must be greater than or equal to 0"))
	}
	if spec.Strategy != nil {
		errs = append(errs, checkLeaseStrategy(*spec.Strategy, path.Child("strategy"))...)
	}
	if h := spec.PreferredHolder; h != nil && *h != "" && (spec.Strategy == nil || *spec.Strategy == "") {
		errs = append(errs,
			field.Forbidden(path.Child("preferredHolder"), "may only be specified if `strategy` is defined"))
	}
	return errs
}

// checkLeaseStrategy requires one of Kubernetes' strategies, or a qualified name.
func checkLeaseStrategy(s coordinationv1.CoordinatedLeaseStrategy, path *field.Path) field.ErrorList {
	known := []coordinationv1.CoordinatedLeaseStrategy{coordinationv1.OldestEmulationVersion}
	var errs field.ErrorList
	if !strings.Contains(string(s), "/") {
		if !slices.Contains(known, s) {
			errs = append(errs, field.NotSupported(path.Child("strategy"), s, known))
		}
		return errs
	}
	for _, msg := range validation.IsQualifiedName(string(s)) {
		errs = append(errs, field.Invalid(path.Child("strategy"), s, msg))
	}
	return errs
}

func leaseCells(obj object.Object, e catalog.Env) []any {
	return []any{object.String(obj, "metadata", "name"), object.String(obj, "spec", "holderIdentity"),
		rule.Age(obj, e.Now)}
}

// leaseFunctions are the functions that lease.txt names.
func leaseFunctions() rule.Functions {
	return rule.Functions{
		"lease": rule.Typed(validateLease, nil),
	}
}
