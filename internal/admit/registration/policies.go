package registration

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/admit/expr"
)

// maxAnnotations is how many audit annotations a policy may have, maxAnnotationExpression how long each expression.
const (
	maxAnnotations          = 20
	maxAnnotationExpression = 5 * 1024
)

// CheckValidatingPolicy returns the errors of a policy outside of its metadata. old is nil for a new policy; its
// existing expressions may stay even if they would be refused now. Once ended is true, the rest is not compiled.
func CheckValidatingPolicy(
	p, old *admissionregistrationv1.ValidatingAdmissionPolicy, ended func() bool,
) field.ErrorList {
	spec, path := &p.Spec, field.NewPath("spec")
	params := spec.ParamKind != nil
	var was admissionregistrationv1.ValidatingAdmissionPolicySpec
	if old != nil {
		was = old.Spec
	}
	errs := checkPolicyHead(spec.FailurePolicy, spec.ParamKind, spec.MatchConstraints, path)
	if old == nil || !equality.Semantic.DeepEqual(spec.ParamKind, was.ParamKind) ||
		!equality.Semantic.DeepEqual(spec.MatchConditions, was.MatchConditions) {
		errs = append(errs,
			checkConditions(&expr.Compiler{Ended: ended}, spec.MatchConditions, params,
				conditionTexts(was.MatchConditions), path.Child("matchConditions"))...)
	}
	c := new(expr.Compiler)
	if len(spec.Variables) > 0 {
		c = expr.Composed()
	}
	c.Ended = ended
	before := stored{map[string]bool{}, map[string]bool{}}
	for _, v := range was.Validations {
		before.expressions[v.Expression] = true
		before.messages[v.MessageExpression] = true
	}
	errs = append(errs, checkVariables(c, spec.Variables, params, before.expressions, path.Child("variables"))...)
	if len(spec.Validations) == 0 && len(spec.AuditAnnotations) == 0 {
		const why = "validations or auditAnnotations must contain at least one item"
		return append(errs, field.Required(path.Child("validations"), why),
			field.Required(path.Child("auditAnnotations"), why))
	}
	for i := range spec.Validations {
		errs = append(errs,
			checkValidation(c, &spec.Validations[i], params, before, path.Child("validations").Index(i))...)
	}
	return append(errs, checkAnnotations(c, p.Name, spec, was.AuditAnnotations, path.Child("auditAnnotations"))...)
}

// checkPolicyHead checks the parts common to both kinds of policies.
func checkPolicyHead(
	failure *admissionregistrationv1.FailurePolicyType, params *admissionregistrationv1.ParamKind,
	match *admissionregistrationv1.MatchResources, path *field.Path,
) field.ErrorList {
	errs := checkRequiredEnum(path.Child("failurePolicy"), failure, failurePolicies...)
	if params != nil {
		errs = append(errs, checkParamKind(params, path.Child("paramKind"))...)
	}
	if match == nil {
		return append(errs, field.Required(path.Child("matchConstraints"), ""))
	}
	errs = append(errs, checkMatchResources(match, path.Child("matchConstraints"))...)
	if len(match.ResourceRules) == 0 {
		errs = append(errs, field.Required(path.Child("matchConstraints", "resourceRules"), ""))
	}
	return errs
}

func checkParamKind(k *admissionregistrationv1.ParamKind, path *field.Path) (errs field.ErrorList) {
	at := path.Child("apiVersion")
	group, version, hasGroup := strings.Cut(k.APIVersion, "/")
	if !hasGroup {
		group, version = "", k.APIVersion
	}
	switch {
	case k.APIVersion == "":
		errs = append(errs, field.Required(at, ""))
	case strings.Count(k.APIVersion, "/") > 1:
		errs = append(errs, field.Invalid(at, k.APIVersion, "unexpected GroupVersion string: "+k.APIVersion))
	default:
		if problems := utilvalidation.IsDNS1123Subdomain(group); group != "" && len(problems) > 0 {
			errs = append(errs, field.Invalid(at, group, strings.Join(problems, ",")))
		}
		if version == "" {
			errs = append(errs, field.Invalid(at, k.APIVersion, "version must be specified"))
		} else if problems := utilvalidation.IsDNS1035Label(version); len(problems) > 0 {
			errs = append(errs, field.Invalid(at, version, strings.Join(problems, ",")))
		}
	}
	if k.Kind == "" {
		return append(errs, field.Required(path.Child("kind"), ""))
	}
	if problems := utilvalidation.IsDNS1035Label(strings.ToLower(k.Kind)); len(problems) > 0 {
		errs = append(errs,
			field.Invalid(path.Child("kind"), k.Kind, "may have mixed case, but should otherwise match: "+
				strings.Join(problems, ",")))
	}
	return errs
}

func conditionTexts(list []admissionregistrationv1.MatchCondition) map[string]bool {
	texts := map[string]bool{}
	for _, m := range list {
		texts[m.Expression] = true
	}
	return texts
}

// stored are the texts of expressions that the policy has had already, of validations and of their messages.
type stored struct{ expressions, messages map[string]bool }

func checkValidation(
	c *expr.Compiler, v *admissionregistrationv1.Validation, params bool, before stored, path *field.Path,
) (errs field.ErrorList) {
	if strings.TrimSpace(v.Expression) == "" {
		errs = append(errs, field.Required(path.Child("expression"), "expression is not specified"))
	} else {
		e := c.Compile(v.Expression, expr.Scope{Params: params, Authorizer: true},
			mode(before.expressions[v.Expression]), expr.Bool)
		errs = append(errs, e.Problems(path.Child("expression"), v.Expression)...)
	}
	if at := path.Child("messageExpression"); v.MessageExpression != "" {
		if strings.TrimSpace(v.MessageExpression) == "" {
			errs = append(errs, field.Invalid(at, v.MessageExpression, "must be non-empty if specified"))
		} else {
			e := c.Compile(v.MessageExpression, expr.Scope{Params: params}, mode(before.messages[v.MessageExpression]),
				expr.String)
			errs = append(errs, e.Problems(at, v.MessageExpression)...)
		}
	}
	switch text := strings.TrimSpace(v.Message); {
	case v.Message != "" && text == "":
		errs = append(errs, field.Invalid(path.Child("message"), v.Message, "must be non-empty if specified"))
	case strings.ContainsAny(text, "\n\r"):
		errs = append(errs, field.Invalid(path.Child("message"), v.Message, "must not contain line breaks"))
	}
	return append(errs, checkEnum(path.Child("reason"), v.Reason,
		string(metav1.StatusReasonForbidden), string(metav1.StatusReasonInvalid),
		string(metav1.StatusReasonRequestEntityTooLarge))...)
}

func checkAnnotations(
	c *expr.Compiler, name string, spec *admissionregistrationv1.ValidatingAdmissionPolicySpec,
	old []admissionregistrationv1.AuditAnnotation, path *field.Path,
) (errs field.ErrorList) {
	before := map[string]bool{}
	for _, a := range old {
		before[a.ValueExpression] = true
	}
	if len(spec.AuditAnnotations) > maxAnnotations {
		errs = append(errs,
			field.Invalid(path, spec.AuditAnnotations,
				fmt.Sprintf("must not have more than %d auditAnnotations", maxAnnotations)))
	}
	seen := map[string]bool{}
	for i, a := range spec.AuditAnnotations {
		at := path.Index(i)
		if name == "" {
			errs = append(errs, field.Invalid(at.Child("key"), a.Key, "requires metadata.name be non-empty"))
		} else {
			errs = append(errs, checkQualifiedName(name+"/"+a.Key, at.Child("key"))...)
		}
		switch text := strings.TrimSpace(a.ValueExpression); {
		case text == "":
			errs = append(errs, field.Required(at.Child("valueExpression"), "valueExpression is not specified"))
		case len(text) > maxAnnotationExpression:
			errs = append(errs,
				field.Required(at.Child("valueExpression"),
					fmt.Sprintf("must not exceed %d bytes in length", maxAnnotationExpression)))
		default:
			e := c.Compile(text, expr.Scope{Params: spec.ParamKind != nil, Authorizer: true},
				mode(before[a.ValueExpression]), expr.String, expr.Null)
			errs = append(errs, e.Problems(at.Child("valueExpression"), a.ValueExpression)...)
		}
		if seen[a.Key] {
			errs = append(errs, field.Duplicate(at.Child("key"), a.Key))
		}
		seen[a.Key] = true
	}
	return errs
}

// CheckMutatingPolicy is CheckValidatingPolicy for the other kind.
func CheckMutatingPolicy(
	p, old *admissionregistrationv1.MutatingAdmissionPolicy, ended func() bool,
) field.ErrorList {
	spec, path := &p.Spec, field.NewPath("spec")
	params := spec.ParamKind != nil
	var was admissionregistrationv1.MutatingAdmissionPolicySpec
	if old != nil {
		was = old.Spec
	}
	errs := checkPolicyHead(spec.FailurePolicy, spec.ParamKind, spec.MatchConstraints, path)
	errs = append(errs,
		checkMutatingOperations(spec.MatchConstraints,
			path.Child("matchConstraints", "resourceRules", "operations"))...)
	if old == nil || !equality.Semantic.DeepEqual(spec.ParamKind, was.ParamKind) ||
		!equality.Semantic.DeepEqual(spec.MatchConditions, was.MatchConditions) {
		errs = append(errs,
			checkConditions(&expr.Compiler{Ended: ended}, spec.MatchConditions, params,
				conditionTexts(was.MatchConditions), path.Child("matchConditions"))...)
	}
	c := expr.Composed()
	c.Ended = ended
	errs = append(errs, checkVariables(c, spec.Variables, params, nil, path.Child("variables"))...)
	before := map[string]bool{}
	for _, m := range was.Mutations {
		if m.ApplyConfiguration != nil {
			before[m.ApplyConfiguration.Expression] = true
		}
	}
	if len(spec.Mutations) == 0 {
		errs = append(errs, field.Required(path.Child("mutations"), "mutations must contain at least one item"))
	}
	for i := range spec.Mutations {
		errs = append(errs, checkMutation(c, &spec.Mutations[i], params, before, path.Child("mutations").Index(i))...)
	}
	if spec.ReinvocationPolicy == "" {
		return append(errs, field.Required(path.Child("reinvocationPolicy"), ""))
	}
	return append(errs,
		checkEnum(path.Child("reinvocationPolicy"), &spec.ReinvocationPolicy, reinvocationPolicies...)...)
}

// patchSource is one of the two forms of a mutation's patch.
type patchSource struct {
	patchType  admissionregistrationv1.PatchType
	name       string  // of its field
	expression *string // nil if the field is not set
	result     *expr.Type
}

func checkMutation(
	c *expr.Compiler, m *admissionregistrationv1.Mutation, params bool, before map[string]bool, path *field.Path,
) (errs field.ErrorList) {
	compile := func(source string, at *field.Path, want *expr.Type) {
		text := strings.TrimSpace(source)
		if text == "" {
			errs = append(errs, field.Required(at, ""))
			return
		}
		e := c.Compile(text, expr.Scope{Params: params, Authorizer: true, Patch: true}, mode(before[source]), want)
		errs = append(errs, e.Problems(at, text)...)
	}
	apply := patchSource{
		patchType: admissionregistrationv1.PatchTypeApplyConfiguration, name: "applyConfiguration",
		result: expr.Applied,
	}
	if m.ApplyConfiguration != nil {
		apply.expression = &m.ApplyConfiguration.Expression
	}
	patch := patchSource{
		patchType: admissionregistrationv1.PatchTypeJSONPatch, name: "jsonPatch", result: expr.JSONPatches,
	}
	if m.JSONPatch != nil {
		patch.expression = &m.JSONPatch.Expression
	}
	chosen, other := apply, patch
	switch m.PatchType {
	case "":
		return append(errs, field.Required(path.Child("patchType"), ""))
	case apply.patchType:
	case patch.patchType:
		chosen, other = patch, apply
	default:
		return append(errs,
			notSupported(path.Child("patchType"), m.PatchType, string(apply.patchType), string(patch.patchType)))
	}
	if chosen.expression == nil {
		errs = append(errs,
			field.Required(path.Child(chosen.name), "must be specified when patchType is "+string(m.PatchType)))
	} else {
		compile(*chosen.expression, path.Child(chosen.name, "expression"), chosen.result)
	}
	if other.expression != nil {
		errs = append(errs, field.Invalid(path.Child(other.name), "{"+other.name+"}",
			"must not be specified when patchType is "+string(m.PatchType)))
	}
	return errs
}
