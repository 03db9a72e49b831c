package services

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/feature/services/address"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
	"github.com/bowsprit/bowsprit/internal/verb/decode"
)

// bootstrapRange creates the ServiceCIDR of the flag, adds a second network if the flag has got one, and sets its
// condition Ready. A ServiceCIDR that differs from the flag stays.
func bootstrapRange(ctx context.Context, r *verb.Verbs, ranges []netip.Prefix) error {
	if _, err := r.View().Fresh(ctx); err != nil { // another replica may have created it
		return err
	}
	cidrs := cidrsOf(ranges)
	call, err := r.Call(rangesResource, "", address.DefaultRange, verb.ServerUser())
	if err != nil {
		return err
	}
	entry := r.View().Collection(ref.ServiceCIDRs.Prefix).Snapshot().Get("", address.DefaultRange)
	if entry == nil {
		obj, err := r.New(call,
			object.Object{
				"metadata": object.Object{"name": address.DefaultRange}, "spec": object.Object{"cidrs": values(cidrs)},
			})
		if err != nil {
			return err
		}
		if _, err := r.Create(ctx, call, obj, metav1.CreateOptions{FieldManager: "kube-apiserver"}); err != nil {
			return control.IgnoreExists(err)
		}
		return defaultRangeReady(ctx, r)
	}
	stored, condition, err := readRange(entry)
	if err != nil || entry.Deleting {
		return err
	}
	switch second, ready := owed(stored, condition, cidrs); {
	case second:
		_, err = r.Update(ctx, call, metav1.UpdateOptions{FieldManager: "kube-apiserver"},
			func(obj object.Object) (object.Object, error) {
				obj["spec"] = object.Object{"cidrs": values(cidrs)}
				return obj, nil
			})
		return err
	case ready:
		return defaultRangeReady(ctx, r)
	case !slices.Equal(stored.Spec.CIDRs, cidrs):
		r.Log().Warn("the ServiceCIDR kubernetes differs from --service-cluster-ip-range; it stays unchanged",
			"ServiceCIDR", stored.Spec.CIDRs, "flag", cidrs)
	}
	return nil
}

// keepRange replaces the default range by the stored one, if that has one network of the same family.
func (s *services) keepRange() {
	entry := s.View.Collection(ref.ServiceCIDRs.Prefix).Snapshot().Get("", address.DefaultRange)
	if !s.keeps || entry == nil {
		return
	}
	stored, _, err := readRange(entry)
	if err != nil || len(stored.Spec.CIDRs) != 1 || len(s.ranges) != 1 {
		return
	}
	if network, err := netip.ParsePrefix(stored.Spec.CIDRs[0]); err == nil &&
		network.Addr().Is4() == s.ranges[0].Addr().Is4() {
		s.ranges = []netip.Prefix{network.Masked()}
	}
}

func cidrsOf(ranges []netip.Prefix) []string {
	out := make([]string, len(ranges))
	for i, prefix := range ranges {
		out[i] = prefix.String()
	}
	return out
}

func values(list []string) []any {
	out := make([]any, len(list))
	for i, v := range list {
		out[i] = v
	}
	return out
}

// rangeSettled reports whether bootstrapRange would write nothing, by the current view.
func rangeSettled(r *verb.Verbs, ranges []netip.Prefix) bool {
	entry := r.View().Collection(ref.ServiceCIDRs.Prefix).Snapshot().Get("", address.DefaultRange)
	if entry == nil {
		return false
	}
	stored, condition, err := readRange(entry)
	if err != nil || entry.Deleting {
		return true // it is left alone
	}
	second, ready := owed(stored, condition, cidrsOf(ranges))
	return !second && !ready
}

// owed returns the missing parts of a stored ServiceCIDR: the second network of the flag, and the condition Ready.
func owed(stored *networkingv1.ServiceCIDR, condition *metav1.Condition, cidrs []string) (second, ready bool) {
	return len(cidrs) == 2 && slices.Equal(stored.Spec.CIDRs, cidrs[:1]), condition == nil &&
		slices.Equal(stored.Spec.CIDRs, cidrs)
}

// settleRange reconciles the ServiceCIDR of the flag as the controller of ServiceCIDRs would.
func (s *services) settleRange(ctx context.Context) error {
	if _, err := s.View.Fresh(ctx); err != nil {
		return err
	}
	err := (&serviceRanges{s.Host}).Reconcile(ctx, address.DefaultRange)
	if wait := control.Again(0); errors.As(err, &wait) {
		return nil
	}
	return err
}

// readRange returns a stored ServiceCIDR and its condition, nil if it has none.
func readRange(e *watchcache.Entry) (*networkingv1.ServiceCIDR, *metav1.Condition, error) {
	var obj networkingv1.ServiceCIDR
	if err := json.Unmarshal(e.JSON(), &obj); err != nil {
		return nil, nil, fmt.Errorf("ServiceCIDR %s: %w", e.Name, err)
	}
	for i := range obj.Status.Conditions {
		if c := &obj.Status.Conditions[i]; c.Type == networkingv1.ServiceCIDRConditionReady {
			return &obj, c, nil
		}
	}
	return &obj, nil, nil
}

func defaultRangeReady(ctx context.Context, r *verb.Verbs) error {
	call, err := r.Call(rangesResource, "", address.DefaultRange, verb.ServerUser())
	if err != nil {
		return err
	}
	return rangeCondition(ctx, r, call, "kubernetes-service-cidr-controller",
		object.Object{"status": "True", "message": "Kubernetes default Service CIDR is ready"})
}

// rangeCondition applies the condition Ready of the call's ServiceCIDR, as the manager's own.
func rangeCondition(
	ctx context.Context, r *verb.Verbs, call *verb.Call, manager string, condition object.Object,
) error {
	call = call.Under("status")
	condition["type"], condition["lastTransitionTime"] = networkingv1.ServiceCIDRConditionReady,
		r.Now().UTC().Format(time.RFC3339)
	body, err := json.Marshal(object.Object{
		"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": object.Object{"name": call.Name},
		"status": object.Object{"conditions": []any{condition}},
	})
	if err != nil {
		return err
	}
	force := true
	_, err = r.Apply(ctx, call, decode.Patch{Type: types.ApplyYAMLPatchType, Data: body},
		metav1.PatchOptions{FieldManager: manager, Force: &force})
	return err
}
