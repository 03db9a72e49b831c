package check

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"
)

func serviceFunctions() map[string]func(*judgement, place) {
	return map[string]func(*judgement, place){
		"service":               service,
		"serviceUpdate":         serviceUpdate,
		"serviceStatus":         serviceStatus,
		"serviceShape":          serviceShape,
		"servicePorts":          servicePorts,
		"sessionAffinity":       sessionAffinity,
		"clusterIPs":            func(j *judgement, p place) { j.clusterIPs(p.object(), p.path) },
		"externalIP":            externalIP,
		"portConflicts":         portConflicts,
		"sourceRanges":          sourceRanges,
		"loadBalancer":          loadBalancer,
		"trafficPolicy":         trafficPolicy,
		"internalTrafficPolicy": internalTrafficPolicy,
	}
}

const (
	topologyMode  = "service.kubernetes.io/topology-mode"
	topologyHints = "service.kubernetes.io/topology-aware-hints"
	allowedRanges = "service.beta.kubernetes.io/load-balancer-source-ranges"
)

// ClusterAddresses returns what is wrong with the addresses that a service asks for, before it is given what it lacks.
func ClusterAddresses(obj, old object) field.ErrorList {
	j := judgement{obj: obj, old: old}
	j.clusterIPs(inner(obj, "spec"), field.NewPath("spec"))
	return j.errs
}

func service(j *judgement, p place) {
	annotations := pairs(inner(j.obj, "metadata")["annotations"])
	mode, hasMode := annotations[topologyMode]
	if hints, ok := annotations[topologyHints]; ok && hasMode && mode != hints {
		j.invalid(field.NewPath("metadata", "annotations").Key(topologyMode), mode,
			fmt.Sprintf("must match annotations[%s] when both are specified", topologyHints))
	}
	j.block("ServiceSpec", inner(p.object(), "spec"), inner(j.old, "spec"), field.NewPath("spec"))
}

func headless(spec object) bool {
	ips := texts(spec["clusterIPs"])
	return len(ips) == 1 && ips[0] == "None"
}

// serviceShape judges what each type of service has and has not.
func serviceShape(j *judgement, p place) {
	spec, kind := p.object(), text1(p.object(), "type")
	if empty(spec["ports"]) && !headless(spec) && kind != "ExternalName" {
		j.required(p.path.Child("ports"), "")
	}
	switch kind {
	case "LoadBalancer", "NodePort":
		if headless(spec) {
			j.invalid(p.path.Child("clusterIPs").Index(0), "None", "may not be set to 'None' for "+kind+" services")
		}
	case "ExternalName":
		const why = "may not be set for ExternalName services"
		if !empty(spec["clusterIPs"]) {
			j.forbidden(p.path.Child("clusterIPs"), why)
		}
		if !empty(spec["ipFamilies"]) {
			j.forbidden(p.path.Child("ipFamilies"), why)
		}
		if spec["ipFamilyPolicy"] != nil {
			j.forbidden(p.path.Child("ipFamilyPolicy"), why)
		}
		name := strings.TrimSuffix(text1(spec, "externalName"), ".")
		if name == "" {
			j.required(p.path.Child("externalName"), "")
		} else {
			j.invalids(p.path.Child("externalName"), name, validation.IsDNS1123Subdomain(name))
		}
	}
}

var protocols = []string{"SCTP", "TCP", "UDP"}

func servicePorts(j *judgement, p place) {
	list, seen := objects(p.value), map[string]bool{}
	for i, port := range list {
		at, name := p.path.Index(i), text1(port, "name")
		if name == "" && len(list) > 1 {
			j.required(at.Child("name"), "")
		} else if name != "" {
			j.invalids(at.Child("name"), name, validation.IsDNS1123Label(name))
			if seen[name] {
				j.duplicate(at.Child("name"), name)
			}
			seen[name] = true
		}
		n, _ := number(port, "port")
		j.invalids(at.Child("port"), n, validation.IsValidPortNum(int(n)))
		j.choice(at.Child("protocol"), text1(port, "protocol"), protocols...)
		portOrName(j, place{value: port["targetPort"], path: at.Child("targetPort")})
		if app, ok := port["appProtocol"].(string); ok {
			j.invalids(at.Child("appProtocol"), app, validation.IsQualifiedName(app))
		}
	}
}

func sessionAffinity(j *judgement, p place) {
	spec, path := p.object(), p.path.Child("sessionAffinityConfig")
	config := inner(spec, "sessionAffinityConfig")
	switch text1(spec, "sessionAffinity") {
	case "None":
		if spec["sessionAffinityConfig"] != nil {
			j.forbidden(path, "must not be set when session affinity is None")
		}
	case "ClientIP":
		const when = "when session affinity type is ClientIP"
		n, ok := number(inner(config, "clientIP"), "timeoutSeconds")
		switch at := path.Child("clientIP", "timeoutSeconds"); {
		case config == nil:
			j.required(path, when)
		case inner(config, "clientIP") == nil:
			j.required(path.Child("clientIP"), when)
		case !ok:
			j.required(at, when)
		case n <= 0 || n > 86400:
			j.invalid(at, n, "must be greater than 0 and less than 86400")
		}
	}
}

// clusterIPs judges a service's addresses and their families.
func (j *judgement) clusterIPs(spec object, path *field.Path) {
	if text1(spec, "type") == "ExternalName" {
		return
	}
	first, all, families := text1(spec, "clusterIP"), texts(spec["clusterIPs"]), texts(spec["ipFamilies"])
	at := path.Child("clusterIPs")
	switch {
	case first != "" && len(all) == 0:
		j.required(at, "")
	case first != "" && all[0] != first:
		j.invalid(at, all, "first value must match `clusterIP`")
	case first == "" && len(all) > 0:
		j.invalid(at, all, "must be empty when `clusterIP` is not specified")
	}
	seen := map[string]bool{}
	for i, f := range families {
		if f != "IPv4" && f != "IPv6" {
			j.unsupported(path.Child("ipFamilies").Index(i), f, "IPv4", "IPv6")
		}
		if seen[f] {
			j.duplicate(path.Child("ipFamilies").Index(i), f)
		}
		seen[f] = true
	}
	if policy, ok := spec["ipFamilyPolicy"].(string); ok &&
		!slices.Contains([]string{"PreferDualStack", "RequireDualStack", "SingleStack"}, policy) {
		j.unsupported(path.Child("ipFamilyPolicy"), policy, "PreferDualStack", "RequireDualStack", "SingleStack")
	}
	broken := false
	for i, ip := range all {
		if i == 0 && ip == "None" {
			if len(all) > 1 {
				broken = true
				j.invalid(at, all, "'None' must be the first and only value")
			}
			continue
		}
		errs := validation.IsValidIPForLegacyField(at.Index(i), ip, true, texts(inner(j.old, "spec")["clusterIPs"]))
		broken = broken || len(errs) > 0
		j.errs = append(j.errs, errs...)
	}
	if len(all) > 2 {
		j.invalid(at, all, "may only hold up to 2 values")
	}
	if broken {
		return
	}
	if len(all) > 1 && !twoFamilies(all) {
		j.invalid(at, all, "may specify no more than one IP for each IP family")
	}
	if headless(spec) {
		return
	}
	for i := range min(len(all), len(families)) {
		six := netutils.IsIPv6String(all[i])
		switch {
		case families[i] == "IPv4" && six:
			j.invalid(at.Index(i), all[i], fmt.Sprintf("expected an IPv4 value as indicated by `ipFamilies[%v]`", i))
		case families[i] == "IPv6" && !six:
			j.invalid(at.Index(i), all[i], fmt.Sprintf("expected an IPv6 value as indicated by `ipFamilies[%v]`", i))
		}
	}
}

func externalIP(j *judgement, p place) {
	ip, _ := p.value.(string)
	errs := validation.IsValidIPForLegacyField(p.path, ip, true, texts(inner(j.old, "spec")["externalIPs"]))
	if len(errs) > 0 {
		j.errs = append(j.errs, errs...)
		return
	}
	j.reachable(ip, p.path)
}

// reachable wants an address that traffic can be sent to.
func (j *judgement) reachable(s string, path *field.Path) {
	ip := netutils.ParseIPSloppy(s)
	switch {
	case ip == nil:
		j.invalid(path, s, "must be a valid IP address")
	case ip.IsUnspecified():
		j.invalid(path, s, fmt.Sprintf("may not be unspecified (%v)", s))
	case ip.IsLoopback():
		j.invalid(path, s, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
	case ip.IsLinkLocalUnicast():
		j.invalid(path, s, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")
	case ip.IsLinkLocalMulticast():
		j.invalid(path, s, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")
	}
}

// portConflicts wants each port, and each port of the nodes, once for a protocol.
func portConflicts(j *judgement, p place) {
	spec, path := p.object(), p.path.Child("ports")
	list := objects(spec["ports"])
	if text1(spec, "type") == "ClusterIP" {
		for i, port := range list {
			if !empty(port["nodePort"]) {
				j.forbidden(path.Index(i).Child("nodePort"), "may not be used when `type` is 'ClusterIP'")
			}
		}
	}
	seen, onNode := map[string]bool{}, map[string]bool{}
	for i, port := range list {
		if n, _ := number(port, "nodePort"); n != 0 {
			key := fmt.Sprint(text1(port, "protocol"), n)
			if onNode[key] {
				j.duplicate(path.Index(i).Child("nodePort"), n)
			}
			onNode[key] = true
		}
	}
	for i, port := range list {
		n, _ := number(port, "port")
		key := fmt.Sprint(text1(port, "protocol"), n)
		if seen[key] {
			j.duplicate(path.Index(i), internalPort{Protocol: text1(port, "protocol"), Port: n, TargetPort: int64(0)})
		}
		seen[key] = true
	}
}

// internalPort is how Kubernetes shows a port that is there twice: with the field names of its internal type.
type internalPort struct {
	Name        string
	Protocol    string
	AppProtocol *string
	Port        int64
	TargetPort  int64
	NodePort    int64
}

func sourceRanges(j *judgement, p place) {
	spec, path := p.object(), p.path.Child("LoadBalancerSourceRanges")
	const only = "may only be used when `type` is 'LoadBalancer'"
	balanced := text1(spec, "type") == "LoadBalancer"
	if ranges := texts(spec["loadBalancerSourceRanges"]); len(ranges) > 0 {
		if !balanced {
			j.forbidden(path, only)
		}
		var had []string
		for _, r := range texts(inner(j.old, "spec")["loadBalancerSourceRanges"]) {
			had = append(had, strings.TrimSpace(r))
		}
		for i, r := range ranges {
			j.errs = append(j.errs,
				validation.IsValidCIDRForLegacyField(path.Index(i), strings.TrimSpace(r), true, had)...)
		}
		return
	}
	v, ok := inner(j.obj, "metadata", "annotations")[allowedRanges].(string)
	if !ok {
		return
	}
	path = field.NewPath("metadata", "annotations").Key(allowedRanges)
	if !balanced {
		j.forbidden(path, only)
	}
	if was, ok := inner(j.old, "metadata", "annotations")[allowedRanges]; ok && was == any(v) {
		return
	}
	if v = strings.TrimSpace(v); v != "" {
		for r := range strings.SplitSeq(v, ",") {
			j.errs = append(j.errs, validation.IsValidCIDRForLegacyField(path, strings.TrimSpace(r), true, nil)...)
		}
	}
}

func loadBalancer(j *judgement, p place) {
	spec := p.object()
	balanced := text1(spec, "type") == "LoadBalancer"
	const only = "may only be used when `type` is 'LoadBalancer'"
	switch set := spec["allocateLoadBalancerNodePorts"] != nil; {
	case set && !balanced:
		j.forbidden(p.path.Child("allocateLoadBalancerNodePorts"), only)
	case !set && balanced:
		j.required(field.NewPath("allocateLoadBalancerNodePorts"), "")
	}
	class, ok := spec["loadBalancerClass"].(string)
	switch path := p.path.Child("loadBalancerClass"); {
	case !ok:
	case balanced:
		j.invalids(path, class, validation.IsQualifiedName(class))
	default:
		j.forbidden(path, only)
	}
}

// external tells whether traffic from outside reaches the service.
func external(spec object) bool {
	kind := text1(spec, "type")
	return kind == "LoadBalancer" || kind == "NodePort" || kind == "ClusterIP" && !empty(spec["externalIPs"])
}

// NeedsHealthPort tells whether a service has a port where nodes say whether they have a pod of it.
func NeedsHealthPort(spec map[string]any) bool {
	return text1(spec, "type") == "LoadBalancer" && text1(spec, "externalTrafficPolicy") == "Local"
}

func trafficPolicy(j *judgement, p place) {
	spec, path := p.object(), p.path.Child("externalTrafficPolicy")
	policy := text1(spec, "externalTrafficPolicy")
	if external(spec) {
		j.choice(path, policy, "Cluster", "Local")
	} else if policy != "" {
		j.invalid(path, policy, "may only be set for externally-accessible services")
	}
	port, _ := number(spec, "healthCheckNodePort")
	switch at := p.path.Child("healthCheckNodePort"); {
	case !NeedsHealthPort(spec):
		if port != 0 {
			j.invalid(at, port, "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'")
		}
	case port == 0:
		j.required(at, "")
	default:
		j.invalids(at, port, validation.IsValidPortNum(int(port)))
	}
}

func internalTrafficPolicy(j *judgement, p place) {
	policy, ok := p.object()["internalTrafficPolicy"].(string)
	path := p.path.Child("internalTrafficPolicy")
	switch kind := text1(p.object(), "type"); {
	case ok && policy != "Cluster" && policy != "Local":
		j.unsupported(path, policy, "Cluster", "Local")
	case !ok && (kind == "NodePort" || kind == "LoadBalancer" || kind == "ClusterIP"):
		j.required(path, "")
	}
}

// serviceUpdate: addresses and their families stay, but a second one may come and go.
func serviceUpdate(j *judgement, _ place) {
	spec, was, path := inner(j.obj, "spec"), inner(j.old, "spec"), field.NewPath("spec")
	if text1(spec, "type") != "ExternalName" && text1(was, "type") != "ExternalName" {
		j.addressesStay(spec, was, path)
		j.familiesStay(spec, was, path)
	}
	if text1(spec, "type") == "LoadBalancer" && text1(was, "type") == "LoadBalancer" &&
		spec["loadBalancerClass"] != was["loadBalancerClass"] {
		j.invalid(path.Child("loadBalancerClass"), spec["loadBalancerClass"], "may not change once set")
	}
	if NeedsHealthPort(spec) && NeedsHealthPort(was) && !same(spec["healthCheckNodePort"], was["healthCheckNodePort"]) {
		j.forbidden(path.Child("healthCheckNodePort"), "field is immutable")
	}
}

func (j *judgement) addressesStay(spec, was object, path *field.Path) {
	if headless(spec) && headless(was) {
		return
	}
	now, old := texts(spec["clusterIPs"]), texts(was["clusterIPs"])
	at := path.Child("clusterIPs")
	const stays = "may not change once set"
	switch {
	case len(now) == len(old):
		for i := range old {
			if old[i] != now[i] {
				j.invalid(at.Index(i), now, stays)
			}
		}
		return
	case len(now) == 0:
		j.invalid(at.Index(0), now, "primary clusterIP can not be unset")
	case len(old) > 0 && now[0] != old[0]:
		j.invalid(at.Index(0), now, stays)
	}
	if len(old) > len(now) && len(now) == 1 && spec["ipFamilyPolicy"] != "SingleStack" {
		j.invalid(path.Child("ipFamilyPolicy"), spec["ipFamilyPolicy"],
			"must be set to 'SingleStack' when releasing the secondary clusterIP")
	}
}

func (j *judgement) familiesStay(spec, was object, path *field.Path) {
	if headless(spec) || headless(was) {
		return
	}
	now, old := texts(spec["ipFamilies"]), texts(was["ipFamilies"])
	at := path.Child("ipFamilies").Index(0)
	const stays = "may not change once set"
	switch {
	case len(now) == len(old):
		for i := range old {
			if old[i] != now[i] {
				j.invalid(at, now, stays)
			}
		}
		return
	case len(now) < len(old) && empty(spec["clusterIPs"]):
		j.invalid(at, now, "primary ipFamily can not be unset")
	}
	if len(now) > 0 && len(old) > 0 && now[0] != old[0] {
		j.invalid(at, texts(spec["clusterIPs"]), stays)
	}
	if len(old) > len(now) && len(now) == 1 && spec["ipFamilyPolicy"] != "SingleStack" {
		j.invalid(path.Child("ipFamilyPolicy"), spec["ipFamilyPolicy"],
			"must be set to 'SingleStack' when releasing the secondary ipFamily")
	}
}

func serviceStatus(j *judgement, _ place) {
	path := field.NewPath("status", "loadBalancer", "ingress")
	list := objects(inner(j.obj, "status", "loadBalancer")["ingress"])
	if text1(inner(j.obj, "spec"), "type") != "LoadBalancer" && len(list) > 0 {
		j.forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")
		return
	}
	for i, in := range list {
		at, ip := path.Index(i), text1(in, "ip")
		mode, ok := in["ipMode"].(string)
		switch {
		case !ok && ip != "":
			j.ingressAddress(in, at)
			j.required(at.Child("ipMode"), "must be specified when `ip` is set")
			continue
		case ok && ip == "":
			j.forbidden(at.Child("ipMode"), "may not be specified when `ip` is not set")
		case ok && mode != "VIP" && mode != "Proxy":
			j.unsupported(at.Child("ipMode"), mode, "Proxy", "VIP")
		}
		j.ingressAddress(in, at)
	}
}

// ingressAddress judges where a load balancer takes traffic: an address or a name.
func (j *judgement) ingressAddress(in object, path *field.Path) {
	if ip := text1(in, "ip"); ip != "" {
		var had []string
		for _, e := range objects(inner(j.old, "status", "loadBalancer")["ingress"]) {
			had = append(had, text1(e, "ip"))
		}
		j.errs = append(j.errs, validation.IsValidIPForLegacyField(path.Child("ip"), ip, true, had)...)
	}
	if name := text1(in, "hostname"); name != "" {
		j.invalids(path.Child("hostname"), name, validation.IsDNS1123Subdomain(name))
		if netutils.ParseIPSloppy(name) != nil {
			j.invalid(path.Child("hostname"), name, "must be a DNS name, not an IP address")
		}
	}
}
