package crd

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Claim is one definition's claim on names of its group.
type Claim struct {
	Definition string // metadata.name
	Names      apiextensionsv1.CustomResourceDefinitionNames
}

// Status returns the status of a definition given the other definitions of its group: accepted names, NamesAccepted,
// Established, KubernetesAPIApprovalPolicyConformant and NonStructuralSchema. changed is false if the definition has
// that status already.
//
// A name claimed by another definition is refused; names accepted before stay accepted and served. others may contain
// the definition itself. kube-apiserver reaches the same status through four controllers and several writes; new
// conditions have the usual order of these writes.
//
// def may come from DecodeWithoutSchemas, except that NonStructuralSchema needs the schemas of definitions with
// spec.preserveUnknownFields; without them def's condition stays.
func Status(
	def *apiextensionsv1.CustomResourceDefinition, others []Claim, now time.Time,
) (status *apiextensionsv1.CustomResourceDefinitionStatus, changed bool) {
	s := def.Status.DeepCopy()
	c := conditions{list: &s.Conditions, now: now}
	if !equality.Semantic.DeepEqual(def.Spec.Names, def.Status.AcceptedNames) {
		accepted, naming := acceptNames(def, others)
		s.AcceptedNames = accepted
		c.set(naming)
	}
	c.establish(def)
	if approval := approvalCondition(def); approval != nil {
		c.set(*approval)
	}
	c.nonStructural(def)
	s.StoredVersions = storedVersions(s.StoredVersions, def.Spec.Versions)
	return s, !equality.Semantic.DeepEqual(s, &def.Status)
}

// acceptNames returns the accepted names of the definition, and the corresponding condition.
func acceptNames(
	def *apiextensionsv1.CustomResourceDefinition, others []Claim,
) (apiextensionsv1.CustomResourceDefinitionNames, apiextensionsv1.CustomResourceDefinitionCondition) {
	resources, kinds := sets.Set[string]{}, sets.Set[string]{}
	for _, o := range others {
		resources.Insert(o.Names.Plural, o.Names.Singular)
		resources.Insert(o.Names.ShortNames...)
		kinds.Insert(o.Names.Kind, o.Names.ListKind)
	}
	want, have := def.Spec.Names, def.Status.AcceptedNames
	// The definition's own names count as used, too: a plural cannot become the singular of the same definition.
	resources.Insert(have.Plural, have.Singular)
	resources.Insert(have.ShortNames...)
	kinds.Insert(have.Kind, have.ListKind)

	condition := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue,
		Reason: "NoConflicts", Message: "no conflicts found",
	}
	refuse := func(reason string, err error) {
		condition.Status, condition.Reason, condition.Message = apiextensionsv1.ConditionFalse, reason, err.Error()
	}
	accepted := have
	one := func(accepted *string, want, have string, used sets.Set[string], reason string) {
		if want != have && used.Has(want) {
			refuse(reason, inUse(want))
			return
		}
		*accepted = want
	}
	one(&accepted.Plural, want.Plural, have.Plural, resources, "PluralConflict")
	one(&accepted.Singular, want.Singular, have.Singular, resources, "SingularConflict")
	if !reflect.DeepEqual(want.ShortNames, have.ShortNames) {
		var errs []error
		had := sets.New(have.ShortNames...)
		for _, name := range want.ShortNames {
			if !had.Has(name) && resources.Has(name) {
				errs = append(errs, inUse(name))
			}
		}
		if err := utilerrors.NewAggregate(errs); err != nil {
			refuse("ShortNamesConflict", err)
		} else {
			accepted.ShortNames = want.ShortNames
		}
	}
	one(&accepted.Kind, want.Kind, have.Kind, kinds, "KindConflict")
	one(&accepted.ListKind, want.ListKind, have.ListKind, kinds, "ListKindConflict")
	accepted.Categories = want.Categories
	return *accepted.DeepCopy(), condition
}

func inUse(name string) error { return fmt.Errorf("%q is already in use", name) }

// storedVersions adds the storage version to the versions that objects were ever stored in.
func storedVersions(stored []string, versions []apiextensionsv1.CustomResourceDefinitionVersion) []string {
	for _, v := range versions {
		if v.Storage {
			if !slices.Contains(stored, v.Name) {
				stored = append(slices.Clone(stored), v.Name)
			}
			break
		}
	}
	return stored
}
