package crd

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/object/schema"
	"github.com/bowsprit/bowsprit/internal/object/schema/format"
)

// Validator validates definitions. The zero value skips CEL rules; NewValidator returns one that checks them.
type Validator struct {
	// CheckRules returns the errors in the CEL rules of a schema; path is the schema's.
	CheckRules func(root *schema.Node, path *field.Path, c RuleCheck) field.ErrorList
	// DefaultRules is schema.CheckOptions' field of that name.
	DefaultRules func(node *schema.Node, resource bool, path *field.Path, value any, budget int64) (field.ErrorList,
		int64)

	patterns *format.Patterns // of the current validation, see until; nil stands for a new one for each schema

	done <-chan struct{} // of the current validation's context, see until; nil if it never ends
}

// until returns v for one validation, which skips remaining versions, defaults and rules once ctx has ended.
func (v *Validator) until(ctx context.Context) *Validator {
	out := *v
	out.done, out.patterns = ctx.Done(), new(format.Patterns)
	return &out
}

func (v *Validator) over() bool {
	select {
	case <-v.done:
		return true
	default:
		return false
	}
}

// RuleCheck holds facts about an update for the check of CEL rules.
type RuleCheck struct {
	// Rules and MessageExpressions hold the expressions of the stored definition: they may use features that the newest
	// CEL environment no longer offers.
	Rules, MessageExpressions map[string]bool
	// Unchanged is true if the stored definition has the same schema: then the cost limit of rules is not enforced.
	Unchanged bool
	// Skip reports whether other errors in the schema at a path make validating its rules pointless.
	Skip func(path string) bool
	// Patterns is the budget for the patterns of the definition.
	Patterns *format.Patterns
	// Done is closed to skip the remaining checks; may be nil.
	Done <-chan struct{}
}

// Validate returns all errors of a new definition, including its metadata. def has its defaults and the status from
// PrepareCreate.
func (v *Validator) Validate(def *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	errs := validation.ValidateObjectMeta(&def.ObjectMeta, false, func(name string, prefix bool) []string {
		return append(validation.NameIsDNSSubdomain(name, prefix), checkName(def, name)...)
	}, field.NewPath("metadata"))
	return append(append(errs, v.validateNew(def)...), checkAcceptedNames(def)...)
}

// ValidateUpdate returns all errors of an update. Violations of rules that kube-apiserver added later are accepted as
// long as the stored definition has them.
func (v *Validator) ValidateUpdate(def, old *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	errs := validation.ValidateObjectMetaUpdate(&def.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(append(errs, v.validateChange(def, old)...), checkAcceptedNames(def)...)
}

// checkName checks that a definition's name matches its spec.
func checkName(def *apiextensionsv1.CustomResourceDefinition, name string) []string {
	if name == def.Spec.Names.Plural+"."+def.Spec.Group {
		return nil
	}
	return []string{`must be spec.names.plural+"."+spec.group`}
}

// validateNew is Validate without the metadata and the accepted names: the server derives these from the names in the
// spec, where their errors are reported.
func (v *Validator) validateNew(def *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	return v.validateFresh(def, newAllowances())
}

// validateFresh validates a new definition with leave l.
func (v *Validator) validateFresh(def *apiextensionsv1.CustomResourceDefinition, l allowances) field.ErrorList {
	a := hoist(def)
	errs := v.validateSpec(&a, l)
	return append(errs, validateRest(def, nil, l)...)
}

// validateChange is ValidateUpdate without the metadata and the accepted names.
func (v *Validator) validateChange(def, old *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	return v.validateUpdated(def, old, allowances{})
}

// validateUpdated validates an update with the allowances l, and those derived from the old definition.
func (v *Validator) validateUpdated(
	def, old *apiextensionsv1.CustomResourceDefinition, l allowances,
) field.ErrorList {
	a := hoist(def)
	// The checks for new definitions are the strictest, and nearly every definition passes them.
	errs := v.validateSpec(&a, l)
	if len(errs) > 0 {
		was := hoist(old)
		more := allowancesOf(&a, old, &was)
		more.noSchema, more.unknownTypes, more.nonStructural = more.noSchema || l.noSchema, more.unknownTypes ||
			l.unknownTypes, more.nonStructural || l.nonStructural
		errs = v.validateSpec(&a, more)
	}
	path := field.NewPath("spec")
	if isTrue(old, apiextensionsv1.Established) {
		errs = append(errs, validation.ValidateImmutableField(def.Spec.Scope, old.Spec.Scope, path.Child("scope"))...)
		errs = append(errs,
			validation.ValidateImmutableField(def.Spec.Names.Kind, old.Spec.Names.Kind, path.Child("names", "kind"))...)
	}
	errs = append(errs, validation.ValidateImmutableField(def.Spec.Group, old.Spec.Group, path.Child("group"))...)
	errs = append(errs,
		validation.ValidateImmutableField(def.Spec.Names.Plural, old.Spec.Names.Plural,
			path.Child("names", "plural"))...)
	return append(errs, validateRest(def, old, l)...)
}

// validateRest checks all but metadata, spec and accepted names; old is nil for a new definition.
func validateRest(def, old *apiextensionsv1.CustomResourceDefinition, l allowances) field.ErrorList {
	errs := checkStoredVersions(def)
	if l.beta {
		return errs
	}
	errs = append(errs, checkApproval(def, old)...)
	if def.Spec.PreserveUnknownFields && (old == nil || !old.Spec.PreserveUnknownFields) {
		errs = append(errs,
			field.Invalid(field.NewPath("spec", "preserveUnknownFields"), true,
				"cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"))
	}
	return errs
}

func checkAcceptedNames(def *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	return checkNames(&def.Status.AcceptedNames, field.NewPath("status", "acceptedNames"))
}

func checkStoredVersions(def *apiextensionsv1.CustomResourceDefinition) (errs field.ErrorList) {
	path := field.NewPath("status", "storedVersions")
	stored := def.Status.StoredVersions
	if len(stored) == 0 {
		return field.ErrorList{field.Invalid(path, stored, "must have at least one stored version")}
	}
	last := map[string]int{} // a repeated version is reported at its last index
	for i, name := range stored {
		last[name] = i
	}
	for _, version := range def.Spec.Versions {
		if _, ok := last[version.Name]; version.Storage && !ok {
			errs = append(errs, field.Invalid(path, stored, "must have the storage version "+version.Name))
		}
		delete(last, version.Name)
	}
	for i, name := range stored {
		if at, ok := last[name]; ok && at == i {
			errs = append(errs,
				field.Invalid(path.Index(i), name,
					fmt.Sprintf(
						"missing from spec.versions; %[1]s was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in %[1]s and removes %[1]s from status.storedVersions", name)))
		}
	}
	return errs
}

// checkApproval requires the approval annotation for definitions in Kubernetes' own groups. An update that does not
// change the state of the approval passes.
func checkApproval(def, old *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	if !protectedGroup(def.Spec.Group) {
		return nil
	}
	state, message := approvalOf(def.Annotations)
	if old != nil {
		if was, _ := approvalOf(old.Annotations); was == state {
			return nil
		}
	}
	path := field.NewPath("metadata", "annotations").Key(apiextensionsv1.KubeAPIApprovedAnnotation)
	switch state {
	case approvalInvalid:
		return field.ErrorList{field.Invalid(path, def.Annotations[apiextensionsv1.KubeAPIApprovedAnnotation], message)}
	case approvalMissing:
		return field.ErrorList{field.Required(path, message)}
	}
	return nil
}
