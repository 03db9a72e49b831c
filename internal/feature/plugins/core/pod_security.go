package core

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	podsecurity "k8s.io/pod-security-admission/admission/api"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/plugin"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// security enforces the pod security level in the labels of a namespace, and warns about violating templates. The
// levels are defined in k8s.io/pod-security-admission/policy. Without a configuration nothing is exempt, and without
// labels everything is allowed.
type security struct {
	view       *watchcache.View
	namespaces admit.Namespaces
	evaluator  policy.Evaluator
	unlabeled  api.Policy // of namespaces without labels
	exempt     podsecurity.PodSecurityExemptions
	metrics    *securityMetrics
}

// unrestricted is the default policy of a namespace without labels.
var unrestricted = func() api.Policy {
	all := api.LevelVersion{Level: api.LevelPrivileged, Version: api.LatestVersion()}
	return api.Policy{Enforce: all, Audit: all, Warn: all}
}()

// PodSecurity refuses pods that go against the security level of their namespace.
func PodSecurity(c plugin.Config) []plugin.Rule {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		panic(err) // the library contradicts itself
	}
	s := &security{
		view: c.View, namespaces: admit.Namespaces{View: c.View}, evaluator: evaluator, unlabeled: unrestricted,
		metrics: newSecurityMetrics(c.Metrics),
	}
	if own := c.PodSecurity; own != nil {
		s.exempt = own.Exemptions
		if s.unlabeled, err = podsecurity.ToPolicy(own.Defaults); err != nil {
			panic(err) // package configuration has validated it
		}
	}
	rules := []plugin.Rule{
		{Plural: "namespaces", Operations: plugin.Creates, Validate: s.checkLabels},
		{Plural: "namespaces", Operations: plugin.Updates, Validate: s.checkNamespace},
		{Plural: "pods", Operations: plugin.Creates, Validate: s.checkPod},
	}
	for _, subresource := range []string{"", "ephemeralcontainers", "resize"} {
		rules = append(rules, plugin.Rule{
			Plural: "pods", Subresource: subresource, Operations: plugin.Updates, Validate: s.checkPod,
		})
	}
	for _, t := range podTemplates {
		rules = append(rules,
			plugin.Rule{Group: t.group, Plural: t.plural, Operations: plugin.Writes,
				Validate: func(ctx context.Context, a *admit.Attributes) error {
					return s.checkTemplate(ctx, a, catalog.At(a.Object, t.path...))
				}})
	}
	return rules
}

// podTemplates are the kinds with pod templates, and the location of the template.
var podTemplates = []struct {
	group, plural string
	path          []string
}{
	{"", "podtemplates", []string{"template"}},
	{"", "replicationcontrollers", []string{"spec", "template"}},
	{"apps", "replicasets", []string{"spec", "template"}},
	{"apps", "deployments", []string{"spec", "template"}},
	{"apps", "statefulsets", []string{"spec", "template"}},
	{"apps", "daemonsets", []string{"spec", "template"}},
	{"batch", "jobs", []string{"spec", "template"}},
	{"batch", "cronjobs", []string{"spec", "jobTemplate", "spec", "template"}},
}

// exempts reports whether a write is exempt by its namespace or user.
func (s *security) exempts(a *admit.Attributes) bool {
	switch {
	case slices.Contains(s.exempt.Namespaces, a.Namespace):
		annotate(a, api.ExemptionReasonAnnotationKey, "namespace")
	case a.User != nil && slices.Contains(s.exempt.Usernames, a.User.GetName()):
		annotate(a, api.ExemptionReasonAnnotationKey, "user")
	default:
		return false
	}
	s.metrics.exempted(a)
	return true
}

// exemptsClass reports whether a pod is exempt by its runtime class.
func (s *security) exemptsClass(pod *corev1.PodSpec) bool {
	return pod.RuntimeClassName != nil && slices.Contains(s.exempt.RuntimeClasses, *pod.RuntimeClassName)
}

func (s *security) checkPod(ctx context.Context, a *admit.Attributes) error {
	if s.exempts(a) {
		return nil
	}
	labels, err := s.namespaces.Labels(ctx, a.Namespace)
	if err != nil {
		why := apierrors.NewInternalError(fmt.Errorf("failed to lookup namespace %q", a.Namespace))
		annotate(a, "error", fmt.Sprintf("%s: %v", why.ErrStatus.Message, err))
		s.metrics.failed(a, true)
		return why
	}
	p, errs := api.PolicyToEvaluate(labels, s.unlabeled)
	if len(errs) == 0 && p.FullyPrivileged() {
		annotate(a, api.EnforcedPolicyAnnotationKey, unrestricted.Enforce.String())
		s.metrics.evaluated(a, true, p.Enforce, enforceMode)
		return nil
	}
	if a.Operation == admit.Update && !imagesChange(a.Object, a.Old) {
		return nil
	}
	return s.evaluate(a, a.Object, p, errs.ToAggregate(), true)
}

func (s *security) checkTemplate(ctx context.Context, a *admit.Attributes, template object) error {
	if s.exempts(a) {
		return nil
	}
	labels, err := s.namespaces.Labels(ctx, a.Namespace)
	if err != nil {
		annotate(a, "error", fmt.Sprintf("failed to lookup namespace %q: %v", a.Namespace, err))
		s.metrics.failed(a, true)
		return nil
	}
	p, errs := api.PolicyToEvaluate(labels, s.unlabeled)
	if template == nil || len(errs) == 0 && p.Warn.Level == api.LevelPrivileged &&
		p.Audit.Level == api.LevelPrivileged {
		return nil
	}
	return s.evaluate(a, template, p, errs.ToAggregate(), false)
}

// evaluate rejects a pod that violates the enforced level, annotates the audit event by the audit level, and warns by
// the warn level. A pod template (enforce is false) is not rejected. broken is the error in the namespace's labels, or
// nil.
func (s *security) evaluate(a *admit.Attributes, pod object, p api.Policy, broken error, enforce bool) error {
	var typed corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object{
		"metadata": pod["metadata"], "spec": pod["spec"],
	}, &typed); err != nil {
		return err
	}
	if s.exemptsClass(&typed.Spec) {
		annotate(a, api.ExemptionReasonAnnotationKey, "runtimeClass")
		s.metrics.exempted(a)
		return nil
	}
	if broken != nil {
		annotate(a, "error", fmt.Sprintf("Failed to parse policy: %v", broken))
		s.metrics.failed(a, false)
	}
	results := map[api.LevelVersion]policy.AggregateCheckResult{}
	ask := func(of api.LevelVersion) policy.AggregateCheckResult {
		r, known := results[of]
		if !known {
			r = s.ask(of, &typed.ObjectMeta, &typed.Spec)
			results[of] = r
		}
		return r
	}
	if enforce {
		annotate(a, api.EnforcedPolicyAnnotationKey, p.Enforce.String())
	}
	if r := ask(p.Audit); !r.Allowed {
		annotate(a, api.AuditViolationsAnnotationKey,
			fmt.Sprintf("would violate PodSecurity %q: %s", p.Audit.String(), r.ForbiddenDetail()))
		s.metrics.evaluated(a, false, p.Audit, auditMode)
	}
	if enforce {
		r := ask(p.Enforce)
		s.metrics.evaluated(a, r.Allowed, p.Enforce, enforceMode)
		if !r.Allowed {
			return admit.Forbidden(a,
				fmt.Errorf("violates PodSecurity %q: %s", p.Enforce.String(), r.ForbiddenDetail()))
		}
	}
	if r := ask(p.Warn); !r.Allowed {
		a.Warn(fmt.Sprintf("would violate PodSecurity %q: %s", p.Warn.String(), r.ForbiddenDetail()))
		s.metrics.evaluated(a, false, p.Warn, warnMode)
	}
	return nil
}

func (s *security) ask(of api.LevelVersion, meta *metav1.ObjectMeta, spec *corev1.PodSpec) policy.AggregateCheckResult {
	return policy.AggregateCheckResults(s.evaluator.EvaluatePod(of, meta, spec))
}

func annotate(a *admit.Attributes, key, value string) {
	a.Annotate(api.AuditAnnotationPrefix+key, value)
}

// imagesChange reports whether an update changes an image. Only such a change can make a pod violate a policy: its
// other relevant fields are immutable.
func imagesChange(pod, old object) bool {
	for _, list := range []string{"containers", "initContainers"} {
		now, before := catalog.Objects(catalog.At(pod, "spec")[list]), catalog.Objects(catalog.At(old, "spec")[list])
		if len(now) != len(before) {
			return true
		}
		for i := range now {
			if catalog.Text(now[i], "image") != catalog.Text(before[i], "image") {
				return true
			}
		}
	}
	images := map[string]string{}
	for _, c := range catalog.Objects(catalog.At(old, "spec")["ephemeralContainers"]) {
		if _, known := images[catalog.Text(c, "name")]; !known {
			images[catalog.Text(c, "name")] = catalog.Text(c, "image")
		}
	}
	for _, c := range catalog.Objects(catalog.At(pod, "spec")["ephemeralContainers"]) {
		if image, known := images[catalog.Text(c, "name")]; !known || image != catalog.Text(c, "image") {
			return true
		}
	}
	return false
}
