package services

import (
	"context"
	"net/netip"
	"slices"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/feature/services/address"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// serviceRanges sets the condition Ready of ServiceCIDRs, and delays the deletion of one while services have addresses
// in it that no other ServiceCIDR contains. It is kube-controller-manager's service-cidr-controller.
type serviceRanges struct {
	*part.Host
}

var rangesResource = ref.ServiceCIDRs.GroupResource()

const (
	// rangeController is kube's name for the loop.
	rangeController = "service-cidr-controller"
	rangeFinalizer  = "networking.k8s.io/service-cidr-finalizer"
	// rangeGrace is how long a ServiceCIDR stays after its deletion has begun: until other replicas have noticed the
	// deletion, they may still assign addresses.
	rangeGrace = 10 * time.Second
)

func (s *serviceRanges) Observe(ev *watchcache.Event, need func(string)) {
	switch ev.Collection.Prefix() {
	case ref.ServiceCIDRs.Prefix:
		if ev.Type != watchcache.Deleted {
			need(ev.Entry.Name)
		}
		if ev.Type == watchcache.Modified {
			return
		}
	case ref.IPAddresses.Prefix:
		if ev.Type == watchcache.Modified || ev.Entry.Labels[networkingv1.LabelManagedBy] != address.ManagedBy {
			return
		}
	default:
		return
	}
	// Any change may affect a pending deletion.
	s.View.Collection(ref.ServiceCIDRs.Prefix).Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
		if e.Deleting {
			need(e.Name)
		}
		return true
	})
}

func (s *serviceRanges) Reconcile(ctx context.Context, name string) error {
	e := s.View.Collection(ref.ServiceCIDRs.Prefix).Snapshot().Get("", name)
	if e == nil {
		return nil
	}
	obj, condition, err := readRange(e)
	if err != nil {
		return err
	}
	if e.Deleting {
		return s.release(ctx, obj, condition)
	}
	if !slices.Contains(obj.Finalizers, rangeFinalizer) {
		if err := s.setFinalizers(ctx, name,
			func(list []any) []any { return append(list, rangeFinalizer) }); err != nil {
			return err
		}
	}
	const message = "Kubernetes Service CIDR is ready"
	if condition != nil && condition.Status == metav1.ConditionTrue &&
		condition.Reason == "" && condition.Message == message {
		return nil
	}
	return s.setReady(ctx, name, object.Object{"status": "True", "reason": "", "message": message})
}

// setReady applies the condition Ready of a ServiceCIDR; a missing one is no error.
func (s *serviceRanges) setReady(ctx context.Context, name string, condition object.Object) error {
	call, err := s.Verbs.Call(rangesResource, "", name, control.ControllerUser(rangeController))
	if err != nil {
		return err
	}
	return control.IgnoreNotFound(rangeCondition(ctx, s.Verbs, call, rangeController, condition))
}

// release removes the finalizer of a ServiceCIDR that is being deleted, once no service would be left with an address
// outside every range.
func (s *serviceRanges) release(ctx context.Context, obj *networkingv1.ServiceCIDR, condition *metav1.Condition) error {
	if !slices.Contains(obj.Finalizers, rangeFinalizer) {
		return nil
	}
	if s.inUse(obj) {
		const message = "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR"
		if condition != nil && condition.Status == metav1.ConditionFalse &&
			condition.Reason == networkingv1.ServiceCIDRReasonTerminating && condition.Message == message {
			return nil
		}
		return s.setReady(ctx, obj.Name,
			object.Object{"status": "False", "reason": networkingv1.ServiceCIDRReasonTerminating, "message": message})
	}
	if left := rangeGrace - s.Now().Sub(obj.DeletionTimestamp.Time); left > 0 {
		return control.Again(left)
	}
	return s.setFinalizers(ctx, obj.Name, func(list []any) []any {
		return slices.DeleteFunc(list, func(f any) bool { return f == rangeFinalizer })
	})
}

// inUse reports whether the deletion of a ServiceCIDR would leave services with addresses outside every range.
func (s *serviceRanges) inUse(obj *networkingv1.ServiceCIDR) bool {
	own, others := networks(obj.Spec.CIDRs), []netip.Prefix{}
	s.View.Collection(ref.ServiceCIDRs.Prefix).Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
		if other, _, err := readRange(e); err == nil && e.Name != obj.Name {
			others = append(others, networks(other.Spec.CIDRs)...)
		}
		return true
	})
	in := func(list []netip.Prefix, ip netip.Addr) bool {
		return slices.ContainsFunc(list, func(p netip.Prefix) bool { return address.Contains(p, ip) })
	}
	found := false
	s.View.Collection(ref.IPAddresses.Prefix).Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
		ip, err := netip.ParseAddr(e.Name)
		found = err == nil && e.Labels[networkingv1.LabelManagedBy] == address.ManagedBy && in(own, ip) &&
			!in(others, ip)
		return !found
	})
	return found
}

func networks(cidrs []string) (out []netip.Prefix) {
	for _, text := range cidrs {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			out = append(out, prefix)
		}
	}
	return out
}

func (s *serviceRanges) setFinalizers(ctx context.Context, name string, change func([]any) []any) error {
	call, err := s.Verbs.Call(rangesResource, "", name, control.ControllerUser(rangeController))
	if err != nil {
		return err
	}
	_, err = s.Verbs.Update(ctx, call, metav1.UpdateOptions{FieldManager: "kube-controller-manager"},
		func(obj object.Object) (object.Object, error) {
			meta, _ := obj["metadata"].(object.Object)
			list, _ := meta["finalizers"].([]any)
			if list = change(slices.Clone(list)); len(list) == 0 {
				delete(meta, "finalizers")
			} else {
				meta["finalizers"] = list
			}
			return obj, nil
		})
	return control.IgnoreNotFound(err)
}
