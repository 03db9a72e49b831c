// Package endpoints implements the controllers of EndpointSlices and Endpoints for a server that simulates workloads,
// and the controller that mirrors clients' Endpoints to EndpointSlices.
//
// plan.go and mirror_plan.go are pure: they compute the slices of a service, and of Endpoints. slices.go, endpoints.go
// and mirror.go read and write.
package endpoints

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// Part brings the controllers.
func Part(shared *cluster.Shared) part.Part {
	return part.Part{Name: "controllers of endpoints", Loops: []part.Loop{
		cluster.Loop("endpointslice-controller", workers, func(c *cluster.Cluster) control.Reconciler {
			c.Component = "endpoint-slice-controller"
			return &endpointSlices{services: services{c, shared.Of(c.Host)}}
		}),
		cluster.Loop("endpoints-controller", workers, func(c *cluster.Cluster) control.Reconciler {
			c.Component, c.User = "endpoint-controller", control.ControllerUser("endpoint-controller")
			return &coreEndpoints{services{c, shared.Of(c.Host)}}
		}),
		cluster.Loop("endpointslice-mirroring-controller", workers, func(c *cluster.Cluster) control.Reconciler {
			c.Component = "endpoint-slice-mirroring-controller"
			c.User = control.ControllerUser("endpointslicemirroring-controller")
			return &mirrors{endpointSlices{services: services{c, shared.Of(c.Host)}}}
		}),
	}}
}

// workers is how many services are worked on at the same time.
const workers = 5

// services names the services that an event concerns: their keys are "namespace/name".
type services struct {
	*cluster.Cluster
	index *cluster.Index
}

// observe requests the service of an event, or the services that select a pod before or after it.
func (s *services) observe(ev *watchcache.Event, need func(string)) {
	switch {
	case cluster.Services.Is(ev):
		need(ev.Entry.Key())
	case cluster.Pods.Is(ev):
		for _, svc := range cluster.Services.ReadAll(s.index, ev.Entry.Namespace) {
			if len(svc.Spec.Selector) == 0 {
				continue
			}
			selector := labels.SelectorFromSet(svc.Spec.Selector)
			if selector.Matches(labels.Set(ev.Entry.Labels)) ||
				ev.Prev != nil && selector.Matches(labels.Set(ev.Prev.Labels)) {
				need(svc.Namespace + "/" + svc.Name)
			}
		}
	}
}

// read returns a service with managed endpoints and its selected pods; nil if its endpoints are not managed.
func (s *services) read(key string) (*corev1.Service, []*corev1.Pod) {
	namespace, name, _ := strings.Cut(key, "/")
	svc := cluster.Services.Read(s.index, namespace, name)
	if svc == nil || svc.Spec.Type == corev1.ServiceTypeExternalName || len(svc.Spec.Selector) == 0 {
		return nil, nil
	}
	return svc, cluster.Pods.Selected(s.index, namespace, labels.SelectorFromSet(svc.Spec.Selector))
}
