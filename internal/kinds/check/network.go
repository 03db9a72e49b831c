package check

import (
	"fmt"
	"net"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	unversioned "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"
)

func networkFunctions() map[string]func(*judgement, place) {
	return map[string]func(*judgement, place){
		"endpointSubsets":        endpointSubsets,
		"endpointIP":             func(j *judgement, p place) { s, _ := p.value.(string); j.reachable(s, p.path) },
		"slicePorts":             slicePorts,
		"sliceEndpoints":         sliceEndpoints,
		"ingressRules":           ingressRules,
		"ingressRule":            ingressRule,
		"ingressTLS":             ingressTLS,
		"ingressAddress":         func(j *judgement, p place) { j.ingressAddress(p.object(), p.path) },
		"ingressClassAnnotation": ingressClassAnnotation,
		"backend":                func(j *judgement, p place) { j.backend(p.object(), p.path) },
		"classScope":             classScope,
		"policyPort":             policyPort,
		"peer":                   peer,
		"policyTypes":            policyTypes,
		"serviceCIDRs":           serviceCIDRs,
		"serviceCIDRChange":      serviceCIDRChange,
		"sameParent":             sameIn[networkingv1.ParentReference],
	}
}

// endpointSubsets judges the addresses behind a service. What has not changed is not judged: older servers took more.
func endpointSubsets(j *judgement, p place) {
	if j.old != nil && same(p.value, p.old) {
		return
	}
	for i, s := range objects(p.value) {
		at := p.path.Index(i)
		if empty(s["addresses"]) && empty(s["notReadyAddresses"]) {
			j.required(at, "must specify `addresses` or `notReadyAddresses`")
		}
		for _, list := range []string{"addresses", "notReadyAddresses"} {
			for k, a := range objects(s[list]) {
				j.block("EndpointAddress", a, nil, at.Child(list).Index(k))
			}
		}
		ports := objects(s["ports"])
		for k, port := range ports {
			name := text1(port, "name")
			if name == "" && len(ports) > 1 {
				j.required(at.Child("ports").Index(k).Child("name"), "")
			} else if name != "" {
				j.invalids(at.Child("ports").Index(k).Child("name"), name, validation.IsDNS1123Label(name))
			}
			j.block("EndpointPort", port, nil, at.Child("ports").Index(k))
		}
	}
}

func slicePorts(j *judgement, p place) {
	list, seen := objects(p.value), map[string]bool{}
	if len(list) > 20000 {
		j.add(field.TooMany(p.path, len(list), 20000))
		return
	}
	for i, port := range list {
		at, name := p.path.Index(i), text1(port, "name")
		if name != "" {
			j.invalids(at.Child("name"), name, validation.IsDNS1123Label(name))
		}
		if seen[name] {
			j.duplicate(at.Child("name"), name)
		}
		seen[name] = true
		protocol, ok := port["protocol"].(string)
		if !ok {
			j.required(at.Child("protocol"), "")
		} else if !slices.Contains(protocols, protocol) {
			j.unsupported(at.Child("protocol"), protocol, protocols...)
		}
		if app, ok := port["appProtocol"].(string); ok {
			j.invalids(at.Child("appProtocol"), app, validation.IsQualifiedName(app))
		}
	}
}

func sliceEndpoints(j *judgement, p place) {
	if j.old != nil && same(p.value, p.old) {
		return
	}
	list := objects(p.value)
	if len(list) > 1000 {
		j.add(field.TooMany(p.path, len(list), 1000))
		return
	}
	for i, e := range list {
		at := p.path.Index(i)
		j.sliceAddresses(texts(e["addresses"]), at.Child("addresses"))
		if node, ok := e["nodeName"].(string); ok {
			j.invalids(at.Child("nodeName"), node, validation.IsDNS1123Subdomain(node))
		}
		topology := pairs(e["deprecatedTopology"])
		if len(topology) > 16 {
			j.add(field.TooMany(at.Child("deprecatedTopology"), len(topology), 16))
		}
		j.errs = append(j.errs, unversioned.ValidateLabels(topology, at.Child("deprecatedTopology"))...)
		if name, ok := e["hostname"].(string); ok {
			j.invalids(at.Child("hostname"), name, validation.IsDNS1123Label(name))
		}
		hints := inner(e, "hints")
		if j.hints(hints, "forZones", validation.IsValidLabelValue, at.Child("hints", "forZones")) {
			j.hints(hints, "forNodes", validation.IsDNS1123Subdomain, at.Child("hints", "forNodes"))
		}
	}
}

func (j *judgement) sliceAddresses(list []string, path *field.Path) {
	if len(list) == 0 {
		j.required(path, "must contain at least 1 address")
	} else if len(list) > 100 {
		j.add(field.TooMany(path, len(list), 100))
	}
	for i, a := range list {
		at := path.Index(i)
		switch family := text1(j.obj, "addressType"); family {
		case "IPv4", "IPv6":
			var errs field.ErrorList
			if family == "IPv4" {
				errs = validation.IsValidIPForLegacyField(at, a, true, nil)
			} else {
				errs = validation.IsValidIP(at, a)
			}
			if len(errs) > 0 {
				j.errs = append(j.errs, errs...)
				continue
			}
			if netutils.IsIPv6String(a) != (family == "IPv6") {
				j.invalid(path, a, "must be an "+family+" address")
			}
			j.reachable(a, at)
		case "FQDN":
			j.errs = append(j.errs, validation.IsFullyQualifiedDomainName(at, a)...)
		}
	}
}

func (j *judgement) hints(hints object, name string, format func(string) []string, path *field.Path) bool {
	list, seen := objects(hints[name]), map[string]bool{}
	if len(list) > 8 {
		j.add(field.TooMany(path, len(list), 8))
		return false
	}
	for i, h := range list {
		s, at := text1(h, "name"), path.Index(i).Child("name")
		if seen[s] {
			j.duplicate(at, s)
		}
		seen[s] = true
		j.invalids(at, s, format(s))
	}
	return true
}

func ingressClassAnnotation(j *judgement, _ place) {
	v, ok := inner(j.obj, "metadata", "annotations")["kubernetes.io/ingress.class"].(string)
	if class, set := inner(j.obj, "spec")["ingressClassName"].(string); ok && set && v != class {
		j.invalid(field.NewPath("annotations").Child("kubernetes.io/ingress.class"), v,
			"must match `ingressClassName` when both are specified")
	}
}

func ingressRules(j *judgement, p place) {
	if empty(p.object()["rules"]) && p.object()["defaultBackend"] == nil {
		j.invalid(p.path, p.object()["rules"], "either `defaultBackend` or `rules` must be specified")
	}
}

func ingressRule(j *judgement, p place) {
	rule := p.object()
	j.ingressHost(p)
	http, before := inner(rule, "http"), len(j.errs)
	if http == nil {
		return
	}
	j.ingressPaths(http["paths"], p.path.Child("http", "paths"))
	if len(j.errs) > before && strings.Contains(text1(rule, "host"), "*") && j.excused(wildcardBackends) {
		j.errs = j.errs[:before]
	}
}

func (j *judgement) ingressHost(p place) {
	host, path := text1(p.object(), "host"), p.path.Child("host")
	if host == "" {
		return
	}
	if netutils.ParseIPSloppy(host) != nil {
		j.invalid(path, host, "must be a DNS name, not an IP address")
	}
	j.invalids(path, host, hostOrWildcard(host))
}

func hostOrWildcard(s string) []string {
	if strings.Contains(s, "*") {
		return validation.IsWildcardDNS1123Subdomain(s)
	}
	return validation.IsDNS1123Subdomain(s)
}

func (j *judgement) ingressPaths(v any, path *field.Path) {
	list := objects(v)
	if len(list) == 0 {
		j.required(path, "")
	}
	for i, e := range list {
		at, s := path.Index(i), text1(e, "path")
		kind, ok := e["pathType"].(string)
		switch {
		case !ok:
			j.required(at.Child("pathType"), "pathType must be specified")
			continue
		case kind == "Exact", kind == "Prefix":
			j.exactPath(s, at.Child("path"))
		case kind == "ImplementationSpecific":
			if s != "" {
				j.invalids(at.Child("path"), s, absolute(s))
			}
		default:
			j.unsupported(at.Child("pathType"), kind, "Exact", "ImplementationSpecific", "Prefix")
		}
		j.backend(inner(e, "backend"), at.Child("backend"))
	}
}

func (j *judgement) exactPath(s string, path *field.Path) {
	j.invalids(path, s, absolute(s))
	for _, part := range []string{"//", "/./", "/../", "%2f", "%2F"} {
		if strings.Contains(s, part) {
			j.invalid(path, s, fmt.Sprintf("must not contain '%s'", part))
		}
	}
	for _, end := range []string{"/..", "/."} {
		if strings.HasSuffix(s, end) {
			j.invalid(path, s, fmt.Sprintf("cannot end with '%s'", end))
		}
	}
}

// backend judges where an Ingress sends requests: a port of a service, or another object.
func (j *judgement) backend(b object, path *field.Path) {
	if b == nil {
		return
	}
	service, resource := inner(b, "service"), inner(b, "resource")
	switch {
	case service != nil && resource != nil:
		j.invalid(path, "", "cannot set both resource and service backends")
		return
	case resource != nil:
		at := path.Child("resource")
		if group, ok := resource["apiGroup"].(string); ok {
			j.invalids(at.Child("apiGroup"), group, validation.IsDNS1123Subdomain(group))
		}
		for _, name := range []string{"kind", "name"} {
			if s := text1(resource, name); s == "" {
				j.required(at.Child(name), "")
			} else {
				j.invalids(at.Child(name), s, content.IsPathSegmentName(s))
			}
		}
		return
	case service == nil:
		j.invalid(path, "", "resource or service backend is required")
		return
	}
	if name := text1(service, "name"); name == "" {
		j.required(path.Child("service", "name"), "")
	} else {
		j.invalids(path.Child("service", "name"), name, validation.IsDNS1123Label(name))
	}
	port := inner(service, "port")
	name := text1(port, "name")
	switch n, _ := number(port, "number"); {
	case name != "" && n != 0:
		j.invalid(path, "", "cannot set both port name & port number")
	case name != "":
		j.invalids(path.Child("service", "port", "name"), name, validation.IsValidPortName(name))
	case n != 0:
		j.invalids(path.Child("service", "port", "number"), n, validation.IsValidPortNum(int(n)))
	default:
		j.required(path, "port name or number is required")
	}
}

func ingressTLS(j *judgement, p place) {
	for i, host := range texts(p.object()["hosts"]) {
		j.invalids(p.path.Child("hosts").Index(i), host, hostOrWildcard(host))
	}
	name := text1(p.object(), "secretName")
	if wrong := validation.IsDNS1123Subdomain(name); name != "" && len(wrong) > 0 && !j.excused(tlsSecretName) {
		j.invalids(p.path.Child("secretName"), name, wrong)
	}
}

func classScope(j *judgement, p place) {
	scope, ok := p.object()["scope"].(string)
	namespace, named := p.object()["namespace"].(string)
	path := p.path.Child("namespace")
	switch {
	case !ok:
		j.required(p.path.Child("scope"), "")
	case scope == "Namespace" && !named:
		j.required(path, "`parameters.scope` is set to 'Namespace'")
	case scope == "Namespace":
		j.invalids(path, namespace, validation.IsDNS1123Label(namespace))
	case scope != "Cluster":
		j.unsupported(p.path.Child("scope"), scope, "Cluster", "Namespace")
	case named:
		j.forbidden(path, "`parameters.scope` is set to 'Cluster'")
	}
}

func policyPort(j *judgement, p place) {
	port := p.object()
	if protocol, ok := port["protocol"].(string); ok && !slices.Contains(protocols, protocol) {
		j.unsupported(p.path.Child("protocol"), protocol, "TCP", "UDP", "SCTP")
	}
	end, hasEnd := number(port, "endPort")
	at := p.path.Child("endPort")
	switch v := port["port"].(type) {
	case int64:
		j.invalids(p.path.Child("port"), v, validation.IsValidPortNum(int(v)))
		if !hasEnd {
			return
		}
		if end < v {
			j.invalid(at, v, "must be greater than or equal to `port`")
		}
		j.invalids(at, end, validation.IsValidPortNum(int(end)))
	case string:
		if hasEnd {
			j.invalid(at, end, "may not be specified when `port` is non-numeric")
		}
		j.invalids(p.path.Child("port"), v, validation.IsValidPortName(v))
	default:
		if hasEnd {
			j.invalid(at, end, "may not be specified when `port` is not specified")
		}
	}
}

// peer judges who may be talked to: pods, or a block of addresses.
func peer(j *judgement, p place) {
	n := 0
	for _, name := range []string{"podSelector", "namespaceSelector"} {
		if p.object()[name] != nil {
			n++
			selector, path := labelSelector(p.object()[name]), p.path.Child(name)
			errs := selectorErrors(selector, false, path)
			if len(errs) > 0 && j.was(selectorValues) { // which spec.podSelector says
				errs = selectorErrors(selector, true, path)
			}
			j.errs = append(j.errs, errs...)
		}
	}
	block := inner(p.object(), "ipBlock")
	if block != nil {
		j.ipBlock(block, p.path.Child("ipBlock"))
	}
	switch {
	case n == 0 && block == nil:
		j.required(p.path, "must specify a peer")
	case n > 0 && block != nil:
		j.forbidden(p.path, "may not specify both ipBlock and another peer")
	}
}

func (j *judgement) ipBlock(block object, path *field.Path) {
	cidr := text1(block, "cidr")
	if cidr == "" {
		j.required(path.Child("cidr"), "")
		return
	}
	had := blocksOf(inner(j.old, "spec"))
	j.errs = append(j.errs, validation.IsValidCIDRForLegacyField(path.Child("cidr"), cidr, true, had)...)
	_, whole, err := netutils.ParseCIDRSloppy(cidr)
	if err != nil {
		return
	}
	for i, s := range texts(block["except"]) {
		at := path.Child("except").Index(i)
		j.errs = append(j.errs, validation.IsValidCIDRForLegacyField(at, s, true, had)...)
		if _, part, err := netutils.ParseCIDRSloppy(s); err == nil && !within(part, whole) {
			j.invalid(at, s, "must be a strict subset of `cidr`")
		}
	}
}

func within(part, whole *net.IPNet) bool {
	a, _ := part.Mask.Size()
	b, _ := whole.Mask.Size()
	return whole.Contains(part.IP) && b < a
}

// blocksOf returns the blocks of addresses that a policy names, which stay allowed.
func blocksOf(spec object) (out []string) {
	for list, peers := range map[string]string{"ingress": "from", "egress": "to"} {
		for _, rule := range objects(spec[list]) {
			for _, p := range objects(rule[peers]) {
				if b := inner(p, "ipBlock"); b != nil {
					out = append(append(out, text1(b, "cidr")), texts(b["except"])...)
				}
			}
		}
	}
	return out
}

func policyTypes(j *judgement, p place) {
	list := texts(p.value)
	if len(list) > 2 {
		j.invalid(p.path, list, "may not specify more than two policyTypes")
		return
	}
	for i, t := range list {
		if t != "Ingress" && t != "Egress" {
			j.unsupported(p.path.Index(i), t, "Ingress", "Egress")
		}
	}
}

func serviceCIDRs(j *judgement, p place) {
	list := texts(p.value)
	if len(list) == 0 {
		j.required(p.path, "at least one CIDR required")
		return
	}
	if len(list) > 2 {
		j.invalid(p.path, object{"CIDRs": p.value}, "may only hold up to 2 values")
		return
	}
	for i, s := range list {
		j.errs = append(j.errs, validation.IsValidCIDR(p.path.Index(i), s)...)
	}
	if len(list) == 2 {
		if a := netutils.IPFamilyOfCIDRString(list[0]); a == netutils.IPFamilyOfCIDRString(list[1]) &&
			a != netutils.IPFamilyUnknown {
			j.invalid(p.path, list,
				"may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64")
		}
	}
}

// serviceCIDRChange lets a second range be added.
func serviceCIDRChange(j *judgement, p place) {
	now, was := texts(p.value), texts(p.old)
	switch {
	case len(now) == len(was):
		for i := range was {
			if now[i] != was[i] {
				j.invalid(p.path.Index(i), now[i], "field is immutable")
			}
		}
	case len(was) == 1 && len(now) == 2:
		if now[0] != was[0] {
			j.invalid(p.path.Index(0), now[0], "field is immutable")
		}
		serviceCIDRs(j, p)
	default:
		j.invalid(p.path, now, "field is immutable")
	}
}
