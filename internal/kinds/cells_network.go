package kinds

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

func serviceCells(s *corev1.Service, e catalog.Env) []any {
	ip := none
	if len(s.Spec.ClusterIPs) > 0 {
		ip = s.Spec.ClusterIPs[0]
	}
	var ports []string
	for _, p := range s.Spec.Ports {
		if p.NodePort > 0 {
			ports = append(ports, fmt.Sprintf("%d:%d/%s", p.Port, p.NodePort, p.Protocol))
		} else {
			ports = append(ports, fmt.Sprintf("%d/%s", p.Port, p.Protocol))
		}
	}
	return []any{s.Name, string(s.Spec.Type), ip, externalIP(s), orNone(strings.Join(ports, ",")),
		ago(s.CreationTimestamp, e), labelText(s.Spec.Selector)}
}

func externalIP(s *corev1.Service) string {
	switch s.Spec.Type {
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort:
		return orNone(strings.Join(s.Spec.ExternalIPs, ","))
	case corev1.ServiceTypeExternalName:
		return s.Spec.ExternalName
	case corev1.ServiceTypeLoadBalancer:
		var at []string
		for _, in := range s.Status.LoadBalancer.Ingress {
			at = append(at, orText(in.IP, in.Hostname))
		}
		return orText(strings.Join(append(distinct(at), s.Spec.ExternalIPs...), ","), "<pending>")
	}
	return "<unknown>"
}

// distinct returns what is not empty, once and sorted.
func distinct(list []string) []string {
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(s string) bool { return s == "" })
}

//lint:ignore SA1019 clients still read and write them
func endpointsCells(ep *corev1.Endpoints, e catalog.Env) []any {
	if len(ep.Subsets) == 0 {
		return []any{ep.Name, none, ago(ep.CreationTimestamp, e)}
	}
	var list []string
	for _, s := range ep.Subsets {
		if len(s.Ports) == 0 { // a headless service may have none
			for _, a := range s.Addresses {
				list = append(list, a.IP)
			}
		}
		for _, p := range s.Ports {
			for _, a := range s.Addresses {
				list = append(list, net.JoinHostPort(a.IP, strconv.Itoa(int(p.Port))))
			}
		}
	}
	return []any{ep.Name, firstFew(list, 3, ","), ago(ep.CreationTimestamp, e)}
}

func endpointSliceCells(s *discoveryv1.EndpointSlice, e catalog.Env) []any {
	var ports, addresses []string
	for _, p := range s.Ports {
		switch {
		case p.Port != nil:
			ports = append(ports, strconv.Itoa(int(*p.Port)))
		case p.Name != nil:
			ports = append(ports, *p.Name)
		default:
			ports = append(ports, "*")
		}
	}
	for _, ep := range s.Endpoints {
		addresses = append(addresses, ep.Addresses...)
	}
	list := func(l []string) string {
		if len(l) == 0 {
			return unset
		}
		return firstFew(l, 3, ",")
	}
	return []any{s.Name, string(s.AddressType), list(ports), list(addresses), ago(s.CreationTimestamp, e)}
}

func ingressCells(in *networkingv1.Ingress, e catalog.Env) []any {
	var at []string
	for _, i := range in.Status.LoadBalancer.Ingress {
		at = append(at, orText(i.IP, i.Hostname))
	}
	ports := "80"
	if len(in.Spec.TLS) > 0 {
		ports = "80, 443"
	}
	return []any{in.Name, deref(in.Spec.IngressClassName, none), hosts(in.Spec.Rules), strings.Join(distinct(at), ","),
		ports, ago(in.CreationTimestamp, e)}
}

// hosts shows three of the rules' hosts. Kube counts rules without a host among those that it leaves out.
func hosts(rules []networkingv1.IngressRule) string {
	var list []string
	more := false
	for _, r := range rules {
		if len(list) == 3 {
			more = true
		}
		if !more && r.Host != "" {
			list = append(list, r.Host)
		}
	}
	switch {
	case len(list) == 0:
		return "*"
	case more:
		return fmt.Sprintf("%s + %d more...", strings.Join(list, ","), len(rules)-3)
	}
	return strings.Join(list, ",")
}

func ingressClassCells(c *networkingv1.IngressClass, e catalog.Env) []any {
	name := c.Name
	if c.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true" {
		name += " (default)"
	}
	parameters := none
	if p := c.Spec.Parameters; p != nil {
		parameters = p.Kind
		if p.APIGroup != nil {
			parameters += "." + *p.APIGroup
		}
		parameters += "/" + p.Name
	}
	return []any{name, c.Spec.Controller, parameters, ago(c.CreationTimestamp, e)}
}

func networkPolicyCells(p *networkingv1.NetworkPolicy, e catalog.Env) []any {
	return []any{p.Name, metav1.FormatLabelSelector(&p.Spec.PodSelector), ago(p.CreationTimestamp, e)}
}

// ipAddressCells has one cell more than kube has columns: the age has none there.
func ipAddressCells(ip *networkingv1.IPAddress, e catalog.Env) []any {
	parent := none
	if ref := ip.Spec.ParentRef; ref != nil {
		gr := schema.GroupResource{Group: ref.Group, Resource: ref.Resource}
		parent = lower(gr.String())
		if ref.Namespace != "" {
			parent += "/" + ref.Namespace
		}
		parent += "/" + ref.Name
	}
	return []any{ip.Name, parent, ago(ip.CreationTimestamp, e)}
}

func serviceCIDRCells(c *networkingv1.ServiceCIDR, e catalog.Env) []any {
	return []any{c.Name, strings.Join(c.Spec.CIDRs, ","), ago(c.CreationTimestamp, e)}
}

func lower(s string) string { return strings.ToLower(s) }
