package kinds

import (
	"github.com/blang/semver/v4"
	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

func validateCandidate(c *coordinationv1beta1.LeaseCandidate) errorList {
	var errs errorList
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

func validateCandidateUpdate(c, old *coordinationv1beta1.LeaseCandidate, _ string) errorList {
	return append(validateCandidate(c),
		apivalidation.ValidateImmutableField(c.Spec.LeaseName, old.Spec.LeaseName,
			field.NewPath("spec", "leaseName"))...)
}

// checkVersion reads a version, which may be empty. One that is empty or wrong counts as 0.0.0.
func checkVersion(text string, path *field.Path) (semver.Version, errorList) {
	if text == "" {
		return semver.Version{}, nil
	}
	v, err := semver.Parse(text)
	if err != nil {
		return semver.Version{}, errorList{field.Invalid(path, text, "must be a valid semantic version")}
	}
	return v, nil
}

func candidateCells(c *coordinationv1beta1.LeaseCandidate, e catalog.Env) []any {
	return []any{c.Name, c.Spec.LeaseName, c.Spec.BinaryVersion, c.Spec.EmulationVersion, ago(c.CreationTimestamp, e)}
}
