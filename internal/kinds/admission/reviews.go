package admission

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

// reviews are the reviews of authentication and authorization, which webhooks do not receive.
var reviews = []schema.GroupResource{
	{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"},
	{Group: "authentication.k8s.io", Resource: "tokenreviews"},
	{Group: "authorization.k8s.io", Resource: "localsubjectaccessreviews"},
	{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"},
	{Group: "authorization.k8s.io", Resource: "selfsubjectrulesreviews"},
	{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"},
}

// WarnReviews makes a kind of webhook configurations warn about rules that name a review. A rule with a wildcard causes
// no warning: it may be meant for other resources.
func WarnReviews(s *catalog.Strategy) {
	warnings := s.Warnings
	s.Warnings = func(obj, old object.Object, subresource string) []string {
		return append(warnings(obj, old, subresource), reviewWarnings(obj)...)
	}
}

func reviewWarnings(obj object.Object) (texts []string) {
	// Both kinds have the rules in the same place.
	configuration, errs := rule.Read[admissionregistrationv1.ValidatingWebhookConfiguration](obj)
	if errs != nil {
		return nil
	}
	for i, w := range configuration.Webhooks {
		for j, r := range w.Rules {
			path := field.NewPath("webhooks").Index(i).Child("rules").Index(j)
			for _, named := range namedReviews(r.Rule) {
				texts = append(texts, path.String()+": "+named.String()+
					" is excluded from admission webhooks; this rule will have no effect")
			}
		}
	}
	return texts
}

// namedReviews returns the reviews that a rule names, in the order of the rule.
func namedReviews(r admissionregistrationv1.Rule) (named []schema.GroupResource) {
	if slices.Contains(r.APIGroups, "*") || slices.Contains(r.Resources, "*") {
		return nil
	}
	for _, group := range r.APIGroups {
		for _, resource := range r.Resources {
			name := schema.GroupResource{Group: group, Resource: resource}
			if slices.Contains(reviews, name) && !slices.Contains(named, name) {
				named = append(named, name)
			}
		}
	}
	return named
}
