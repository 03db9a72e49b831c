package subresource

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds/core/podcondition"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/request/invalid"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// maxDisrupted is how many evictions may wait for the disruption controller to see them.
const maxDisrupted = 2000

// maxEvictions is how often an eviction is tried while others write the pod.
const maxEvictions = 20

var budgets = ref.PodDisruptionBudgets.GroupResource()

// evictionAction deletes a pod if the disruption budget that it falls under allows it: POST pods/x/eviction.
func evictionAction() verb.Action {
	return verb.Action{
		Kind:  policyv1.SchemeGroupVersion.WithKind("Eviction"),
		Older: []string{"v1beta1"},
		New:   func() any { return &policyv1.Eviction{} },
		Check: func(c *verb.Call, body any) error { return checkEviction(c, body.(*policyv1.Eviction)) },
		Run: func(ctx context.Context, v *verb.Verbs, c *verb.Call, body any, o metav1.CreateOptions) error {
			options, err := evictionOptions(body.(*policyv1.Eviction), o)
			if err != nil {
				return err
			}
			return (&eviction{Verbs: v, call: c}).run(ctx, options)
		},
	}
}

func checkEviction(c *verb.Call, ev *policyv1.Eviction) error {
	if ev.Name != c.Name {
		return apierrors.NewBadRequest("name in URL does not match name in Eviction object")
	}
	if o := ev.DeleteOptions; o != nil && o.IgnoreStoreReadErrorWithClusterBreakingPotential != nil &&
		*o.IgnoreStoreReadErrorWithClusterBreakingPotential {
		path := field.NewPath("deleteOptions", "ignoreStoreReadErrorWithClusterBreakingPotential")
		return invalid.New(schema.GroupKind{Group: "policy", Kind: "Eviction"}, c.Name, field.ErrorList{
			field.Invalid(path, true, "can not be set for pod eviction, try after removing the option"),
		})
	}
	return nil
}

// evictionOptions returns the options of the eviction's deletion. dryRun may be set in either place.
func evictionOptions(ev *policyv1.Eviction, o metav1.CreateOptions) (metav1.DeleteOptions, error) {
	if ev.DeleteOptions == nil {
		return metav1.DeleteOptions{DryRun: o.DryRun}, nil
	}
	out := *ev.DeleteOptions
	switch {
	case len(out.DryRun) == 0:
		out.DryRun = o.DryRun
	case len(o.DryRun) > 0 && !slices.Equal(o.DryRun, out.DryRun):
		//lint:ignore ST1005 kube's text
		return out, fmt.Errorf("Non-matching dry-run options in request and content: %v and %v", o.DryRun, out.DryRun)
	}
	return out, nil
}

// eviction is one eviction of a pod.
type eviction struct {
	*verb.Verbs
	call *verb.Call // about the pod
}

// run deletes the pod subject to its disruption budget. If the state of the pod is the reason that it may be deleted,
// the deletion has this state as precondition.
func (ev *eviction) run(ctx context.Context, o metav1.DeleteOptions) error {
	insists := o.Preconditions != nil && o.Preconditions.ResourceVersion != nil
	pod, deleted, err := ev.evictFree(ctx, o, insists)
	if err != nil || deleted {
		return err
	}
	budget, err := ev.budgetOf(ctx, pod)
	if err != nil {
		return err
	}
	if budget == nil {
		return ev.deleteEvicted(ctx, o)
	}
	if !ready(pod) &&
		(budget.Spec.UnhealthyPodEvictionPolicy != nil &&
			*budget.Spec.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow ||
			budget.Status.CurrentHealthy >= budget.Status.DesiredHealthy && budget.Status.DesiredHealthy > 0) {
		// An unhealthy pod does not count, but it must not have become healthy meanwhile.
		err := ev.deleteEvicted(ctx, atRevision(o, pod.ResourceVersion))
		if apierrors.IsConflict(err) && !insists {
			return tooEarly(budget.Name)
		}
		return err
	}
	if err := ev.spend(ctx, budget, len(o.DryRun) > 0); err != nil {
		return err
	}
	return ev.deleteEvicted(ctx, o)
}

// evictFree deletes a pod that no disruption budget covers, and returns any other pod.
func (ev *eviction) evictFree(ctx context.Context, o metav1.DeleteOptions, insists bool) (pod *corev1.Pod,
	deleted bool, err error) {
	for range maxEvictions {
		if pod, err = ev.current(ctx); err != nil || disrupts(pod) {
			return pod, false, err
		}
		with := o
		if !insists && pod.Status.Phase == corev1.PodPending && pod.DeletionTimestamp == nil { // it may start to run
			with = atRevision(o, pod.ResourceVersion)
		}
		err = ev.deleteEvicted(ctx, with)
		if !apierrors.IsConflict(err) || insists {
			return nil, err == nil, err
		}
	}
	return nil, false, err
}

// current returns the current state of the call's pod.
func (ev *eviction) current(ctx context.Context) (*corev1.Pod, error) {
	e, err := ev.Current(ctx, ev.call)
	if err != nil {
		return nil, err
	}
	obj, err := ev.Object(ev.call, e)
	if err != nil {
		return nil, err
	}
	pod := &corev1.Pod{}
	return pod, runtime.DefaultUnstructuredConverter.FromUnstructured(obj, pod)
}

// atRevision returns the options for a deletion that insists on the revision.
func atRevision(o metav1.DeleteOptions, revision string) metav1.DeleteOptions {
	p := metav1.Preconditions{}
	if o.Preconditions != nil {
		p = *o.Preconditions
	}
	p.ResourceVersion = &revision
	o.Preconditions = &p
	return o
}

// disrupts reports whether a deletion of the pod counts against a disruption budget.
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

// deleteEvicted sets the pod's condition DisruptionTarget and deletes the pod.
func (ev *eviction) deleteEvicted(ctx context.Context, o metav1.DeleteOptions) error {
	if len(o.DryRun) == 0 {
		marked, err := ev.Edit(ctx, ev.call.Under("status"), metav1.UpdateOptions{},
			func(e *watchcache.Entry, old object.Object) (object.Object, error) {
				if err := verb.CheckPreconditions(ev.call, o.Preconditions, e); err != nil {
					return nil, err
				}
				pod := runtime.DeepCopyJSON(old)
				podcondition.Set(pod, object.Object{
					"type": string(corev1.DisruptionTarget), "status": string(corev1.ConditionTrue),
					"reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting",
				}, ev.Now())
				return pod, nil
			})
		if err != nil {
			return err
		}
		if o.Preconditions != nil && o.Preconditions.ResourceVersion != nil {
			o = atRevision(o, object.String(object.Meta(marked.Object), "resourceVersion"))
		}
	}
	_, err := ev.Delete(ctx, ev.call.Under(""), o)
	return err
}

// budgetOf returns the disruption budget that selects the pod, or nil. Two are an error, as in Kubernetes.
func (ev *eviction) budgetOf(ctx context.Context, pod *corev1.Pod) (*policyv1.PodDisruptionBudget, error) {
	call, err := ev.Call(budgets, ev.call.Namespace, "", ev.call.User)
	if err != nil {
		return nil, err
	}
	var found *policyv1.PodDisruptionBudget
	ev.View().Collection(call.Resource.Prefix).Snapshot().Scan(ev.call.Namespace, "", func(e *watchcache.Entry) bool {
		var obj object.Object
		if obj, err = ev.Object(call, e); err != nil {
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

// spend takes one disruption from the budget, and records the pod in it. It fails if the budget has none left.
func (ev *eviction) spend(ctx context.Context, budget *policyv1.PodDisruptionBudget, dryRun bool) error {
	if dryRun {
		return refuses(budget)
	}
	call, err := ev.Call(budgets, ev.call.Namespace, budget.Name, verb.ServerUser())
	if err != nil {
		return err
	}
	call = call.Under("status")
	_, err = ev.Update(ctx, call, metav1.UpdateOptions{FieldManager: "kube-apiserver"},
		func(current object.Object) (object.Object, error) {
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
					Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse,
					Reason: policyv1.InsufficientPodsReason, ObservedGeneration: b.Status.ObservedGeneration,
				})
			}
			if b.Status.DisruptedPods == nil {
				b.Status.DisruptedPods = map[string]metav1.Time{}
			}
			b.Status.DisruptedPods[ev.call.Name] = metav1.NewTime(ev.Now().UTC().Truncate(time.Second))
			return runtime.DefaultUnstructuredConverter.ToUnstructured(b)
		})
	return err
}

// refuses returns why the budget does not allow one more disruption, or nil.
func refuses(b *policyv1.PodDisruptionBudget) error {
	forbidden := func(why string) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: "policy", Resource: "poddisruptionbudget"}, b.Name,
			fmt.Errorf("%s", why))
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
	hasReason := condition != nil && condition.Status == metav1.ConditionFalse && condition.Message != ""
	text := fmt.Sprintf("The disruption budget %s does not allow evicting pods currently", b.Name)
	switch {
	case hasReason && condition.Reason == policyv1.SyncFailedReason:
		text += fmt.Sprintf(" because it failed sync: %s", condition.Message)
	case b.Status.CurrentHealthy <= b.Status.DesiredHealthy:
		text = fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", b.Name,
			b.Status.DesiredHealthy, b.Status.CurrentHealthy)
	case hasReason:
		text += fmt.Sprintf(" (%s): %s", condition.Reason, condition.Message)
	}
	return violates(0, text)
}

// tooEarly is the error while the disruption controller has not observed the budget's last change.
func tooEarly(budget string) error {
	return violates(10, fmt.Sprintf("The disruption budget %s is still being processed by the server.", budget))
}

func violates(retryAfter int, why string) error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", retryAfter)
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes,
		metav1.StatusCause{Type: policyv1.DisruptionBudgetCause, Message: why})
	return err
}
