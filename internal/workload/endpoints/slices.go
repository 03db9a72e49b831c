package endpoints

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// endpointSlices keeps the EndpointSlices of services true.
type endpointSlices struct {
	services
	// hinted has the keys of services that have hints by their annotation.
	hinted sync.Map
}

func (s *endpointSlices) Observe(ev *watchcache.Event, need func(string)) {
	s.observe(ev, need)
	switch {
	case cluster.EndpointSlices.Is(ev):
		if ev.Entry.Labels[discoveryv1.LabelManagedBy] == managedBy {
			need(ev.Entry.Namespace + "/" + ev.Entry.Labels[discoveryv1.LabelServiceName])
		}
	case cluster.Nodes.Is(ev):
		changes := sync.OnceValue(func() bool { return s.changesShares(ev) }) // if there are such services
		s.hinted.Range(func(key, _ any) bool {
			if changes() {
				need(key.(string))
			}
			return changes()
		})
	}
}

// changesShares reports whether an event about a node may change the CPU shares of zones.
func (s *endpointSlices) changesShares(ev *watchcache.Event) bool {
	if ev.Type == watchcache.Deleted || ev.Prev == nil {
		return true
	}
	now, was := cluster.Nodes.Decode(s.Cluster, ev.Entry), cluster.Nodes.Decode(s.Cluster, ev.Prev)
	return now == nil || was == nil || nodeIsReady(now) != nodeIsReady(was) ||
		now.Labels[corev1.LabelTopologyZone] != was.Labels[corev1.LabelTopologyZone]
}

func (s *endpointSlices) Reconcile(ctx context.Context, key string) error {
	svc, pods := s.read(key)
	if svc == nil {
		s.hinted.Delete(key)
		return nil
	}
	existing := cluster.EndpointSlices.Selected(s.index, svc.Namespace, labels.SelectorFromSet(labels.Set{
		discoveryv1.LabelServiceName: svc.Name, discoveryv1.LabelManagedBy: managedBy,
	}))
	var alive []*discoveryv1.EndpointSlice
	for _, slice := range existing {
		if slice.DeletionTimestamp == nil {
			alive = append(alive, slice)
		}
	}
	zones, missing := s.zones(svc, pods)
	h := s.hints(key, svc)
	err := s.apply(ctx, svc, plan(svc, pods, zones, alive, h))
	for _, r := range h.reports {
		about := cluster.Services.Ref(svc)
		s.Report(ctx, cluster.Event{About: about, Type: r.kind, Reason: r.reason, Message: r.message})
	}
	if h.on {
		s.hinted.Store(key, true)
	} else {
		s.hinted.Delete(key)
	}
	if err == nil {
		err = missing
	}
	var conflict *apierrors.StatusError
	if err != nil && !(errors.As(err, &conflict) && apierrors.IsConflict(err)) {
		s.Warning(ctx, cluster.Services.Ref(svc), "FailedToUpdateEndpointSlices",
			"Error updating Endpoint Slices for Service %s/%s: %v", svc.Namespace, svc.Name, err)
	}
	return cluster.Soon(err)
}

// hints returns the inputs for the hints of a service.
func (s *endpointSlices) hints(key string, svc *corev1.Service) *hints {
	_, on := s.hinted.Load(key)
	h := &hints{on: on}
	if byTopology(svc) {
		h.shares = shares(cluster.Nodes.ReadAll(s.index, ""))
	}
	return h
}

// zones returns the zones of the pods' nodes, by node name; the error lists pods on missing nodes.
func (s *endpointSlices) zones(svc *corev1.Service, pods []*corev1.Pod) (map[string]string, error) {
	out := map[string]string{}
	var missing []error
	for _, p := range pods {
		if _, known := out[p.Spec.NodeName]; known || !hasPlace(p) || cluster.IsLocal(p) {
			continue
		}
		if node := cluster.Nodes.Read(s.index, "", p.Spec.NodeName); node != nil {
			out[p.Spec.NodeName] = node.Labels[corev1.LabelTopologyZone]
		} else if !svc.Spec.PublishNotReadyAddresses {
			missing = append(missing, fmt.Errorf("skipping Pod %s for Service %s/%s: Node %s Not Found", p.Name,
				svc.Namespace, svc.Name, p.Spec.NodeName))
		}
	}
	return out, errors.Join(missing...)
}

// apply creates, updates and deletes slices.
func (s *endpointSlices) apply(ctx context.Context, svc *corev1.Service, c changes) error {
	for _, slice := range c.create {
		if svc.DeletionTimestamp != nil {
			break
		}
		if _, err := cluster.EndpointSlices.Create(ctx, s.Cluster, slice); err != nil {
			if cluster.NamespaceEnds(err) {
				return nil
			}
			return fmt.Errorf("failed to create EndpointSlice for Service %s/%s: %w", svc.Namespace, svc.Name, err)
		}
	}
	for _, slice := range c.update {
		if _, err := cluster.EndpointSlices.Replace(ctx, s.Cluster, slice); err != nil {
			return fmt.Errorf("failed to update %s EndpointSlice for Service %s/%s: %w", slice.Name, svc.Namespace,
				svc.Name, err)
		}
	}
	for _, slice := range c.remove {
		err := cluster.EndpointSlices.Delete(ctx, s.Cluster, slice, metav1.DeleteOptions{})
		if err := control.IgnoreNotFound(err); err != nil {
			return fmt.Errorf("failed to delete %s EndpointSlice for Service %s/%s: %w", slice.Name, svc.Namespace,
				svc.Name, err)
		}
	}
	return nil
}
