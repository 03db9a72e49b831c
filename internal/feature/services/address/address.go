// Package address allocates cluster IPs from the ranges of ServiceCIDRs, and node ports.
//
// The verbs (package verb) call it when a service is created, changed or deleted. Services is a verb.Allocator: Assign
// chooses values that are free in the view, and Allocations returns records that are written in the same transaction as
// the service. So the chosen values belong to the service, or the write fails. The record of an address is an
// IPAddress, which clients can read and create too; the record of a port is a key of its own.
//
// Services is safe for concurrent use. The choice among free values is random, as in Kubernetes.
package address

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/bowsprit/bowsprit/internal/kinds/core"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/request/invalid"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// Config configures the allocation.
type Config struct {
	View *watchcache.View
	// Ranges are the networks of the flag, one or two. Their families are the cluster's, and the first is the default
	// family. Addresses come from the ServiceCIDRs of these families.
	Ranges []netip.Prefix
	// NodePorts is the range of node ports.
	NodePorts net.PortRange
	// Random returns a number below n, which is not 0.
	Random func(n uint64) uint64
	// Off returns the disabled Kubernetes features that the rules of services depend on. Optional.
	Off func() []string
}

// Services allocates addresses and ports.
type Services struct{ Config }

var _ verb.Allocator = (*Services)(nil)

// New returns an allocator of addresses and ports.
func New(c Config) *Services { return &Services{c} }

// assignment is the allocation for one service.
type assignment struct {
	*Services
	obj, old object.Object
	name     string
	spec     *corev1.ServiceSpec
	was      *corev1.ServiceSpec // nil for a new service
	dryRun   bool
}

// Assign implements verb.Allocator: it completes the address families, addresses and ports. A dry run gets values like
// Kubernetes', and allocates none.
func (s *Services) Assign(obj, old object.Object, dryRun bool) error {
	a, err := s.begin(obj, old)
	if err != nil {
		return err
	}
	a.dryRun = dryRun
	if err := a.families(); err != nil {
		return err
	}
	if err := a.addresses(); err != nil {
		return err
	}
	if err := a.ports(); err != nil {
		return err
	}
	a.write()
	return nil
}

// Families does the first step of Assign alone.
func (s *Services) Families(obj, old object.Object) error {
	a, err := s.begin(obj, old)
	if err != nil {
		return err
	}
	if err := a.families(); err != nil {
		return err
	}
	a.write()
	return nil
}

func (s *Services) begin(obj, old object.Object) (a *assignment, err error) {
	a = &assignment{Services: s, obj: obj, old: old}
	meta, _ := obj["metadata"].(object.Object)
	a.name, _ = meta["name"].(string)
	if a.spec, err = specOf(obj); err != nil || old == nil {
		return a, err
	}
	if a.was, err = specOf(old); err != nil {
		return nil, err
	}
	s.completeOld(a.was)
	return a, nil
}

// Allocations is verb.Allocator's.
func (s *Services) Allocations(obj object.Object) []verb.Allocation {
	if obj == nil {
		return nil
	}
	spec, err := specOf(obj)
	if err != nil {
		return nil // not a service; it has no addresses
	}
	s.completeOld(spec)
	meta, _ := obj["metadata"].(object.Object)
	owner := object.Object{"resource": "services", "namespace": meta["namespace"], "name": meta["name"]}
	var out []verb.Allocation
	if hasAddresses(spec) {
		for _, text := range spec.ClusterIPs {
			if ip := netutils.ParseIPSloppy(text); ip != nil {
				out = append(out, addressRecord(ip.String(), owner))
			}
		}
	}
	seen := map[int32]bool{0: true}
	for _, port := range nodePorts(spec) {
		if !seen[port] {
			seen[port] = true
			out = append(out,
				verb.Allocation{
					Prefix: PortsPrefix, Name: fmt.Sprint(port),
					Record: object.Object{"spec": object.Object{"parentRef": owner}},
				})
		}
	}
	return out
}

// addressRecord is the IPAddress of an address in canonical form.
func addressRecord(ip string, owner object.Object) verb.Allocation {
	return verb.Allocation{
		Resource: ref.IPAddresses.GroupResource(),
		Name:     ip,
		Record: object.Object{
			"metadata": object.Object{
				"labels": object.Object{
					networkingv1.LabelIPAddressFamily: string(familyOf(ip)), networkingv1.LabelManagedBy: ManagedBy,
				},
			},
			"spec": object.Object{"parentRef": owner},
		},
	}
}

// ManagedBy is the label of IPAddresses that are created and deleted with services.
const ManagedBy = "ipallocator.k8s.io"

// specOf reads a service's spec into its Go type.
func specOf(obj object.Object) (*corev1.ServiceSpec, error) {
	raw, _ := obj["spec"].(object.Object)
	spec := &corev1.ServiceSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, spec); err != nil {
		return nil, fmt.Errorf("spec of a service: %w", err)
	}
	return spec, nil
}

// write writes the assigned values into the object.
func (a *assignment) write() {
	spec, _ := a.obj["spec"].(object.Object)
	if spec == nil {
		spec = object.Object{}
		a.obj["spec"] = spec
	}
	set := func(name string, v any, present bool) {
		if present {
			spec[name] = v
		} else {
			delete(spec, name)
		}
	}
	set("clusterIP", a.spec.ClusterIP, a.spec.ClusterIP != "")
	set("clusterIPs", values(a.spec.ClusterIPs), len(a.spec.ClusterIPs) > 0)
	set("ipFamilies", values(a.spec.IPFamilies), len(a.spec.IPFamilies) > 0)
	set("ipFamilyPolicy", string(policyOf(a.spec)), a.spec.IPFamilyPolicy != nil)
	set("healthCheckNodePort", int64(a.spec.HealthCheckNodePort), a.spec.HealthCheckNodePort != 0)
	ports, _ := spec["ports"].([]any)
	for i := range a.spec.Ports {
		if port, ok := ports[i].(object.Object); ok && a.spec.Ports[i].NodePort != 0 {
			port["nodePort"] = int64(a.spec.Ports[i].NodePort)
		}
	}
}

func values[T ~string](list []T) []any {
	out := make([]any, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}

// invalid returns the Invalid error of the service.
func (a *assignment) invalid(errs ...*field.Error) error {
	return invalid.New(schema.GroupKind{Kind: "Service"}, a.name, errs)
}

func (s *Services) off() []string {
	if s.Off == nil {
		return nil
	}
	return s.Off()
}

// wrongAddresses validates the addresses in the service, without the cluster's state.
func (a *assignment) wrongAddresses() field.ErrorList {
	a.write()
	return core.ClusterAddresses(a.obj, a.old, a.off())
}

func policyOf(spec *corev1.ServiceSpec) corev1.IPFamilyPolicy {
	if spec.IPFamilyPolicy == nil {
		return ""
	}
	return *spec.IPFamilyPolicy
}

func familyOf(ip string) corev1.IPFamily {
	if netutils.IsIPv6String(ip) {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}

func headless(spec *corev1.ServiceSpec) bool {
	return len(spec.ClusterIPs) > 0 && spec.ClusterIPs[0] == corev1.ClusterIPNone
}

// hasAddresses reports whether services of this form have addresses of their own.
func hasAddresses(spec *corev1.ServiceSpec) bool {
	return spec.Type != corev1.ServiceTypeExternalName && !headless(spec)
}
