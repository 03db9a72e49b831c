// Package localpod lets a program on a user's machine be the pod of a workload, with --allow-local-pods.
//
// A user who may create the subresource localpod of a Deployment or StatefulSet upgrades the request to a connection
// (connect.go, package callback). While it lasts, a Pod with the labels of the workload's template exists (object.go),
// so that the controllers of endpoints add it to the Services that select it. Its address belongs to no network
// (address.go): the server's connections to it go to the program, through the user's connection (dial.go). The user
// reports the state of the program, which becomes the status of the pod (report.go). When the connection ends, or the
// pod or the workload is deleted, the route ends and the pod is deleted; pods of servers that were killed are removed
// later (leftover.go).
//
// Only the connection makes a route. Pods, annotations and endpoints that clients write lead nowhere. Pods is safe for
// concurrent use. Each route runs in the goroutine of its request, with one goroutine that reads the program's state.
package localpod

import (
	"context"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/feature/kubelet"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/rest"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// Flag allows local pods.
const Flag = "--allow-local-pods"

// Subresource is the subresource of a workload that a program connects to.
const Subresource = "localpod"

// workloads are the kinds with the subresource. DaemonSets would adopt the pod.
var workloads = []ref.Names{ref.Deployments, ref.StatefulSets}

// Pods are the local pods of a server. Use New. It is ready once its Part has started.
type Pods struct {
	cluster *cluster.Cluster
	server  string // identifies this server in annotations

	mu     sync.Mutex
	routes map[types.NamespacedName]*route // by pod
}

var _ kubelet.Local = (*Pods)(nil)

// New returns Pods.
func New() *Pods { return &Pods{routes: map[types.NamespacedName]*route{}} }

// Part connects the pods to the server. lease is the name of the server's Lease.
func Part(p *Pods, lease string) part.Part {
	return part.Part{
		Name:      "local pods",
		Resources: resources,
		Handlers: func(h *part.Host) part.Handlers {
			p.cluster = cluster.Controller(h, "local-pods")
			p.cluster.Manager = "bowsprit"
			p.server = serverName(lease, h.Port)
			h.Egress.Divert(p.divert)
			h.View.Subscribe(p.observe)
			connections := map[string]rest.Connection{}
			for _, w := range workloads {
				connections[w.Resource+"."+w.Group+"/"+Subresource] = rest.Connection{Serve: p.serve, Options: options}
			}
			return part.Handlers{Connections: connections}
		},
		Start: func(ctx context.Context, _ *part.Host) error {
			if err := p.clean(ctx); err != nil && !control.Refused(ctx, err) {
				return err
			}
			return nil
		},
		Keep: func(ctx context.Context, _ *part.Host) error { return p.clean(ctx) },
	}
}

// resources adds the subresource to the workloads.
func resources(_ *part.Host, all []*catalog.Resource) []*catalog.Resource {
	for _, r := range all {
		if !slices.ContainsFunc(workloads, func(w ref.Names) bool {
			return w.Group == r.Group && w.Resource == r.Plural
		}) {
			continue
		}
		sub := rule.OtherSubresource(Subresource, "", ref.Pods.Version, ref.Pods.Kind, "create")
		sub.LongRunning = true
		r.Subresources = append(r.Subresources, sub)
		slices.SortFunc(r.Subresources, func(a, b catalog.Subresource) int { return strings.Compare(a.Name, b.Name) })
	}
	return all
}

// Is implements kubelet.Local.
func (*Pods) Is(pod *corev1.Pod) bool { return cluster.IsLocal(pod) }

// observe ends the routes of deleted pods and workloads.
func (p *Pods) observe(events []*watchcache.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.routes) == 0 {
		return
	}
	for _, ev := range events {
		if ev.Type != watchcache.Deleted {
			continue
		}
		key := types.NamespacedName{Namespace: ev.Entry.Namespace, Name: ev.Entry.Name}
		if cluster.Pods.Is(ev) {
			uid, _ := ev.Entry.Field("metadata.uid")
			if r := p.routes[key]; r != nil && r.pod != nil && string(r.pod.UID) == uid {
				r.end("the pod was deleted")
			}
			continue
		}
		for _, r := range p.routes {
			if r.workload == key && r.prefix == ev.Collection.Prefix() {
				r.end("the workload was deleted")
			}
		}
	}
}
