package endpoints

//lint:file-ignore SA1019 Endpoints are made and served as ever

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/dump"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
	"github.com/bowsprit/bowsprit/internal/workload/replica"
)

// coreEndpoints keeps the Endpoints of services true, as older clients read them.
type coreEndpoints struct{ services }

const (
	// managedEndpoints is the label of the Endpoints that this controller manages.
	managedEndpoints = "endpoints.kubernetes.io/managed-by"
	// mostAddresses is the largest number of addresses in Endpoints.
	mostAddresses = 1000
)

func (s *coreEndpoints) Observe(ev *watchcache.Event, need func(string)) {
	s.observe(ev, need)
	// Changes by others stay until another change, as with Kubernetes' controller.
	if cluster.Endpoints.Is(ev) && ev.Type == watchcache.Deleted {
		need(ev.Entry.Key())
	}
}

func (s *coreEndpoints) Reconcile(ctx context.Context, key string) error {
	namespace, name, _ := strings.Cut(key, "/")
	svc, pods := s.read(key)
	old := cluster.Endpoints.Read(s.index, namespace, name)
	if svc == nil {
		// The Endpoints of a service without a selector belong to its owner; unmanaged ones are not deleted with it.
		if old == nil || old.Labels[managedEndpoints] == "" || cluster.Services.Read(s.index, namespace, name) != nil {
			return nil
		}
		return control.IgnoreNotFound(cluster.Endpoints.Delete(ctx, s.Cluster, old, metav1.DeleteOptions{}))
	}
	want := endpointsOf(svc, pods)
	if old == nil {
		_, err := cluster.Endpoints.Create(ctx, s.Cluster, want)
		if cluster.NamespaceEnds(err) || apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	}
	if equality.Semantic.DeepEqual(old.Subsets, want.Subsets) && equality.Semantic.DeepEqual(old.Labels, want.Labels) &&
		old.Annotations[corev1.EndpointsOverCapacity] == want.Annotations[corev1.EndpointsOverCapacity] {
		return nil
	}
	next := old.DeepCopy()
	next.Subsets, next.Labels = want.Subsets, want.Labels
	delete(next.Annotations, corev1.EndpointsOverCapacity)
	for k, v := range want.Annotations {
		if next.Annotations == nil {
			next.Annotations = map[string]string{}
		}
		next.Annotations[k] = v
	}
	_, err := cluster.Endpoints.Replace(ctx, s.Cluster, next)
	return cluster.Soon(err)
}

// endpointsOf returns the Endpoints of a service for its pods: a subset for each list of ports, sorted.
func endpointsOf(svc *corev1.Service, pods []*corev1.Pod) *corev1.Endpoints {
	out := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{
		Namespace: svc.Namespace, Name: svc.Name, Labels: maps.Clone(svc.Labels),
	}}
	if out.Labels == nil {
		out.Labels = map[string]string{}
	}
	delete(out.Labels, corev1.IsHeadlessService)
	if svc.Spec.ClusterIP == "" || svc.Spec.ClusterIP == corev1.ClusterIPNone {
		out.Labels[corev1.IsHeadlessService] = ""
	}
	out.Labels[managedEndpoints] = "endpoint-controller"
	subsets := map[*portList]*corev1.EndpointSubset{}
	left, known := mostAddresses, newPorts(svc)
	for _, p := range pods {
		if !hasPlace(p) || p.DeletionTimestamp != nil && !svc.Spec.PublishNotReadyAddresses {
			continue
		}
		address, ok := addressOf(svc, p)
		if !ok {
			continue
		}
		if left == 0 {
			out.Annotations = map[string]string{corev1.EndpointsOverCapacity: "truncated"}
			break
		}
		ports := known.of(p)
		if len(ports.list) == 0 && len(svc.Spec.Ports) > 0 {
			continue
		}
		left--
		set := subsets[ports]
		if set == nil {
			set = &corev1.EndpointSubset{Ports: corePorts(ports.list)}
			subsets[ports] = set
		}
		if svc.Spec.PublishNotReadyAddresses || replica.IsReady(p) {
			set.Addresses = append(set.Addresses, address)
		} else {
			set.NotReadyAddresses = append(set.NotReadyAddresses, address)
		}
	}
	byKey := map[string]*corev1.EndpointSubset{}
	for _, set := range subsets {
		key, _ := json.Marshal(set.Ports) // it holds only strings and numbers
		byKey[string(key)] = set
	}
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		set := byKey[key]
		byAddress(set.Addresses)
		byAddress(set.NotReadyAddresses)
		out.Subsets = append(out.Subsets, *set)
	}
	return out
}

func byAddress(list []corev1.EndpointAddress) {
	slices.SortFunc(list, func(a, b corev1.EndpointAddress) int {
		return cmp.Or(cmp.Compare(a.IP, b.IP), cmp.Compare(a.TargetRef.UID, b.TargetRef.UID))
	})
}

// addressOf returns a pod as an address of the service's first family.
func addressOf(svc *corev1.Service, p *corev1.Pod) (corev1.EndpointAddress, bool) {
	families := addressTypes(svc)
	if len(families) == 0 {
		return corev1.EndpointAddress{}, false
	}
	e := endpoint(svc, p, "", families[0])
	if len(e.Addresses) == 0 {
		return corev1.EndpointAddress{}, false
	}
	out := corev1.EndpointAddress{IP: e.Addresses[0], NodeName: e.NodeName, TargetRef: e.TargetRef}
	if e.Hostname != nil {
		out.Hostname = *e.Hostname
	}
	return out, true
}

func corePorts(list []discoveryv1.EndpointPort) (out []corev1.EndpointPort) {
	for _, port := range list {
		out = append(out, corev1.EndpointPort{
			Name: *port.Name, Port: *port.Port, Protocol: *port.Protocol, AppProtocol: port.AppProtocol,
		})
	}
	byHash(out)
	return out
}

// byHash sorts ports as Kubernetes does, by their hash, so that clients see them in the same order.
func byHash[T corev1.EndpointPort | discoveryv1.EndpointPort](ports []T) {
	type hashed struct {
		hash []byte
		port T
	}
	list := make([]hashed, len(ports))
	for i, port := range ports {
		h := fnv.New128a()
		_, _ = fmt.Fprintf(h, "%v", dump.ForHash(port))
		list[i] = hashed{h.Sum(nil), port}
	}
	slices.SortFunc(list, func(a, b hashed) int { return bytes.Compare(a.hash, b.hash) })
	for i := range list {
		ports[i] = list[i].port
	}
}
