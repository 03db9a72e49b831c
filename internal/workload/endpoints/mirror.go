package endpoints

//lint:file-ignore SA1019 Endpoints are made and served as ever

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// mirrors maintains an EndpointSlice for each port list of the Endpoints that clients write for services without a
// selector, because most consumers read only slices.
type mirrors struct{ endpointSlices }

const (
	// mirroredBy is the managed-by label value of mirrored slices.
	mirroredBy = "endpointslicemirroring-controller.k8s.io"
	// leaderAnnotation marks Endpoints that are the lock of a leader election.
	leaderAnnotation = "control-plane.alpha.kubernetes.io/leader"
)

func (m *mirrors) Observe(ev *watchcache.Event, need func(string)) {
	switch {
	case cluster.Endpoints.Is(ev), cluster.Services.Is(ev):
		need(ev.Entry.Key())
	case cluster.EndpointSlices.Is(ev):
		for _, e := range []*watchcache.Entry{ev.Entry, ev.Prev} { // its labels may have changed
			if e != nil && e.Labels[discoveryv1.LabelManagedBy] == mirroredBy {
				need(e.Namespace + "/" + e.Labels[discoveryv1.LabelServiceName])
			}
		}
	}
}

func (m *mirrors) Reconcile(ctx context.Context, key string) error {
	namespace, name, _ := strings.Cut(key, "/")
	var alive []*discoveryv1.EndpointSlice
	for _, slice := range cluster.EndpointSlices.Selected(m.index, namespace, labels.SelectorFromSet(labels.Set{
		discoveryv1.LabelServiceName: name, discoveryv1.LabelManagedBy: mirroredBy,
	})) {
		if slice.DeletionTimestamp == nil {
			alive = append(alive, slice)
		}
	}
	of, svc := cluster.Endpoints.Read(m.index, namespace, name), cluster.Services.Read(m.index, namespace, name)
	if of == nil || svc == nil || len(svc.Spec.Selector) > 0 || !isMirrored(of) {
		return m.apply(ctx, svc, changes{remove: alive})
	}
	if n := pairs(of.Subsets); n > pairsMost {
		m.Warning(ctx, cluster.Endpoints.Ref(of), "TooManyAddressesToMirror", "Endpoints with at most %d pairs of an "+
			"address and a port can be mirrored to EndpointSlices. These have %d", pairsMost, n)
		return nil
	}
	p := mirror(of, alive)
	if p.invalid > 0 {
		m.Warning(ctx, cluster.Endpoints.Ref(of), "InvalidIPAddress",
			"Skipped %d invalid IP addresses when mirroring to EndpointSlices", p.invalid)
	}
	if p.skipped > 0 {
		m.Warning(ctx, cluster.Endpoints.Ref(of), "TooManyAddressesToMirror", "A max of %d addresses can be mirrored to "+
			"EndpointSlices per Endpoints subset. %d addresses were skipped", mostAddresses, p.invalid+p.skipped)
	}
	if of.DeletionTimestamp != nil {
		p.create = nil
	}
	return cluster.Soon(m.apply(ctx, svc, p.changes))
}

// isMirrored reports whether slices are made of Endpoints.
func isMirrored(of *corev1.Endpoints) bool {
	_, leads := of.Annotations[leaderAnnotation]
	return of.Labels[discoveryv1.LabelSkipMirror] != "true" && !leads
}
