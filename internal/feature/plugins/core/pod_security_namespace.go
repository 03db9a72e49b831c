package core

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/pod-security-admission/api"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/plugin"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/request/invalid"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Bounds of the look at the pods of a namespace that gets another level.
const (
	mostPodsToCheck  = 3000
	longestPodsCheck = time.Second
)

// checkLabels rejects a new namespace with invalid labels.
func (s *security) checkLabels(_ context.Context, a *admit.Attributes) error {
	p, errs := s.policyOf(a.Object)
	if len(errs) > 0 {
		return invalidLabels(a, errs)
	}
	s.exemptsNamespace(a, p)
	return nil
}

// exemptsNamespace reports whether a namespace or its writer is exempt, and warns if its labels have no effect.
func (s *security) exemptsNamespace(a *admit.Attributes, p api.Policy) bool {
	name := catalog.Text(a.Object, "metadata", "name")
	if !slices.Contains(s.exempt.Namespaces, name) {
		return false
	}
	if p.FullyPrivileged() || p.Equivalent(&s.unlabeled) {
		return true
	}
	labels := catalog.At(a.Object, "metadata", "labels")
	var defaults []string
	for _, mode := range []struct {
		name, level, version string
		is                   api.LevelVersion
	}{
		{"enforce", api.EnforceLevelLabel, api.EnforceVersionLabel, p.Enforce},
		{"audit", api.AuditLevelLabel, api.AuditVersionLabel, p.Audit},
		{"warn", api.WarnLevelLabel, api.WarnVersionLabel, p.Warn},
	} {
		if mode.is.Level != api.LevelPrivileged && (labels[mode.level] != nil || labels[mode.version] != nil) {
			defaults = append(defaults, mode.name+"="+mode.is.String())
		}
	}
	a.Warn(fmt.Sprintf("namespace %q is exempt from Pod Security, and the policy (%s) will be ignored", name,
		strings.Join(defaults, ", ")))
	return true
}

// checkNamespace rejects invalid labels, unless they were invalid before, and warns about existing pods that violate a
// stricter level.
func (s *security) checkNamespace(ctx context.Context, a *admit.Attributes) error {
	now, errs := s.policyOf(a.Object)
	before, oldErrs := s.policyOf(a.Old)
	if len(errs) > 0 && !reflect.DeepEqual(errs, oldErrs) {
		return invalidLabels(a, errs)
	}
	eased := now.Enforce.Version == before.Enforce.Version &&
		api.CompareLevels(now.Enforce.Level, before.Enforce.Level) < 1
	if now.Enforce.Level == api.LevelPrivileged || eased || s.exemptsNamespace(a, now) {
		return nil
	}
	for _, warning := range s.violations(ctx, catalog.Text(a.Object, "metadata", "name"), now.Enforce) {
		a.Warn(warning)
	}
	return nil
}

func (s *security) policyOf(namespace object) (api.Policy, field.ErrorList) {
	labels := map[string]string{}
	for name, v := range catalog.At(namespace, "metadata", "labels") {
		labels[name], _ = v.(string)
	}
	return api.PolicyToEvaluate(labels, s.unlabeled)
}

func invalidLabels(a *admit.Attributes, errs field.ErrorList) error {
	return invalid.New(schema.GroupKind{Kind: "Namespace"}, a.Name, errs)
}

// violations lists the pods of a namespace that violate a level: one line for each kind of violation.
func (s *security) violations(ctx context.Context, namespace string, enforce api.LevelVersion) []string {
	limit := longestPodsCheck
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline)/2)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	pods, err := s.pods(ctx, namespace)
	if err != nil {
		return []string{"failed to list pods while checking new PodSecurity enforce level"}
	}
	total := len(pods)
	pods = pods[:min(total, mostPodsToCheck)]
	var out, reasons []string
	violating := map[string][]string{} // names of pods
	for i, pod := range pods {
		if r := s.ask(enforce, &pod.ObjectMeta, &pod.Spec); !r.Allowed {
			reason := r.ForbiddenReason()
			if violating[reason] == nil {
				reasons = append(reasons, reason)
			}
			violating[reason] = append(violating[reason], pod.Name)
		}
		if ctx.Err() != nil {
			pods = pods[:i+1]
			break
		}
	}
	if len(pods) < total {
		out = append(out,
			fmt.Sprintf("new PodSecurity enforce level only checked against the first %d of %d existing pods",
				len(pods), total))
	}
	if len(reasons) > 0 {
		out = append(out,
			fmt.Sprintf("existing pods in namespace %q violate the new PodSecurity enforce level %q", namespace,
				enforce.String()))
	}
	for i, reason := range reasons {
		first := slices.Min(violating[reason])
		switch more := len(violating[reason]) - 1; more {
		case 0:
			reasons[i] = fmt.Sprintf("%s: %s", first, reason)
		case 1:
			reasons[i] = fmt.Sprintf("%s (and 1 other pod): %s", first, reason)
		default:
			reasons[i] = fmt.Sprintf("%s (and %d other pods): %s", first, more, reason)
		}
	}
	slices.Sort(reasons)
	return append(out, reasons...)
}

// pods returns the pods of a namespace. Pods that repeat a controller's first pod come last.
func (s *security) pods(ctx context.Context, namespace string) (out []*corev1.Pod, err error) {
	if _, err := s.view.Fresh(ctx); err != nil {
		return nil, err
	}
	var alike []*corev1.Pod
	seen := map[types.UID]bool{}
	s.view.Collection(ref.Pods.Prefix).Snapshot().Scan(namespace, "", func(e *watchcache.Entry) bool {
		var pod *corev1.Pod
		if pod, err = plugin.Decode[corev1.Pod](e); err != nil {
			return false
		}
		switch owner := metav1.GetControllerOfNoCopy(pod); {
		case s.exemptsClass(&pod.Spec):
		case owner == nil:
			out = append(out, pod)
		case seen[owner.UID]:
			alike = append(alike, pod)
		default:
			seen[owner.UID] = true
			out = append(out, pod)
		}
		return ctx.Err() == nil
	})
	return append(out, alike...), err
}
