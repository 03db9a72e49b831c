package review

import (
	"context"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// access answers a SubjectAccessReview: may a user do that.
func (r Reviews) access(
	ctx context.Context, _ *verb.Call, obj object.Object, judge func(object.Object) error,
) (object.Object, error) {
	review, err := read[authorizationv1.SubjectAccessReview](obj)
	if err != nil {
		return nil, err
	}
	errs := checkSubject(review.Spec)
	if err := invalid(append(errs, checkEmpty(review.ObjectMeta, "must be empty")...)); err != nil {
		return nil, err
	}
	if err := judge(obj); err != nil {
		return nil, err
	}
	review.Status = r.decide(ctx, subject(review.Spec), review.Spec.ResourceAttributes,
		review.Spec.NonResourceAttributes)
	return write(review)
}

// localAccess answers a LocalSubjectAccessReview, which is about one namespace.
func (r Reviews) localAccess(
	ctx context.Context, c *verb.Call, obj object.Object, judge func(object.Object) error,
) (object.Object, error) {
	review, err := read[authorizationv1.LocalSubjectAccessReview](obj)
	if err != nil {
		return nil, err
	}
	errs := checkSubject(review.Spec)
	meta := review.ObjectMeta
	meta.Namespace = ""
	for _, e := range checkEmpty(meta, "must be empty except for namespace") {
		e.BadValue = review.ObjectMeta
		errs = append(errs, e)
	}
	if a := review.Spec.ResourceAttributes; a != nil && a.Namespace != review.Namespace {
		errs = append(errs,
			field.Invalid(field.NewPath("spec.resourceAttributes.namespace"), a.Namespace,
				"must match metadata.namespace"))
	}
	if a := review.Spec.NonResourceAttributes; a != nil {
		errs = append(errs,
			field.Invalid(field.NewPath("spec.nonResourceAttributes"), shown(a), "disallowed on this kind of request"))
	}
	if err := invalid(errs); err != nil {
		return nil, err
	}
	if err := judge(obj); err != nil {
		return nil, err
	}
	review.Status = r.decide(ctx, subject(review.Spec), review.Spec.ResourceAttributes, nil)
	return write(review)
}

// selfAccess answers a SelfSubjectAccessReview: may I do that.
func (r Reviews) selfAccess(
	ctx context.Context, c *verb.Call, obj object.Object, judge func(object.Object) error,
) (object.Object, error) {
	review, err := read[authorizationv1.SelfSubjectAccessReview](obj)
	if err != nil {
		return nil, err
	}
	errs := checkAttributes(review.Spec.ResourceAttributes, review.Spec.NonResourceAttributes)
	errs = append(errs, checkSelectors(review.Spec.ResourceAttributes)...)
	if err := invalid(append(errs, checkEmpty(review.ObjectMeta, "must be empty")...)); err != nil {
		return nil, err
	}
	if err := judge(obj); err != nil {
		return nil, err
	}
	review.Status = r.decide(ctx, c.User, review.Spec.ResourceAttributes, review.Spec.NonResourceAttributes)
	return write(review)
}

// rules answers a SelfSubjectRulesReview: what may I do.
func (r Reviews) rules(
	ctx context.Context, c *verb.Call, obj object.Object, judge func(object.Object) error,
) (object.Object, error) {
	review, err := read[authorizationv1.SelfSubjectRulesReview](obj)
	if err != nil {
		return nil, err
	}
	if review.Spec.Namespace == "" {
		return nil, apierrors.NewBadRequest("no namespace on request")
	}
	if err := judge(obj); err != nil {
		return nil, err
	}
	may, err := r.Ruler.Rules(ctx, c.User, review.Spec.Namespace)
	out := &authorizationv1.SelfSubjectRulesReview{Status: authorizationv1.SubjectRulesReviewStatus{
		ResourceRules:    append([]authorizationv1.ResourceRule{}, may.Resources...),
		NonResourceRules: append([]authorizationv1.NonResourceRule{}, may.NonResources...),
		Incomplete:       may.Incomplete,
	}}
	if err != nil {
		out.Status.EvaluationError = err.Error()
	}
	return write(out)
}

func (r Reviews) decide(
	ctx context.Context, who user.Info, resource *authorizationv1.ResourceAttributes,
	other *authorizationv1.NonResourceAttributes,
) authorizationv1.SubjectAccessReviewStatus {
	what := &request.Info{}
	if resource != nil {
		what = &request.Info{
			IsResource: true, Verb: resource.Verb, Namespace: resource.Namespace, Group: resource.Group,
			Version:  resource.Version,
			Resource: resource.Resource, Subresource: resource.Subresource, Name: resource.Name,
		}
		if what.Version == "" {
			what.Version = "*"
		}
		what.FieldSelector, what.LabelSelector = fieldSelector(resource.FieldSelector),
			labelSelector(resource.LabelSelector)
	} else {
		what.Verb, what.Path = other.Verb, other.Path
	}
	decision, err := r.Authorizer.Authorize(ctx, who, what)
	status := authorizationv1.SubjectAccessReviewStatus{Allowed: decision.Allowed, Reason: decision.Reason}
	if err != nil {
		status.EvaluationError = err.Error()
	}
	return status
}

// fieldSelector returns the text of a selector by which access is limited. Requirements that mean nothing to the
// server are left out, as in Kubernetes: what is asked for then is more.
func fieldSelector(a *authorizationv1.FieldSelectorAttributes) string {
	if a == nil {
		return ""
	}
	if len(a.Requirements) == 0 {
		return a.RawSelector
	}
	var all []fields.Selector
	for _, r := range a.Requirements {
		if len(r.Values) != 1 {
			continue
		}
		switch r.Operator {
		case metav1.FieldSelectorOpIn:
			all = append(all, fields.OneTermEqualSelector(r.Key, r.Values[0]))
		case metav1.FieldSelectorOpNotIn:
			all = append(all, fields.OneTermNotEqualSelector(r.Key, r.Values[0]))
		}
	}
	return fields.AndSelectors(all...).String()
}

// selectionOperators are those of label selectors in reviews.
var selectionOperators = map[metav1.LabelSelectorOperator]selection.Operator{
	metav1.LabelSelectorOpIn: selection.In, metav1.LabelSelectorOpNotIn: selection.NotIn,
	metav1.LabelSelectorOpExists: selection.Exists, metav1.LabelSelectorOpDoesNotExist: selection.DoesNotExist,
}

// labelSelector is fieldSelector for labels.
func labelSelector(a *authorizationv1.LabelSelectorAttributes) string {
	if a == nil {
		return ""
	}
	if len(a.Requirements) == 0 {
		return a.RawSelector
	}
	out := labels.NewSelector()
	for _, r := range a.Requirements {
		op, known := selectionOperators[r.Operator]
		if one, err := labels.NewRequirement(r.Key, op, r.Values); known && err == nil {
			out = out.Add(*one)
		}
	}
	return out.String()
}

func subject(spec authorizationv1.SubjectAccessReviewSpec) user.Info {
	who := &user.DefaultInfo{Name: spec.User, UID: spec.UID, Groups: spec.Groups, Extra: map[string][]string{}}
	for key, values := range spec.Extra {
		who.Extra[key] = values
	}
	return who
}

// invalid is the 422 of a review; the kind that it names is empty, as in Kubernetes.
func invalid(errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: authorizationv1.GroupName}, "", errs)
}

func checkSubject(spec authorizationv1.SubjectAccessReviewSpec) field.ErrorList {
	errs := checkAttributes(spec.ResourceAttributes, spec.NonResourceAttributes)
	if spec.User == "" && len(spec.Groups) == 0 {
		errs = append(errs,
			field.Invalid(field.NewPath("spec", "user"), spec.User, "at least one of user or group must be specified"))
	}
	return append(errs, checkSelectors(spec.ResourceAttributes)...)
}

func checkAttributes(
	resource *authorizationv1.ResourceAttributes, other *authorizationv1.NonResourceAttributes,
) (errs field.ErrorList) {
	path := field.NewPath("spec")
	if resource != nil && other != nil {
		errs = append(errs,
			field.Invalid(path.Child("nonResourceAttributes"), shown(other),
				"cannot be specified in combination with resourceAttributes"))
	}
	if resource == nil && other == nil {
		errs = append(errs,
			field.Invalid(path.Child("resourceAttributes"), shown(other),
				"exactly one of nonResourceAttributes or resourceAttributes must be specified"))
	}
	return errs
}

// nonResource is how Kubernetes' messages print non-resource attributes: by the names of the Go fields.
type nonResource struct{ Path, Verb string }

func shown(a *authorizationv1.NonResourceAttributes) *nonResource {
	if a == nil {
		return nil
	}
	return &nonResource{a.Path, a.Verb}
}

func checkEmpty(meta metav1.ObjectMeta, text string) field.ErrorList {
	bare := meta
	bare.ManagedFields = nil
	if equality.Semantic.DeepEqual(metav1.ObjectMeta{}, bare) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata"), meta, text)}
}

func checkSelectors(a *authorizationv1.ResourceAttributes) (errs field.ErrorList) {
	if a == nil {
		return nil
	}
	path := field.NewPath("spec.resourceAttributes")
	form := func(path *field.Path, raw string, requirements int) {
		if raw != "" && requirements > 0 {
			errs = append(errs,
				field.Invalid(path.Child("rawSelector"), raw, "may not specified at the same time as requirements"))
		}
		if raw == "" && requirements == 0 {
			errs = append(errs,
				field.Required(path.Child("requirements"),
					fmt.Sprintf("when %s is specified, requirements or rawSelector is required", path)))
		}
	}
	// Operators of clients that are newer than the server are let through.
	if s := a.FieldSelector; s != nil {
		at := path.Child("fieldSelector")
		form(at, s.RawSelector, len(s.Requirements))
		for i, requirement := range s.Requirements {
			errs = slices.Concat(errs, metav1validation.ValidateFieldSelectorRequirement(requirement,
				metav1validation.FieldSelectorValidationOptions{AllowUnknownOperatorInRequirement: true},
				at.Child("requirements").Index(i)))
		}
	}
	if s := a.LabelSelector; s != nil {
		at := path.Child("labelSelector")
		form(at, s.RawSelector, len(s.Requirements))
		for i, requirement := range s.Requirements {
			errs = slices.Concat(errs, metav1validation.ValidateLabelSelectorRequirement(requirement,
				metav1validation.LabelSelectorValidationOptions{AllowUnknownOperatorInRequirement: true},
				at.Child("requirements").Index(i)))
		}
	}
	return errs
}
