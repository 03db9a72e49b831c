package rest

import (
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/catalog"
	"github.com/bowsprit/bowsprit/internal/watchcache"
)

// maxDisrupted is how many evictions may wait for the disruption controller to see them.
const maxDisrupted = 2000

var budgets = catalog.GroupResource{Group: "policy", Resource: "poddisruptionbudgets"}

// serveEviction deletes a pod if the disruption budget that it falls under allows it: POST pods/x/eviction.
func (s *Server) serveEviction(w http.ResponseWriter, r *http.Request, c *Call) error {
	var ev policyv1.Eviction
	options, err := s.readOther(r, c, policyv1.SchemeGroupVersion.WithKind("Eviction"), &ev)
	if err != nil {
		return err
	}
	if ev.Name != c.Name {
		return apierrors.NewBadRequest("name in URL does not match name in Eviction object")
	}
	o := metav1.DeleteOptions{}
	if ev.DeleteOptions != nil {
		o = *ev.DeleteOptions
	}
	if len(o.DryRun) == 0 {
		o.DryRun = options.DryRun
	}
	if err := s.evict(r.Context(), c, o); err != nil {
		return err
	}
	return writeSuccess(w, r)
}

func (s *Server) evict(ctx context.Context, c *Call, o metav1.DeleteOptions) error {
	e, err := s.current(ctx, c)
	if err != nil {
		return err
	}
	obj, err := s.fromEntry(c, e)
	if err != nil {
		return err
	}
	var pod corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, &pod); err != nil {
		return err
	}
	if !disrupts(&pod) {
		return s.deleteEvicted(ctx, c, o)
	}
	budget, err := s.budgetOf(ctx, c, &pod)
	if err != nil {
		return err
	}
	if budget == nil {
		return s.deleteEvicted(ctx, c, o)
	}
	if !ready(&pod) && (budget.Spec.UnhealthyPodEvictionPolicy != nil && *budget.Spec.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow ||
		budget.Status.CurrentHealthy >= budget.Status.DesiredHealthy && budget.Status.DesiredHealthy > 0) {
		// A pod that is not healthy does not count; but it must not have become healthy meanwhile.
		if o.Preconditions == nil {
			revision := pod.ResourceVersion
			o.Preconditions = &metav1.Preconditions{ResourceVersion: &revision}
			if err := s.deleteEvicted(ctx, c, o); !apierrors.IsConflict(err) {
				return err
			}
			return tooEarly(budget.Name)
		}
		return s.deleteEvicted(ctx, c, o)
	}
	if err := s.spend(ctx, c, budget.Name, isDryRun(o.DryRun)); err != nil {
		return err
	}
	return s.deleteEvicted(ctx, c, o)
}

// disrupts tells whether deleting the pod takes something away from anybody.
func disrupts(pod *corev1.Pod) bool {
	switch pod.Status.Phase {
	case corev1.PodSucceeded, corev1.PodFailed, corev1.PodPending:
		return false
	}
	return pod.DeletionTimestamp == nil
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (s *Server) deleteEvicted(ctx context.Context, c *Call, o metav1.DeleteOptions) error {
	main := *c
	main.Subresource = ""
	_, err := s.Delete(ctx, &main, o)
	return err
}

// budgetOf returns the disruption budget that selects the pod, or nil. Two are an error, as in Kubernetes.
func (s *Server) budgetOf(ctx context.Context, c *Call, pod *corev1.Pod) (*policyv1.PodDisruptionBudget, error) {
	call, err := s.Call(budgets, c.Namespace, "", c.User)
	if err != nil {
		return nil, err
	}
	var found *policyv1.PodDisruptionBudget
	s.View.Collection(call.Resource.Prefix).Snapshot().Scan(c.Namespace, "", func(e *watchcache.Entry) bool {
		var obj Object
		if obj, err = s.fromEntry(call, e); err != nil {
			return false
		}
		b := &policyv1.PodDisruptionBudget{}
		if err = runtime.DefaultUnstructuredConverter.FromUnstructured(obj, b); err != nil {
			return false
		}
		selector, bad := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if bad != nil || !selector.Matches(labels.Set(pod.Labels)) {
			return true
		}
		if found != nil {
			err = &apierrors.StatusError{ErrStatus: metav1.Status{
				Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
				Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
			}}
			return false
		}
		found = b
		return true
	})
	return found, err
}

// spend takes one disruption from the budget, and notes in it which pod goes. It fails if the budget has none left.
func (s *Server) spend(ctx context.Context, c *Call, name string, dryRun bool) error {
	call, err := s.Call(budgets, c.Namespace, name, c.User)
	if err != nil {
		return err
	}
	call.Subresource = "status"
	options := metav1.UpdateOptions{}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	_, err = s.Update(ctx, call, options, func(current Object) (Object, error) {
		b := &policyv1.PodDisruptionBudget{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(current, b); err != nil {
			return nil, err
		}
		if err := refuses(b); err != nil {
			return nil, err
		}
		b.Status.DisruptionsAllowed--
		if b.Status.DisruptionsAllowed == 0 {
			meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{
				Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.InsufficientPodsReason, ObservedGeneration: b.Status.ObservedGeneration,
			})
		}
		if b.Status.DisruptedPods == nil {
			b.Status.DisruptedPods = map[string]metav1.Time{}
		}
		b.Status.DisruptedPods[c.Name] = metav1.NewTime(s.Now().UTC().Truncate(time.Second))
		return runtime.DefaultUnstructuredConverter.ToUnstructured(b)
	})
	return err
}

// refuses returns why the budget does not allow one more disruption, or nil.
func refuses(b *policyv1.PodDisruptionBudget) error {
	forbidden := func(why string) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: "policy", Resource: "poddisruptionbudget"}, b.Name, fmt.Errorf("%s", why))
	}
	switch {
	case b.Status.ObservedGeneration < b.Generation:
		return tooEarly(b.Name)
	case b.Status.DisruptionsAllowed < 0:
		return forbidden("pdb disruptions allowed is negative")
	case len(b.Status.DisruptedPods) > maxDisrupted:
		return forbidden("DisruptedPods map too big - too many evictions not confirmed by PDB controller")
	case b.Status.DisruptionsAllowed > 0:
		return nil
	}
	condition := meta.FindStatusCondition(b.Status.Conditions, policyv1.DisruptionAllowedCondition)
	says := condition != nil && condition.Status == metav1.ConditionFalse && condition.Message != ""
	text := fmt.Sprintf("The disruption budget %s does not allow evicting pods currently", b.Name)
	switch {
	case says && condition.Reason == policyv1.SyncFailedReason:
		text += fmt.Sprintf(" because it failed sync: %s", condition.Message)
	case b.Status.CurrentHealthy <= b.Status.DesiredHealthy:
		text = fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", b.Name, b.Status.DesiredHealthy, b.Status.CurrentHealthy)
	case says:
		text += fmt.Sprintf(" (%s): %s", condition.Reason, condition.Message)
	}
	return violates(0, text)
}

// tooEarly is the answer while the disruption controller has not seen the budget's last change.
func tooEarly(budget string) error {
	return violates(10, fmt.Sprintf("The disruption budget %s is still being processed by the server.", budget))
}

func violates(retryAfter int, why string) error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", retryAfter)
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: policyv1.DisruptionBudgetCause, Message: why})
	return err
}
