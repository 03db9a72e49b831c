package core

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

// twoFamilies reports whether addresses are of both families.
func twoFamilies(ips []string) bool {
	six := 0
	for _, ip := range ips {
		if strings.Contains(ip, ":") {
			six++
		}
	}
	return six > 0 && six < len(ips)
}

const (
	topologyMode  = "service.kubernetes.io/topology-mode"
	topologyHints = "service.kubernetes.io/topology-aware-hints"
	allowedRanges = "service.beta.kubernetes.io/load-balancer-source-ranges"
)

func service(val *rule.Validation, p rule.Value) {
	annotations := rule.StringMap(object.Map(val.Obj, "metadata")["annotations"])
	mode, hasMode := annotations[topologyMode]
	if hints, ok := annotations[topologyHints]; ok && hasMode && mode != hints {
		val.Invalid(field.NewPath("metadata", "annotations").Key(topologyMode), mode,
			fmt.Sprintf("must match annotations[%s] when both are specified", topologyHints))
	}
	val.Block("ServiceSpec", object.Map(p.Object(), "spec"), object.Map(val.Old, "spec"), field.NewPath("spec"))
}

func headless(spec object.Object) bool {
	ips := rule.Strings(spec["clusterIPs"])
	return len(ips) == 1 && ips[0] == "None"
}

// serviceShape validates the required and forbidden fields of each service type.
func serviceShape(val *rule.Validation, p rule.Value) {
	spec, kind := p.Object(), object.String(p.Object(), "type")
	if rule.IsEmpty(spec["ports"]) && !headless(spec) && kind != "ExternalName" {
		val.Required(p.Path.Child("ports"), "")
	}
	switch kind {
	case "LoadBalancer", "NodePort":
		if headless(spec) {
			val.Invalid(p.Path.Child("clusterIPs").Index(0), "None", "may not be set to 'None' for "+kind+" services")
		}
	case "ExternalName":
		const why = "may not be set for ExternalName services"
		if !rule.IsEmpty(spec["clusterIPs"]) {
			val.Forbidden(p.Path.Child("clusterIPs"), why)
		}
		if !rule.IsEmpty(spec["ipFamilies"]) {
			val.Forbidden(p.Path.Child("ipFamilies"), why)
		}
		if spec["ipFamilyPolicy"] != nil {
			val.Forbidden(p.Path.Child("ipFamilyPolicy"), why)
		}
		name := strings.TrimSuffix(object.String(spec, "externalName"), ".")
		if name == "" {
			val.Required(p.Path.Child("externalName"), "")
		} else {
			val.Invalids(p.Path.Child("externalName"), name, validation.IsDNS1123Subdomain(name))
		}
	}
}

func servicePorts(val *rule.Validation, p rule.Value) {
	list, seen := rule.Objects(p.New), map[string]bool{}
	for i, port := range list {
		at, name := p.Path.Index(i), object.String(port, "name")
		if name == "" && len(list) > 1 {
			val.Required(at.Child("name"), "")
		} else if name != "" {
			val.Invalids(at.Child("name"), name, validation.IsDNS1123Label(name))
			if seen[name] {
				val.Duplicate(at.Child("name"), name)
			}
			seen[name] = true
		}
		n, _ := object.Int(port, "port")
		val.Invalids(at.Child("port"), n, validation.IsValidPortNum(int(n)))
		pod.Choice(val, at.Child("protocol"), object.String(port, "protocol"), rule.Protocols...)
		rule.PortOrName(val, rule.Value{New: port["targetPort"], Path: at.Child("targetPort")})
		if app, ok := port["appProtocol"].(string); ok {
			val.Invalids(at.Child("appProtocol"), app, validation.IsQualifiedName(app))
		}
	}
}

func sessionAffinity(val *rule.Validation, p rule.Value) {
	spec, path := p.Object(), p.Path.Child("sessionAffinityConfig")
	config := object.Map(spec, "sessionAffinityConfig")
	switch object.String(spec, "sessionAffinity") {
	case "None":
		if spec["sessionAffinityConfig"] != nil {
			val.Forbidden(path, "must not be set when session affinity is None")
		}
	case "ClientIP":
		const when = "when session affinity type is ClientIP"
		n, ok := object.Int(object.Map(config, "clientIP"), "timeoutSeconds")
		switch at := path.Child("clientIP", "timeoutSeconds"); {
		case config == nil:
			val.Required(path, when)
		case object.Map(config, "clientIP") == nil:
			val.Required(path.Child("clientIP"), when)
		case !ok:
			val.Required(at, when)
		case n <= 0 || n > 86400:
			val.Invalid(at, n, "must be greater than 0 and less than 86400")
		}
	}
}

// clusterIPs validates a service's addresses and their families.
func clusterIPs(val *rule.Validation, spec object.Object, path *field.Path) {
	if object.String(spec, "type") == "ExternalName" {
		return
	}
	first, all, families := object.String(spec, "clusterIP"), rule.Strings(spec["clusterIPs"]),
		rule.Strings(spec["ipFamilies"])
	at := path.Child("clusterIPs")
	switch {
	case first != "" && len(all) == 0:
		val.Required(at, "")
	case first != "" && all[0] != first:
		val.Invalid(at, all, "first value must match `clusterIP`")
	case first == "" && len(all) > 0:
		val.Invalid(at, all, "must be empty when `clusterIP` is not specified")
	}
	ipFamilies(val, spec, path)
	broken := false
	for i, ip := range all {
		if i == 0 && ip == "None" {
			if len(all) > 1 {
				broken = true
				val.Invalid(at, all, "'None' must be the first and only value")
			}
			continue
		}
		errs := val.IP(at.Index(i), ip, val.OldValues("clusterIPs", rule.TextsAt("spec", "clusterIPs")))
		broken = broken || len(errs) > 0
		val.Errs = append(val.Errs, errs...)
	}
	if len(all) > 2 {
		val.Invalid(at, all, "may only hold up to 2 values")
	}
	if broken {
		return
	}
	if len(all) > 1 && !twoFamilies(all) {
		val.Invalid(at, all, "may specify no more than one IP for each IP family")
	}
	if headless(spec) {
		return
	}
	for i := range min(len(all), len(families)) {
		six := netutils.IsIPv6String(all[i])
		switch {
		case families[i] == "IPv4" && six:
			val.Invalid(at.Index(i), all[i], fmt.Sprintf("expected an IPv4 value as indicated by `ipFamilies[%v]`", i))
		case families[i] == "IPv6" && !six:
			val.Invalid(at.Index(i), all[i], fmt.Sprintf("expected an IPv6 value as indicated by `ipFamilies[%v]`", i))
		}
	}
}

// ipFamilies checks the address families of a service, and its family policy.
func ipFamilies(val *rule.Validation, spec object.Object, path *field.Path) {
	seen := map[string]bool{}
	for i, f := range rule.Strings(spec["ipFamilies"]) {
		if f != "IPv4" && f != "IPv6" {
			val.Unsupported(path.Child("ipFamilies").Index(i), f, "IPv4", "IPv6")
		}
		if seen[f] {
			val.Duplicate(path.Child("ipFamilies").Index(i), f)
		}
		seen[f] = true
	}
	if policy, ok := spec["ipFamilyPolicy"].(string); ok &&
		!slices.Contains([]string{"PreferDualStack", "RequireDualStack", "SingleStack"}, policy) {
		val.Unsupported(path.Child("ipFamilyPolicy"), policy, "PreferDualStack", "RequireDualStack", "SingleStack")
	}
}

func checkExternalIP(val *rule.Validation, p rule.Value) {
	ip, _ := p.New.(string)
	errs := val.IP(p.Path, ip, val.OldValues("externalIPs", rule.TextsAt("spec", "externalIPs")))
	if len(errs) > 0 {
		val.Errs = append(val.Errs, errs...)
		return
	}
	rule.CheckReachableIP(val, ip, p.Path)
}

// portConflicts requires unique ports and node ports for each protocol.
func portConflicts(val *rule.Validation, p rule.Value) {
	spec, path := p.Object(), p.Path.Child("ports")
	list := rule.Objects(spec["ports"])
	if object.String(spec, "type") == "ClusterIP" {
		for i, port := range list {
			if !rule.IsEmpty(port["nodePort"]) {
				val.Forbidden(path.Index(i).Child("nodePort"), "may not be used when `type` is 'ClusterIP'")
			}
		}
	}
	seen, onNode := map[string]bool{}, map[string]bool{}
	for i, port := range list {
		if n, _ := object.Int(port, "nodePort"); n != 0 {
			key := fmt.Sprint(object.String(port, "protocol"), n)
			if onNode[key] {
				val.Duplicate(path.Index(i).Child("nodePort"), n)
			}
			onNode[key] = true
		}
	}
	for i, port := range list {
		n, _ := object.Int(port, "port")
		key := fmt.Sprint(object.String(port, "protocol"), n)
		if seen[key] {
			val.Duplicate(path.Index(i),
				internalPort{Protocol: object.String(port, "protocol"), Port: n, TargetPort: int64(0)})
		}
		seen[key] = true
	}
}

// internalPort is Kubernetes' representation of a duplicate port in errors: with the field names of its internal type.
type internalPort struct {
	Name        string
	Protocol    string
	AppProtocol *string
	Port        int64
	TargetPort  int64
	NodePort    int64
}

func sourceRanges(val *rule.Validation, p rule.Value) {
	spec, path := p.Object(), p.Path.Child("LoadBalancerSourceRanges")
	const only = "may only be used when `type` is 'LoadBalancer'"
	balanced := object.String(spec, "type") == "LoadBalancer"
	if ranges := rule.Strings(spec["loadBalancerSourceRanges"]); len(ranges) > 0 {
		if !balanced {
			val.Forbidden(path, only)
		}
		had := sets.Set[string]{}
		for _, r := range rule.Strings(object.Map(val.Old, "spec")["loadBalancerSourceRanges"]) {
			had.Insert(strings.TrimSpace(r))
		}
		for i, r := range ranges {
			val.Errs = append(val.Errs, val.CIDR(path.Index(i), strings.TrimSpace(r), had)...)
		}
		return
	}
	v, ok := object.Map(val.Obj, "metadata", "annotations")[allowedRanges].(string)
	if !ok {
		return
	}
	path = field.NewPath("metadata", "annotations").Key(allowedRanges)
	if !balanced {
		val.Forbidden(path, only)
	}
	if was, ok := object.Map(val.Old, "metadata", "annotations")[allowedRanges]; ok && was == any(v) {
		return
	}
	if v = strings.TrimSpace(v); v != "" {
		for r := range strings.SplitSeq(v, ",") {
			val.Errs = append(val.Errs, val.CIDR(path, strings.TrimSpace(r), nil)...)
		}
	}
}

func loadBalancer(val *rule.Validation, p rule.Value) {
	spec := p.Object()
	balanced := object.String(spec, "type") == "LoadBalancer"
	const only = "may only be used when `type` is 'LoadBalancer'"
	switch set := spec["allocateLoadBalancerNodePorts"] != nil; {
	case set && !balanced:
		val.Forbidden(p.Path.Child("allocateLoadBalancerNodePorts"), only)
	case !set && balanced:
		val.Required(field.NewPath("allocateLoadBalancerNodePorts"), "")
	}
	class, ok := spec["loadBalancerClass"].(string)
	switch path := p.Path.Child("loadBalancerClass"); {
	case !ok:
	case balanced:
		val.Invalids(path, class, validation.IsQualifiedName(class))
	default:
		val.Forbidden(path, only)
	}
}

// isExternal reports whether traffic from outside reaches the service.
func isExternal(spec object.Object) bool {
	kind := object.String(spec, "type")
	return kind == "LoadBalancer" || kind == "NodePort" || kind == "ClusterIP" && !rule.IsEmpty(spec["externalIPs"])
}

func trafficPolicy(val *rule.Validation, p rule.Value) {
	spec, path := p.Object(), p.Path.Child("externalTrafficPolicy")
	policy := object.String(spec, "externalTrafficPolicy")
	if isExternal(spec) {
		pod.Choice(val, path, policy, "Cluster", "Local")
	} else if policy != "" {
		val.Invalid(path, policy, "may only be set for externally-accessible services")
	}
	port, _ := object.Int(spec, "healthCheckNodePort")
	switch at := p.Path.Child("healthCheckNodePort"); {
	case !NeedsHealthPort(spec):
		if port != 0 {
			val.Invalid(at, port,
				"may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'")
		}
	case port == 0:
		val.Required(at, "")
	default:
		val.Invalids(at, port, validation.IsValidPortNum(int(port)))
	}
}

func internalTrafficPolicy(val *rule.Validation, p rule.Value) {
	policy, ok := p.Object()["internalTrafficPolicy"].(string)
	path := p.Path.Child("internalTrafficPolicy")
	switch kind := object.String(p.Object(), "type"); {
	case ok && policy != "Cluster" && policy != "Local":
		val.Unsupported(path, policy, "Cluster", "Local")
	case !ok && (kind == "NodePort" || kind == "LoadBalancer" || kind == "ClusterIP"):
		val.Required(path, "")
	}
}

// serviceUpdate checks that addresses and their families stay, except that a second one may be added or removed.
func serviceUpdate(val *rule.Validation, _ rule.Value) {
	spec, was, path := object.Map(val.Obj, "spec"), object.Map(val.Old, "spec"), field.NewPath("spec")
	if object.String(spec, "type") != "ExternalName" && object.String(was, "type") != "ExternalName" {
		addressesStay(val, spec, was, path)
		familiesStay(val, spec, was, path)
	}
	if object.String(spec, "type") == "LoadBalancer" && object.String(was, "type") == "LoadBalancer" &&
		spec["loadBalancerClass"] != was["loadBalancerClass"] {
		val.Invalid(path.Child("loadBalancerClass"), spec["loadBalancerClass"], "may not change once set")
	}
	if NeedsHealthPort(spec) && NeedsHealthPort(was) &&
		!rule.Equivalent(spec["healthCheckNodePort"], was["healthCheckNodePort"]) {
		val.Forbidden(path.Child("healthCheckNodePort"), "field is immutable")
	}
}

func addressesStay(val *rule.Validation, spec, was object.Object, path *field.Path) {
	if headless(spec) && headless(was) {
		return
	}
	now, old := rule.Strings(spec["clusterIPs"]), rule.Strings(was["clusterIPs"])
	at := path.Child("clusterIPs")
	const stays = "may not change once set"
	switch {
	case len(now) == len(old):
		for i := range old {
			if old[i] != now[i] {
				val.Invalid(at.Index(i), now, stays)
			}
		}
		return
	case len(now) == 0:
		val.Invalid(at.Index(0), now, "primary clusterIP can not be unset")
	case len(old) > 0 && now[0] != old[0]:
		val.Invalid(at.Index(0), now, stays)
	}
	if len(old) > len(now) && len(now) == 1 && spec["ipFamilyPolicy"] != "SingleStack" {
		val.Invalid(path.Child("ipFamilyPolicy"), spec["ipFamilyPolicy"],
			"must be set to 'SingleStack' when releasing the secondary clusterIP")
	}
}

func familiesStay(val *rule.Validation, spec, was object.Object, path *field.Path) {
	if headless(spec) || headless(was) {
		return
	}
	now, old := rule.Strings(spec["ipFamilies"]), rule.Strings(was["ipFamilies"])
	at := path.Child("ipFamilies").Index(0)
	const stays = "may not change once set"
	switch {
	case len(now) == len(old):
		for i := range old {
			if old[i] != now[i] {
				val.Invalid(at, now, stays)
			}
		}
		return
	case len(now) < len(old) && rule.IsEmpty(spec["clusterIPs"]):
		val.Invalid(at, now, "primary ipFamily can not be unset")
	}
	if len(now) > 0 && len(old) > 0 && now[0] != old[0] {
		val.Invalid(at, rule.Strings(spec["clusterIPs"]), stays)
	}
	if len(old) > len(now) && len(now) == 1 && spec["ipFamilyPolicy"] != "SingleStack" {
		val.Invalid(path.Child("ipFamilyPolicy"), spec["ipFamilyPolicy"],
			"must be set to 'SingleStack' when releasing the secondary ipFamily")
	}
}

func serviceStatus(val *rule.Validation, _ rule.Value) {
	path := field.NewPath("status", "loadBalancer", "ingress")
	list := rule.Objects(object.Map(val.Obj, "status", "loadBalancer")["ingress"])
	if object.String(object.Map(val.Obj, "spec"), "type") != "LoadBalancer" && len(list) > 0 {
		val.Forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")
		return
	}
	for i, in := range list {
		at, ip := path.Index(i), object.String(in, "ip")
		mode, ok := in["ipMode"].(string)
		switch {
		case !ok && ip != "":
			rule.CheckLoadBalancerAddress(val, in, at)
			val.Required(at.Child("ipMode"), "must be specified when `ip` is set")
			continue
		case ok && ip == "":
			val.Forbidden(at.Child("ipMode"), "may not be specified when `ip` is not set")
		case ok && mode != "VIP" && mode != "Proxy":
			val.Unsupported(at.Child("ipMode"), mode, "Proxy", "VIP")
		}
		rule.CheckLoadBalancerAddress(val, in, at)
	}
}
