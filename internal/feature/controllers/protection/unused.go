package protection

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// unusedGate is the feature gate of the condition Unused.
const unusedGate = "PersistentVolumeClaimUnusedSinceTime"

// claimUsage protects claims, and keeps the condition Unused of bound claims. The condition has the time since when no
// pod refers to the claim, or some pod does (KEP-5541). Unlike the protection, it also counts pods without a node.
type claimUsage struct {
	*protection
	users users
}

func (c *claimUsage) Observe(ev *watchcache.Event, need func(string)) {
	c.protection.Observe(ev, need)
	switch ev.Collection.Prefix() {
	case ref.Pods.Prefix:
		c.users.follow(ev, need)
	case ref.PersistentVolumeClaims.Prefix:
		if ev.Type == watchcache.Deleted || !reportsUsage(ev.Entry) {
			return
		}
		// At a start, the last user may have terminated while no controller was running.
		if status := unused(ev.Entry); status == "" || status == corev1.ConditionFalse && ev.Type == watchcache.Added {
			need(ev.Entry.Key())
		}
	}
}

func (c *claimUsage) Reconcile(ctx context.Context, key string) error {
	if err := c.report(ctx, key); err != nil {
		return err
	}
	return c.protection.Reconcile(ctx, key)
}

// report updates the condition Unused of a claim.
func (c *claimUsage) report(ctx context.Context, key string) error {
	if _, err := c.View.Fresh(ctx); err != nil {
		return err
	}
	namespace, name, _ := strings.Cut(key, "/")
	e := c.View.Collection(c.prefix).Snapshot().Get(namespace, name)
	if e == nil || !reportsUsage(e) {
		return nil
	}
	condition := usedCondition
	if !c.users.use(e) {
		condition = unusedCondition
	}
	if unused(e) == condition.Status {
		return nil
	}
	call, err := c.Verbs.Call(c.resource, namespace, name, control.ControllerUser(c.as))
	if err != nil {
		return err
	}
	_, err = c.Verbs.Update(ctx, call.Under("status"), metav1.UpdateOptions{FieldManager: "kube-controller-manager"},
		func(claim object.Object) (object.Object, error) {
			meta, _ := claim["metadata"].(object.Object)
			status, _ := claim["status"].(object.Object)
			if meta["uid"] == e.UID && status["phase"] == string(corev1.ClaimBound) {
				setCondition(status, condition, c.Now())
			}
			return claim, nil
		})
	return control.IgnoreNotFound(err)
}

// The conditions, with Kubernetes' texts.
var (
	usedCondition = corev1.PersistentVolumeClaimCondition{
		Type: corev1.PersistentVolumeClaimUnused, Status: corev1.ConditionFalse,
		Reason: "PodUsingPVC", Message: "A pod is currently referencing this PVC",
	}
	unusedCondition = corev1.PersistentVolumeClaimCondition{
		Type: corev1.PersistentVolumeClaimUnused, Status: corev1.ConditionTrue,
		Reason: "NoPodsUsingPVC", Message: "No pods are currently referencing this PVC",
	}
)

// setCondition replaces the condition of its type in a status, or appends it.
func setCondition(status object.Object, c corev1.PersistentVolumeClaimCondition, now time.Time) {
	condition := object.Object{
		"type": string(c.Type), "status": string(c.Status), "reason": c.Reason, "message": c.Message,
		"lastProbeTime": nil, "lastTransitionTime": now.UTC().Format(time.RFC3339),
	}
	list, _ := status["conditions"].([]any)
	at := slices.IndexFunc(list, func(v any) bool {
		old, _ := v.(object.Object)
		return old["type"] == string(c.Type)
	})
	if list = slices.Clone(list); at >= 0 {
		list[at] = condition
	} else {
		list = append(list, condition)
	}
	status["conditions"] = list
}

// reportsUsage reports whether a claim has the condition. Other phases belong to the binder.
func reportsUsage(claim *watchcache.Entry) bool {
	return !claim.Deleting && field(claim, "status.phase") == string(corev1.ClaimBound)
}

// unused returns the status of a claim's condition Unused, "" without one.
func unused(claim *watchcache.Entry) corev1.ConditionStatus {
	var in struct {
		Status struct {
			Conditions []corev1.PersistentVolumeClaimCondition
		}
	}
	if json.Unmarshal(claim.JSON(), &in) != nil {
		return ""
	}
	for _, c := range in.Status.Conditions {
		if c.Type == corev1.PersistentVolumeClaimUnused {
			return c.Status
		}
	}
	return ""
}
