package rest

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
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// maxDisrupted is how many evictions may wait for the disruption controller to see them.
const maxDisrupted = 2000

// maxEvictions is how often an eviction is tried while others write the pod.
const maxEvictions = 20

// itself is who the server is where it writes what nobody has asked for by name.
func itself() user.Info {
	return &user.DefaultInfo{
		Name: user.APIServerUser, Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated},
	}
}

var budgets = catalog.GroupResource{Group: "policy", Resource: "poddisruptionbudgets"}

// serveEviction deletes a pod if the disruption budget that it falls under allows it: POST pods/x/eviction.
func (s *Server) serveEviction(w http.ResponseWriter, r *http.Request, c *Call) error {
	var ev policyv1.Eviction
	options, err := s.readOther(r, c, policyv1.SchemeGroupVersion.WithKind("Eviction"), &ev,
		func() error { return c.checkEviction(&ev) }, "v1beta1")
	if err != nil {
		return err
	}
	o, err := evictionOptions(&ev, options)
	if err != nil {
		return err
	}
	if err := s.evict(r.Context(), c, o); err != nil {
		return err
	}
	return writeSuccess(w, r)
}

func (c *Call) checkEviction(ev *policyv1.Eviction) error {
	if ev.Name != c.Name {
		return apierrors.NewBadRequest("name in URL does not match name in Eviction object")
	}
	if o := ev.DeleteOptions; o != nil && o.IgnoreStoreReadErrorWithClusterBreakingPotential != nil &&
		*o.IgnoreStoreReadErrorWithClusterBreakingPotential {
		return apierrors.NewInvalid(schema.GroupKind{Group: "policy", Kind: "Eviction"}, c.Name,
			field.ErrorList{field.Invalid(
				field.NewPath("deleteOptions", "ignoreStoreReadErrorWithClusterBreakingPotential"), true,
				"can not be set for pod eviction, try after removing the option")})
	}
	return nil
}

// evictionOptions are the options of the deletion that comes of an eviction. A dry run may be asked for in either
// place.
func evictionOptions(ev *policyv1.Eviction, o *metav1.CreateOptions) (metav1.DeleteOptions, error) {
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

// evict deletes the pod with regard to its disruption budget. Where the pod's state is what lets it go, the deletion
// insists on that state.
func (s *Server) evict(ctx context.Context, c *Call, o metav1.DeleteOptions) error {
	insists := o.Preconditions != nil && o.Preconditions.ResourceVersion != nil
	pod, deleted, err := s.evictFree(ctx, c, o, insists)
	if err != nil || deleted {
		return err
	}
	budget, err := s.budgetOf(ctx, c, pod)
	if err != nil {
		return err
	}
	if budget == nil {
		return s.deleteEvicted(ctx, c, o)
	}
	if !ready(pod) &&
		(budget.Spec.UnhealthyPodEvictionPolicy != nil &&
			*budget.Spec.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow ||
			budget.Status.CurrentHealthy >= budget.Status.DesiredHealthy && budget.Status.DesiredHealthy > 0) {
		// A pod that is not healthy does not count; but it must not have become healthy meanwhile.
		err := s.deleteEvicted(ctx, c, atRevision(o, pod.ResourceVersion))
		if apierrors.IsConflict(err) && !insists {
			return tooEarly(budget.Name)
		}
		return err
	}
	if err := s.spend(ctx, c, budget, isDryRun(o.DryRun)); err != nil {
		return err
	}
	return s.deleteEvicted(ctx, c, o)
}

// evictFree deletes a pod whose deletion disrupts nobody, and returns any other.
func (s *Server) evictFree(ctx context.Context, c *Call, o metav1.DeleteOptions, insists bool) (pod *corev1.Pod,
	deleted bool, err error) {
	for range maxEvictions {
		if pod, err = s.pod(ctx, c); err != nil || disrupts(pod) {
			return pod, false, err
		}
		with := o
		if !insists && pod.Status.Phase == corev1.PodPending && pod.DeletionTimestamp == nil { // it may begin to run
			with = atRevision(o, pod.ResourceVersion)
		}
		err = s.deleteEvicted(ctx, c, with)
		if !apierrors.IsConflict(err) || insists {
			return nil, err == nil, err
		}
	}
	return nil, false, err
}

// pod returns the call's pod as it is now.
func (s *Server) pod(ctx context.Context, c *Call) (*corev1.Pod, error) {
	e, err := s.current(ctx, c)
	if err != nil {
		return nil, err
	}
	obj, err := s.fromEntry(c, e)
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

// deleteEvicted deletes the pod, after it has noted in its status why.
func (s *Server) deleteEvicted(ctx context.Context, c *Call, o metav1.DeleteOptions) error {
	on := *c
	if !isDryRun(o.DryRun) {
		on.Subresource = "status"
		noted, err := s.replace(ctx, &on, metav1.UpdateOptions{},
			func(e *watchcache.Entry, old Object) (Object, error) {
				if err := checkPreconditions(c, o.Preconditions, e); err != nil {
					return nil, err
				}
				pod := runtime.DeepCopyJSON(old)
				SetPodCondition(pod, Object{
					"type": string(corev1.DisruptionTarget), "status": string(corev1.ConditionTrue),
					"reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting",
				}, s.Now())
				return pod, nil
			})
		if err != nil {
			return err
		}
		if o.Preconditions != nil && o.Preconditions.ResourceVersion != nil {
			o = atRevision(o, object.String(object.Meta(noted.Object), "resourceVersion"))
		}
	}
	on.Subresource = ""
	_, err := s.Delete(ctx, &on, o)
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
func (s *Server) spend(ctx context.Context, c *Call, budget *policyv1.PodDisruptionBudget, dryRun bool) error {
	if dryRun {
		return refuses(budget)
	}
	call, err := s.Call(budgets, c.Namespace, budget.Name, itself())
	if err != nil {
		return err
	}
	call.Subresource = "status"
	_, err = s.Update(ctx, call, metav1.UpdateOptions{FieldManager: "kube-apiserver"},
		func(current Object) (Object, error) {
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
			b.Status.DisruptedPods[c.Name] = metav1.NewTime(s.Now().UTC().Truncate(time.Second))
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
	says := condition != nil && condition.Status == metav1.ConditionFalse && condition.Message != ""
	text := fmt.Sprintf("The disruption budget %s does not allow evicting pods currently", b.Name)
	switch {
	case says && condition.Reason == policyv1.SyncFailedReason:
		text += fmt.Sprintf(" because it failed sync: %s", condition.Message)
	case b.Status.CurrentHealthy <= b.Status.DesiredHealthy:
		text = fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", b.Name,
			b.Status.DesiredHealthy, b.Status.CurrentHealthy)
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
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes,
		metav1.StatusCause{Type: policyv1.DisruptionBudgetCause, Message: why})
	return err
}
