package review

import (
	"context"
	"fmt"
	"slices"
	"strings"

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

	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/request/invalid"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// access answers a SubjectAccessReview: whether a user may perform a request.
func (r Reviews) access(
	ctx context.Context, c *verb.Call, obj object.Object, validateAdmission func(object.Object) error,
) (object.Object, error) {
	review, err := read[authorizationv1.SubjectAccessReview](obj)
	if err != nil {
		return nil, err
	}
	errs := checkSubject(review.Spec)
	if err := wrong(append(errs, checkEmpty(review.ObjectMeta, "must be empty")...)); err != nil {
		return nil, err
	}
	if err := validateAdmission(obj); err != nil {
		return nil, err
	}
	q := query{c.User, subject(review.Spec), review.Spec.ResourceAttributes, review.Spec.NonResourceAttributes}
	review.Status = r.decide(ctx, q)
	return r.answer(ctx, q, review, review.Status)
}

// localAccess answers a LocalSubjectAccessReview, which is about one namespace.
func (r Reviews) localAccess(
	ctx context.Context, c *verb.Call, obj object.Object, validateAdmission func(object.Object) error,
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
	if err := wrong(errs); err != nil {
		return nil, err
	}
	if err := validateAdmission(obj); err != nil {
		return nil, err
	}
	q := query{c.User, subject(review.Spec), review.Spec.ResourceAttributes, nil}
	review.Status = r.decide(ctx, q)
	return r.answer(ctx, q, review, review.Status)
}

// selfAccess answers a SelfSubjectAccessReview: whether the user of the request may perform another one.
func (r Reviews) selfAccess(
	ctx context.Context, c *verb.Call, obj object.Object, validateAdmission func(object.Object) error,
) (object.Object, error) {
	review, err := read[authorizationv1.SelfSubjectAccessReview](obj)
	if err != nil {
		return nil, err
	}
	errs := checkAttributes(review.Spec.ResourceAttributes, review.Spec.NonResourceAttributes)
	errs = append(errs, checkSelectors(review.Spec.ResourceAttributes)...)
	if err := wrong(append(errs, checkEmpty(review.ObjectMeta, "must be empty")...)); err != nil {
		return nil, err
	}
	if err := validateAdmission(obj); err != nil {
		return nil, err
	}
	q := query{c.User, c.User, review.Spec.ResourceAttributes, review.Spec.NonResourceAttributes}
	review.Status = r.decide(ctx, q)
	return r.answer(ctx, q, review, review.Status)
}

// rules answers a SelfSubjectRulesReview with the permissions of the user.
func (r Reviews) rules(
	ctx context.Context, c *verb.Call, obj object.Object, validateAdmission func(object.Object) error,
) (object.Object, error) {
	review, err := read[authorizationv1.SelfSubjectRulesReview](obj)
	if err != nil {
		return nil, err
	}
	if review.Spec.Namespace == "" {
		return nil, apierrors.NewBadRequest("no namespace on request")
	}
	if err := validateAdmission(obj); err != nil {
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

// query is the input of an access review: user is the user to check, caller is the user of the review.
type query struct {
	caller, user user.Info
	resource     *authorizationv1.ResourceAttributes
	other        *authorizationv1.NonResourceAttributes
}

// request returns the reviewed request, and the problems in it.
func (q *query) request() (info *request.Info, problems []string) {
	resource := q.resource
	if resource == nil {
		return &request.Info{Verb: q.other.Verb, Path: q.other.Path}, nil
	}
	info = &request.Info{
		IsResource: true, Verb: resource.Verb, Namespace: resource.Namespace, Group: resource.Group,
		Version:  resource.Version,
		Resource: resource.Resource, Subresource: resource.Subresource, Name: resource.Name,
	}
	if info.Version == "" {
		info.Version = "*"
	}
	var lost string
	if info.FieldSelector, lost = fieldSelector(resource.FieldSelector); lost != "" {
		problems = append(problems, "spec.resourceAttributes.fieldSelector "+lost)
	}
	if info.LabelSelector, lost = labelSelector(resource.LabelSelector); lost != "" {
		problems = append(problems, "spec.resourceAttributes.labelSelector "+lost)
	}
	return info, problems
}

func (r Reviews) decide(ctx context.Context, q query) authorizationv1.SubjectAccessReviewStatus {
	info, problems := q.request()
	decision, err := r.Authorizer.Authorize(ctx, q.user, info)
	status := authorizationv1.SubjectAccessReviewStatus{
		Allowed: decision.Verdict == authz.Allow, Denied: decision.Verdict == authz.Deny, Reason: decision.Reason,
	}
	if err != nil {
		problems = slices.Insert(problems, 0, err.Error())
	}
	status.EvaluationError = strings.Join(problems, "; ")
	return status
}

// answer returns a review for the client. If the request asks for an explanation and access is denied, the status also
// has the field explanation, which clients of Kubernetes ignore.
func (r Reviews) answer(
	ctx context.Context, q query, review any, status authorizationv1.SubjectAccessReviewStatus,
) (object.Object, error) {
	obj, err := write(review)
	if err != nil || status.Allowed || r.Explain == nil || !request.Explains(ctx) {
		return obj, err
	}
	explanation := object.Object{"summary": "an authorizer denies this: no role can allow it"}
	if !status.Denied {
		info, _ := q.request()
		if explanation, err = write(r.Explain(ctx, q.caller, q.user, info)); err != nil {
			return nil, err
		}
	}
	object.Child(obj, "status")["explanation"] = explanation
	return obj, nil
}

// lost describes how much of a selector the server does not understand, "" for nothing.
func lost(given, understood int) string {
	switch understood {
	case given:
		return ""
	case 0:
		return "ignored due to parse error"
	}
	return "partially ignored due to parse error"
}

// fieldSelector returns the text of a field selector that restricts the access. As in Kubernetes it omits requirements
// that the server does not understand, so the reviewed access is larger. problem describes the omission.
func fieldSelector(a *authorizationv1.FieldSelectorAttributes) (text, problem string) {
	if a == nil {
		return "", ""
	}
	if len(a.Requirements) == 0 {
		if _, err := fields.ParseSelector(a.RawSelector); err != nil {
			return "", lost(1, 0)
		}
		return a.RawSelector, ""
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
	return fields.AndSelectors(all...).String(), lost(len(a.Requirements), len(all))
}

// selectionOperators are the operators of label selectors in reviews.
var selectionOperators = map[metav1.LabelSelectorOperator]selection.Operator{
	metav1.LabelSelectorOpIn: selection.In, metav1.LabelSelectorOpNotIn: selection.NotIn,
	metav1.LabelSelectorOpExists: selection.Exists, metav1.LabelSelectorOpDoesNotExist: selection.DoesNotExist,
}

// labelSelector is fieldSelector for labels.
func labelSelector(a *authorizationv1.LabelSelectorAttributes) (text, problem string) {
	if a == nil {
		return "", ""
	}
	if len(a.Requirements) == 0 {
		if _, err := labels.Parse(a.RawSelector); err != nil {
			return "", lost(1, 0)
		}
		return a.RawSelector, ""
	}
	var understood []labels.Requirement // added together: each Add copies and sorts all
	for _, r := range a.Requirements {
		op, known := selectionOperators[r.Operator]
		if one, err := labels.NewRequirement(r.Key, op, r.Values); known && err == nil {
			understood = append(understood, *one)
		}
	}
	return labels.NewSelector().Add(understood...).String(), lost(len(a.Requirements), len(understood))
}

func subject(spec authorizationv1.SubjectAccessReviewSpec) user.Info {
	u := &user.DefaultInfo{Name: spec.User, UID: spec.UID, Groups: spec.Groups, Extra: map[string][]string{}}
	for key, values := range spec.Extra {
		u.Extra[key] = values
	}
	return u
}

// wrong is the 422 of a review; the kind that it names is empty, as in Kubernetes.
func wrong(errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return invalid.New(schema.GroupKind{Group: authorizationv1.GroupName}, "", errs)
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
	if (resource == nil) == (other == nil) {
		errs = append(errs, field.Invalid(field.NewPath("spec"), shown(other),
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
	// Unknown operators of newer clients are allowed.
	if s := a.FieldSelector; s != nil {
		at := path.Child("fieldSelector")
		form(at, s.RawSelector, len(s.Requirements))
		for i, requirement := range s.Requirements {
			errs = append(errs, metav1validation.ValidateFieldSelectorRequirement(requirement,
				metav1validation.FieldSelectorValidationOptions{AllowUnknownOperatorInRequirement: true},
				at.Child("requirements").Index(i))...)
		}
	}
	if s := a.LabelSelector; s != nil {
		at := path.Child("labelSelector")
		form(at, s.RawSelector, len(s.Requirements))
		for i, requirement := range s.Requirements {
			errs = append(errs, metav1validation.ValidateLabelSelectorRequirement(requirement,
				metav1validation.LabelSelectorValidationOptions{AllowUnknownOperatorInRequirement: true},
				at.Child("requirements").Index(i))...)
		}
	}
	return errs
}
