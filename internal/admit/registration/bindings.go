package registration

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/util/jsonpath"
)

// CheckValidatingBinding returns the errors of a binding outside of its metadata.
func CheckValidatingBinding(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) field.ErrorList {
	path := field.NewPath("spec")
	errs := checkBinding(b.Spec.PolicyName, b.Spec.ParamRef, b.Spec.MatchResources, path)
	return append(errs, checkActions(b.Spec.ValidationActions, path.Child("validationActions"))...)
}

// CheckMutatingBinding is CheckValidatingBinding for the other kind.
func CheckMutatingBinding(b *admissionregistrationv1.MutatingAdmissionPolicyBinding) field.ErrorList {
	path := field.NewPath("spec")
	errs := checkBinding(b.Spec.PolicyName, b.Spec.ParamRef, b.Spec.MatchResources, path)
	return append(errs,
		checkMutatingOperations(b.Spec.MatchResources, path.Child("matchResources", "resourceRules", "operations"))...)
}

func checkBinding(
	policy string, params *admissionregistrationv1.ParamRef, match *admissionregistrationv1.MatchResources,
	path *field.Path,
) (errs field.ErrorList) {
	if policy == "" {
		errs = append(errs, field.Required(path.Child("policyName"), ""))
	} else {
		for _, problem := range validation.NameIsDNSSubdomain(policy, false) {
			errs = append(errs, field.Invalid(path.Child("policyName"), policy, problem))
		}
	}
	errs = append(errs, checkParamRef(params, path.Child("paramRef"))...)
	return append(errs, checkMatchResources(match, path.Child("matchResources"))...)
}

func checkParamRef(ref *admissionregistrationv1.ParamRef, path *field.Path) (errs field.ErrorList) {
	if ref == nil {
		return nil
	}
	const both = `name and selector are mutually exclusive`
	if ref.Name != "" {
		for _, problem := range content.IsPathSegmentName(ref.Name) {
			errs = append(errs, field.Invalid(path.Child("name"), ref.Name, problem))
		}
		if ref.Selector != nil {
			errs = append(errs, field.Forbidden(path.Child("name"), both))
		}
	}
	if ref.Selector != nil {
		errs = append(errs,
			metav1validation.ValidateLabelSelector(ref.Selector, metav1validation.LabelSelectorValidationOptions{},
				path.Child("selector"))...)
		if ref.Name != "" {
			errs = append(errs, field.Forbidden(path.Child("selector"), both))
		}
	}
	if ref.Name == "" && ref.Selector == nil {
		errs = append(errs, field.Required(path, `one of name or selector must be specified`))
	}
	at, action := path.Child("parameterNotFoundAction"), ref.ParameterNotFoundAction
	switch {
	case action == nil || *action == "":
		errs = append(errs, field.Required(at, ""))
	case *action != admissionregistrationv1.DenyAction && *action != admissionregistrationv1.AllowAction:
		errs = append(errs,
			field.NotSupported(at, action,
				[]string{string(admissionregistrationv1.DenyAction), string(admissionregistrationv1.AllowAction)}))
	}
	return errs
}

func checkActions(actions []admissionregistrationv1.ValidationAction, path *field.Path) (errs field.ErrorList) {
	seen := map[admissionregistrationv1.ValidationAction]bool{}
	for i, action := range actions {
		errs = append(errs, checkEnum(path.Index(i), &action, "Audit", "Deny", "Warn")...)
		if seen[action] {
			errs = append(errs, field.Duplicate(path.Index(i), action))
		}
		seen[action] = true
	}
	if slices.Contains(actions, admissionregistrationv1.Deny) &&
		slices.Contains(actions, admissionregistrationv1.Warn) {
		errs = append(errs,
			field.Invalid(path, actions,
				"must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)"))
	}
	if len(actions) == 0 {
		errs = append(errs, field.Required(path, "at least one validation action is required"))
	}
	return errs
}

// CheckValidatingPolicyStatus returns the errors in the status of a policy.
func CheckValidatingPolicyStatus(p *admissionregistrationv1.ValidatingAdmissionPolicy) (errs field.ErrorList) {
	path := field.NewPath("status")
	if t := p.Status.TypeChecking; t != nil {
		for i, w := range t.ExpressionWarnings {
			at := path.Child("typeChecking", "expressionWarnings").Index(i)
			if w.Warning == "" {
				errs = append(errs, field.Required(at.Child("warning"), ""))
			}
			ref := strings.TrimSpace(w.FieldRef)
			if ref == "" {
				errs = append(errs, field.Required(at.Child("fieldRef"), ""))
			} else if err := jsonpath.New("spec").Parse("{" + ref + "}"); err != nil {
				errs = append(errs, field.Invalid(at.Child("fieldRef"), ref, fmt.Sprintf("invalid JSONPath: %v", err)))
			}
		}
	}
	return append(errs, metav1validation.ValidateConditions(p.Status.Conditions, path.Child("conditions"))...)
}
