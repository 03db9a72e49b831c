package kinds

import (
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

func validateLease(l *coordinationv1.Lease) errorList {
	var errs errorList
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

// checkLeaseStrategy wants a strategy of Kubernetes', or a qualified name of somebody else's.
func checkLeaseStrategy(s coordinationv1.CoordinatedLeaseStrategy, path *field.Path) errorList {
	known := []coordinationv1.CoordinatedLeaseStrategy{coordinationv1.OldestEmulationVersion}
	var errs errorList
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

func leaseCells(obj catalog.Object, e catalog.Env) []any {
	return []any{catalog.Text(obj, "metadata", "name"), catalog.Text(obj, "spec", "holderIdentity"), age(obj, e.Now)}
}
