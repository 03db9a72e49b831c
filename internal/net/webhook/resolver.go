package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/net/egress"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Resolver finds where services listen, from the objects in the view: Services, EndpointSlices and Endpoints.
type Resolver struct {
	Catalog *catalog.Catalog
	View    *watchcache.View
}

// Resolve returns an address, "host:port", of a port of a service, one of Addresses at random.
func (r Resolver) Resolve(ctx context.Context, namespace, name string, port int32) (string, error) {
	all, err := r.Addresses(ctx, namespace, name, port)
	if err != nil {
		return "", err
	}
	return all[rand.IntN(len(all))], nil
}

// Addresses returns the addresses, "host:port", of a port of a service, at least one:
//
//   - of a Service of type ExternalName its external name with the requested port;
//   - else the ready addresses of its EndpointSlices or, if it has none, of its Endpoints, limited to the first
//     of the service's ipFamilies, if set;
//   - else its cluster IP, which works on a machine that routes it.
//
// If some of them belong to local programs, the others are left out (egress.PreferPrograms).
//
// Errors are *apierrors.StatusError with the texts of kube-aggregator's resolver.
func (r Resolver) Addresses(ctx context.Context, namespace, name string, port int32) ([]string, error) {
	svc, err := r.service(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	if svc.Spec.Type == corev1.ServiceTypeExternalName {
		return []string{join(svc.Spec.ExternalName, port)}, nil
	}
	i := slices.IndexFunc(svc.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == port })
	if i < 0 {
		return nil, noPort(port, name)
	}
	addresses, err := r.addresses(ctx, svc, svc.Spec.Ports[i].Name)
	if err != nil || len(addresses) > 0 {
		return egress.PreferPrograms(addresses), err
	}
	if ip := svc.Spec.ClusterIP; ip != "" && ip != corev1.ClusterIPNone {
		return []string{join(ip, port)}, nil
	}
	return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("no endpoints available for service %q", name))
}

// ClusterAddress returns the cluster IP of a service with its port, or its external name if it has one.
func (r Resolver) ClusterAddress(ctx context.Context, namespace, name string, port int32) (string, error) {
	svc, err := r.service(ctx, namespace, name)
	switch {
	case err != nil:
		return "", err
	case svc.Spec.Type == corev1.ServiceTypeExternalName:
		return join(svc.Spec.ExternalName, port), nil
	case svc.Spec.ClusterIP == corev1.ClusterIPNone:
		return "", fmt.Errorf("cannot route to service with ClusterIP %q", svc.Spec.ClusterIP)
	case !slices.ContainsFunc(svc.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == port }):
		return "", noPort(port, name)
	}
	return join(svc.Spec.ClusterIP, port), nil
}

func noPort(port int32, name string) error {
	return apierrors.NewServiceUnavailable(fmt.Sprintf("no service port %d found for service %q", port, name))
}

// service reads a service that has addresses.
func (r Resolver) service(ctx context.Context, namespace, name string) (*corev1.Service, error) {
	svc := &corev1.Service{}
	found, err := r.get(ctx, "services", namespace, name, svc)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "service"}, name)
	}
	switch svc.Spec.Type {
	case corev1.ServiceTypeExternalName, corev1.ServiceTypeClusterIP, corev1.ServiceTypeLoadBalancer,
		corev1.ServiceTypeNodePort, "":
		return svc, nil
	}
	return nil, fmt.Errorf("unsupported service type %q", svc.Spec.Type)
}

// addresses returns where a service's named port is ready.
func (r Resolver) addresses(ctx context.Context, svc *corev1.Service, portName string) ([]string, error) {
	byFamily := map[discoveryv1.AddressType][]string{}
	var broken error
	r.scan("discovery.k8s.io", "endpointslices", svc.Namespace, func(e *watchcache.Entry) bool {
		if e.Labels[discoveryv1.LabelServiceName] != svc.Name {
			return true
		}
		var slice discoveryv1.EndpointSlice
		if broken = json.Unmarshal(e.JSON(), &slice); broken != nil {
			return false
		}
		byFamily[slice.AddressType] = append(byFamily[slice.AddressType], readyInSlice(&slice, portName)...)
		return true
	})
	if broken != nil {
		return nil, fmt.Errorf("endpoint slices of service %q: %w", svc.Name, broken)
	}
	if len(svc.Spec.IPFamilies) > 0 {
		if first := byFamily[discoveryv1.AddressType(svc.Spec.IPFamilies[0])]; len(first) > 0 {
			return first, nil
		}
	}
	var all []string
	for _, found := range byFamily {
		all = append(all, found...)
	}
	if len(all) > 0 {
		return all, nil
	}
	//lint:ignore SA1019 manually written endpoints are often Endpoints
	old := &corev1.Endpoints{}
	if _, err := r.get(ctx, "endpoints", svc.Namespace, svc.Name, old); err != nil {
		return nil, err
	}
	return readyInEndpoints(old, portName), nil
}

func readyInSlice(slice *discoveryv1.EndpointSlice, portName string) (found []string) {
	for _, p := range slice.Ports {
		if p.Port == nil || p.Name != nil && *p.Name != portName || p.Name == nil && portName != "" {
			continue
		}
		for _, e := range slice.Endpoints {
			if len(e.Addresses) > 0 && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
				found = append(found, join(e.Addresses[0], *p.Port))
			}
		}
	}
	return found
}

//lint:ignore SA1019 manually written endpoints are often Endpoints
func readyInEndpoints(endpoints *corev1.Endpoints, portName string) (found []string) {
	for _, subset := range endpoints.Subsets {
		for _, p := range subset.Ports {
			if p.Name != portName {
				continue
			}
			for _, a := range subset.Addresses {
				found = append(found, join(a.IP, p.Port))
			}
		}
	}
	return found
}

// get reads an object of a kind of the core group. An object that is missing in the view may be new on another replica,
// so get then waits for a current view.
func (r Resolver) get(ctx context.Context, resource, namespace, name string, into any) (
	found bool, err error,
) {
	kind := r.Catalog.Snapshot().Resource("", resource)
	if kind == nil {
		return false, nil
	}
	collection := r.View.Collection(kind.Prefix)
	e := collection.Snapshot().Get(namespace, name)
	if e == nil {
		if _, err := r.View.Fresh(ctx); err != nil {
			return false, err
		}
		if e = collection.Snapshot().Get(namespace, name); e == nil {
			return false, nil
		}
	}
	if err := json.Unmarshal(e.JSON(), into); err != nil {
		return false, fmt.Errorf("%s %s/%s: %w", resource, namespace, name, err)
	}
	return true, nil
}

func (r Resolver) scan(group, resource, namespace string, f func(*watchcache.Entry) bool) {
	if kind := r.Catalog.Snapshot().Resource(group, resource); kind != nil {
		r.View.Collection(kind.Prefix).Snapshot().Scan(namespace, "", f)
	}
}

func join(host string, port int32) string { return net.JoinHostPort(host, strconv.Itoa(int(port))) }
