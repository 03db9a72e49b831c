package coordination

import (
	"github.com/blang/semver/v4"
	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1alpha2 "k8s.io/api/coordination/v1alpha2"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

func leaseCandidateKind() rule.Kind {
	warning, removed := rule.Outdated(coordinationV1beta1, new(coordinationv1beta1.LeaseCandidate))
	return rule.Of[coordinationv1beta1.LeaseCandidate](rule.Kind{
		Group: coordinationV1beta1, Kind: "LeaseCandidate", AnyFinalizer: true, Plural: "leasecandidates",
		OnDemand:   true,
		Deprecated: warning, Removed: removed,
		Also: rule.OnDemand[coordinationv1alpha2.LeaseCandidate](coordinationV1alpha2),
		Strategy: &catalog.Strategy{
			ValidName:      rule.NameIsConfigKey,
			CreateOnUpdate: true,
			Cells:          rule.Printed(candidateCells),
		},
	})
}

var coordinationV1beta1 = rule.Group{Name: "coordination.k8s.io", Version: "v1beta1", Priority: 16500, Rank: 13}

var coordinationV1alpha2 = rule.Group{Name: "coordination.k8s.io", Version: "v1alpha2", Priority: 16500, Rank: 12}

func validateCandidate(c *coordinationv1beta1.LeaseCandidate) field.ErrorList {
	var errs field.ErrorList
	path, spec := field.NewPath("spec"), c.Spec
	if spec.LeaseName == "" {
		errs = append(errs, field.Required(path.Child("leaseName"), ""))
	}
	emulated, wrong := checkVersion(spec.EmulationVersion, path.Child("emulationVersion"))
	errs = append(errs, wrong...)
	binary, wrong := checkVersion(spec.BinaryVersion, path.Child("binaryVersion"))
	errs = append(errs, wrong...)
	switch {
	case spec.BinaryVersion == "":
		errs = append(errs, field.Required(path.Child("binaryVersion"), ""))
	case spec.EmulationVersion != "" && binary.LT(emulated):
		errs = append(errs,
			field.Invalid(path.Child("binaryVersion"), spec.BinaryVersion,
				"must be greater than or equal to `emulationVersion`"))
	}
	if spec.Strategy == "" {
		return append(errs, field.Required(path.Child("strategy"), ""))
	}
	if spec.Strategy == coordinationv1.OldestEmulationVersion && emulated.EQ(semver.Version{}) {
		errs = append(errs,
			field.Required(path.Child("emulationVersion"),
				"must be specified when `strategy` is 'OldestEmulationVersion'"))
	}
	return append(errs, checkLeaseStrategy(spec.Strategy, path.Child("strategy"))...)
}

func validateCandidateUpdate(c, old *coordinationv1beta1.LeaseCandidate, _ string) field.ErrorList {
	return append(validateCandidate(c),
		apivalidation.ValidateImmutableField(c.Spec.LeaseName, old.Spec.LeaseName,
			field.NewPath("spec", "leaseName"))...)
}

// checkVersion parses a version, which may be empty. An empty or invalid one counts as 0.0.0.
func checkVersion(text string, path *field.Path) (semver.Version, field.ErrorList) {
	if text == "" {
		return semver.Version{}, nil
	}
	v, err := semver.Parse(text)
	if err != nil {
		return semver.Version{}, field.ErrorList{field.Invalid(path, text, "must be a valid semantic version")}
	}
	return v, nil
}

func candidateCells(c *coordinationv1beta1.LeaseCandidate, e catalog.Env) []any {
	return []any{c.Name, c.Spec.LeaseName, c.Spec.BinaryVersion, c.Spec.EmulationVersion,
		rule.Ago(c.CreationTimestamp, e)}
}

// leaseCandidateFunctions are the functions that lease_candidate.txt names.
func leaseCandidateFunctions() rule.Functions {
	return rule.Functions{
		"leaseCandidate": rule.Typed(validateCandidate, validateCandidateUpdate),
	}
}
