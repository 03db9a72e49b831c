package localpod

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// serverName identifies a server: by the name of its Lease, which the servers of one host share, and its port.
func serverName(lease string, port int) string { return lease + ":" + strconv.Itoa(port) }

// stored returns the local pods of all servers.
func (p *Pods) stored() (all []*watchcache.Entry) {
	p.cluster.View.Collection(cluster.Pods.Prefix).Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
		if _, marked := e.Labels[label]; marked && e.Unreadable() == nil {
			if by, _ := e.Field("spec.schedulerName"); by == cluster.LocalScheduler {
				all = append(all, e)
			}
		}
		return true
	})
	return all
}

// clean deletes the pods that this server has left behind, and the pods of servers without a Lease.
func (p *Pods) clean(ctx context.Context) error {
	var failed []error
	for _, e := range p.stored() {
		pod := cluster.Pods.Decode(p.cluster, e)
		if pod == nil || !p.Is(pod) || p.routed(e) {
			continue
		}
		server := pod.Annotations[serverAnnotation]
		if server != p.server && p.runs(server) {
			continue
		}
		now := int64(0)
		err := cluster.Pods.Delete(ctx, p.cluster, pod, metav1.DeleteOptions{GracePeriodSeconds: &now})
		failed = append(failed, control.IgnoreNotFound(err))
	}
	return errors.Join(failed...)
}

// routed reports whether the pod of an entry has a route, or is about to have one.
func (p *Pods) routed(e *watchcache.Entry) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key := range p.routes {
		if key.Namespace == e.Namespace && key.Name == e.Name {
			return true
		}
	}
	return false
}

// leaseMost is the age from which the Lease of a server means that the server has ended: servers renew it every ten
// seconds.
const leaseMost = time.Minute

// runs reports whether a server renews its Lease.
func (p *Pods) runs(server string) bool {
	name, _, _ := strings.Cut(server, ":")
	lease := cluster.Leases.Get(p.cluster, metav1.NamespaceSystem, name)
	return lease != nil && lease.Spec.RenewTime != nil && p.cluster.Since(lease.Spec.RenewTime.Time) < leaseMost
}
