package registration

import (
	"reflect"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/bowsprit/bowsprit/internal/admit/expr"
	"github.com/bowsprit/bowsprit/internal/net/webhook"
)

// Hook holds the fields common to both kinds of webhooks.
type Hook struct {
	Name                    string
	ClientConfig            admissionregistrationv1.WebhookClientConfig
	Rules                   []admissionregistrationv1.RuleWithOperations
	FailurePolicy           *admissionregistrationv1.FailurePolicyType
	MatchPolicy             *admissionregistrationv1.MatchPolicyType
	NamespaceSelector       *metav1.LabelSelector
	ObjectSelector          *metav1.LabelSelector
	SideEffects             *admissionregistrationv1.SideEffectClass
	TimeoutSeconds          *int32
	AdmissionReviewVersions []string
	ReinvocationPolicy      *admissionregistrationv1.ReinvocationPolicyType // of mutating webhooks only
	MatchConditions         []admissionregistrationv1.MatchCondition
}

// MutatingHooks returns the webhooks of a configuration.
func MutatingHooks(c *admissionregistrationv1.MutatingWebhookConfiguration) (out []Hook) {
	for _, w := range c.Webhooks {
		out = append(out, Hook{
			w.Name, w.ClientConfig, w.Rules, w.FailurePolicy, w.MatchPolicy, w.NamespaceSelector, w.ObjectSelector,
			w.SideEffects, w.TimeoutSeconds,
			w.AdmissionReviewVersions, w.ReinvocationPolicy, w.MatchConditions,
		})
	}
	return out
}

// ValidatingHooks returns the webhooks of a configuration.
func ValidatingHooks(c *admissionregistrationv1.ValidatingWebhookConfiguration) (out []Hook) {
	for _, w := range c.Webhooks {
		out = append(out, Hook{
			w.Name, w.ClientConfig, w.Rules, w.FailurePolicy, w.MatchPolicy, w.NamespaceSelector, w.ObjectSelector,
			w.SideEffects, w.TimeoutSeconds,
			w.AdmissionReviewVersions, nil, w.MatchConditions,
		})
	}
	return out
}

// CheckMutatingWebhooks returns the errors of a configuration outside of its metadata. old is nil for a new one; its
// violations may stay. Once ended is true, the rest is not compiled.
func CheckMutatingWebhooks(
	c, old *admissionregistrationv1.MutatingWebhookConfiguration, ended func() bool,
) field.ErrorList {
	if old == nil {
		return checkHooks(MutatingHooks(c), nil, false, ended)
	}
	return checkHooks(MutatingHooks(c), MutatingHooks(old), true, ended)
}

// CheckValidatingWebhooks is CheckMutatingWebhooks for the other kind.
func CheckValidatingWebhooks(
	c, old *admissionregistrationv1.ValidatingWebhookConfiguration, ended func() bool,
) field.ErrorList {
	if old == nil {
		return checkHooks(ValidatingHooks(c), nil, false, ended)
	}
	return checkHooks(ValidatingHooks(c), ValidatingHooks(old), true, ended)
}

// allowances holds the violations that an update may leave unchanged.
type allowances struct {
	conditions    bool // the match conditions are unchanged
	sideEffects   bool
	reviews       bool
	names         bool
	labelValues   bool
	preexistingCE map[string]bool // expressions of match conditions
}

func checkHooks(hooks, old []Hook, update bool, ended func() bool) (errs field.ErrorList) {
	l := allowances{preexistingCE: map[string]bool{}}
	if update {
		l = allowancesOf(hooks, old)
	}
	compiler, seen := &expr.Compiler{Ended: ended}, map[string]bool{}
	for i := range hooks {
		path := field.NewPath("webhooks").Index(i)
		errs = append(errs, checkHook(compiler, &hooks[i], l, path)...)
		errs = append(errs,
			webhook.CheckReviewVersions(hooks[i].AdmissionReviewVersions, "must specify one of v1, v1beta1", l.reviews,
				path.Child("admissionReviewVersions"))...)
		name := hooks[i].Name
		if !l.names && name != "" && seen[name] {
			errs = append(errs, field.Duplicate(path.Child("name"), name))
		}
		seen[name] = true
	}
	return errs
}

func allowancesOf(hooks, old []Hook) allowances {
	l := allowances{preexistingCE: map[string]bool{}, conditions: len(hooks) == len(old)}
	seen := map[string]bool{}
	for i := range old {
		h := &old[i]
		l.conditions = l.conditions && reflect.DeepEqual(hooks[i].MatchConditions, h.MatchConditions)
		l.sideEffects = l.sideEffects || h.SideEffects == nil || !slices.Contains(harmless, string(*h.SideEffects))
		l.reviews = l.reviews || len(h.AdmissionReviewVersions) > 0 &&
			!slices.ContainsFunc(h.AdmissionReviewVersions, webhook.KnownReview)
		l.names = l.names || seen[h.Name]
		seen[h.Name] = true
		for _, s := range []*metav1.LabelSelector{h.NamespaceSelector, h.ObjectSelector} {
			l.labelValues = l.labelValues || s != nil &&
				len(metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{},
					nil)) > 0
		}
		for _, m := range h.MatchConditions {
			l.preexistingCE[m.Expression] = true
		}
	}
	return l
}

// harmless are the side effects that a webhook may have.
var harmless = []string{"None", "NoneOnDryRun"}

func checkHook(compiler *expr.Compiler, h *Hook, l allowances, path *field.Path) field.ErrorList {
	errs := utilvalidation.IsFullyQualifiedName(path.Child("name"), h.Name)
	for i := range h.Rules {
		errs = append(errs, checkRule(&h.Rules[i], path.Child("rules").Index(i))...)
	}
	errs = append(errs, checkEnum(path.Child("failurePolicy"), h.FailurePolicy, failurePolicies...)...)
	errs = append(errs, checkEnum(path.Child("matchPolicy"), h.MatchPolicy, matchPolicies...)...)
	allowed := harmless
	if l.sideEffects {
		allowed = []string{"None", "NoneOnDryRun", "Some", "Unknown"}
	}
	if h.SideEffects == nil {
		errs = append(errs,
			field.Required(path.Child("sideEffects"), "must specify one of "+strings.Join(allowed, ", ")))
	}
	errs = append(errs, checkEnum(path.Child("sideEffects"), h.SideEffects, allowed...)...)
	if t := h.TimeoutSeconds; t != nil && (*t > 30 || *t < 1) {
		errs = append(errs,
			field.Invalid(path.Child("timeoutSeconds"), *t, "the timeout value must be between 1 and 30 seconds"))
	}
	lenient := metav1validation.LabelSelectorValidationOptions{AllowInvalidLabelValueInSelector: l.labelValues}
	if h.NamespaceSelector != nil {
		errs = append(errs,
			metav1validation.ValidateLabelSelector(h.NamespaceSelector, lenient, path.Child("namespaceSelector"))...)
	}
	if h.ObjectSelector != nil {
		errs = append(errs,
			metav1validation.ValidateLabelSelector(h.ObjectSelector, lenient, path.Child("objectSelector"))...)
	}
	errs = append(errs, checkEnum(path.Child("reinvocationPolicy"), h.ReinvocationPolicy, reinvocationPolicies...)...)
	errs = append(errs, checkClient(&h.ClientConfig, path.Child("clientConfig"))...)
	if !l.conditions {
		errs = append(errs,
			checkConditions(compiler, h.MatchConditions, false, l.preexistingCE, path.Child("matchConditions"))...)
	}
	return errs
}

func checkClient(c *admissionregistrationv1.WebhookClientConfig, path *field.Path) field.ErrorList {
	switch s := c.Service; {
	case (c.URL == nil) == (s == nil):
		return field.ErrorList{field.Required(path, "exactly one of url or service is required")}
	case s == nil:
		return webhook.CheckURL(*c.URL, path.Child("url"))
	default:
		return webhook.CheckService(s.Namespace, s.Name, s.Path, ptr.Deref(s.Port, 0), path.Child("service"))
	}
}
