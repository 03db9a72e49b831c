package core

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func serviceKind() rule.Kind {
	return rule.Of[corev1.Service](rule.Kind{
		Group: coreV1, Kind: "Service", Plural: "services", Short: []string{"svc"}, Categories: rule.CategoryAll,
		Prefix: "services/specs", Status: true, ReturnsDeleted: true,
		Subresources: []catalog.Subresource{rule.Connection("proxy", "ServiceProxyOptions", proxied...)},
		Strategy: &catalog.Strategy{
			Cells:         rule.Printed(serviceCells),
			Default:       defaultService,
			PrepareCreate: prepareServiceCreate,
			PrepareUpdate: prepareServiceUpdate,
			ValidName:     validation.NameIsDNSLabel, UnconditionalUpdate: true, CreateOnUpdate: true,
			FieldLabels: rule.FieldLabels("spec.clusterIP", "spec.type"),
		},
		Warn:       warnService,
		WarnStatus: rule.WarnLoadBalancer,
	})
}

func serviceCells(s *corev1.Service, e catalog.Env) []any {
	ip := rule.None
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
	return []any{s.Name, string(s.Spec.Type), ip, externalIP(s), rule.OrNone(strings.Join(ports, ",")),
		rule.Ago(s.CreationTimestamp, e), rule.LabelText(s.Spec.Selector)}
}

func externalIP(s *corev1.Service) string {
	switch s.Spec.Type {
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort:
		return rule.OrNone(strings.Join(s.Spec.ExternalIPs, ","))
	case corev1.ServiceTypeExternalName:
		return s.Spec.ExternalName
	case corev1.ServiceTypeLoadBalancer:
		var at []string
		for _, in := range s.Status.LoadBalancer.Ingress {
			at = append(at, rule.OrText(in.IP, in.Hostname))
		}
		return rule.OrText(strings.Join(append(rule.Distinct(at), s.Spec.ExternalIPs...), ","), "<pending>")
	}
	return "<unknown>"
}

// clientAffinity is the default session affinity timeout in seconds: three hours.
const clientAffinity = 10800

func defaultService(obj object.Object) {
	spec := object.Child(obj, "spec")
	switch object.String(spec, "sessionAffinity") {
	case "None":
		delete(spec, "sessionAffinityConfig")
	case "ClientIP":
		config, _ := spec["sessionAffinityConfig"].(map[string]any)
		client, _ := config["clientIP"].(map[string]any)
		if client["timeoutSeconds"] == nil {
			spec["sessionAffinityConfig"] = map[string]any{
				"clientIP": map[string]any{"timeoutSeconds": int64(clientAffinity)},
			}
		}
	}
	for _, p := range object.Objects(spec["ports"]) {
		if t := p["targetPort"]; t == nil || t == int64(0) || t == "" {
			p["targetPort"] = p["port"]
		}
	}
	kind := object.String(spec, "type")
	external, _ := spec["externalIPs"].([]any)
	if kind == "LoadBalancer" || kind == "NodePort" || kind == "ClusterIP" && len(external) > 0 {
		rule.SetDefault(spec, "externalTrafficPolicy", "Cluster")
	}
	if kind == "NodePort" || kind == "LoadBalancer" || kind == "ClusterIP" {
		rule.SetDefault(spec, "internalTrafficPolicy", "Cluster")
	}
	if policy := object.String(spec, "internalTrafficPolicy"); kind == "ExternalName" &&
		(policy == "Cluster" || policy == "Local") {
		// it has no traffic; a service that was of another type still has the field
		delete(spec, "internalTrafficPolicy")
	}
	if kind != "LoadBalancer" {
		return
	}
	rule.SetDefault(spec, "allocateLoadBalancerNodePorts", true)
	status, _ := obj["status"].(map[string]any)
	balancer, _ := status["loadBalancer"].(map[string]any)
	for _, in := range object.Objects(balancer["ingress"]) {
		if object.String(in, "ip") != "" {
			rule.SetDefault(in, "ipMode", "VIP")
		}
	}
}

func warnService(w *rule.Warnings) {
	spec, path := object.Map(w.Obj, "spec"), field.NewPath("spec")
	kind, clusterIP := object.String(spec, "type"), object.String(spec, "clusterIP")
	headless := kind == "ClusterIP" && clusterIP == "None"
	externalIPs, balancerIP := rule.Strings(spec["externalIPs"]), object.String(spec, "loadBalancerIP")
	if _, ok := w.Annotations()["service.kubernetes.io/topology-aware-hints"]; ok {
		w.AddText(
			"annotation service.kubernetes.io/topology-aware-hints is deprecated, please use service.kubernetes.io/topology-mode instead")
	}
	if clusterIP != "" && clusterIP != "None" {
		for i, ip := range rule.Strings(spec["clusterIPs"]) {
			w.IP(path.Child("clusterIPs").Index(i), ip)
		}
	}
	if headless {
		if balancerIP != "" {
			w.AddText("spec.loadBalancerIP is ignored for headless services")
		}
		if len(externalIPs) > 0 {
			w.AddText("spec.externalIPs is ignored for headless services")
		}
		if object.String(spec, "sessionAffinity") != "None" {
			w.AddText("spec.SessionAffinity is ignored for headless services")
		}
	}
	for i, ip := range externalIPs {
		w.IP(path.Child("externalIPs").Index(i), ip)
	}
	if len(externalIPs) > 0 && !headless && kind != "ExternalName" {
		w.AddText("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
	}
	if balancerIP != "" {
		w.IP(path.Child("loadBalancerIP"), balancerIP)
	}
	for i, cidr := range rule.Strings(spec["loadBalancerSourceRanges"]) {
		w.CIDR(path.Child("loadBalancerSourceRanges").Index(i), cidr)
	}
	if kind == "ExternalName" && len(externalIPs) > 0 {
		w.AddText(`spec.externalIPs is ignored when spec.type is "ExternalName"`)
	}
	if kind != "ExternalName" && object.String(spec, "externalName") != "" {
		w.AddText(`spec.externalName is ignored when spec.type is not "ExternalName"`)
	}
	if object.String(spec, "trafficDistribution") == "PreferClose" {
		w.Addf(path.Child("trafficDistribution"), `"PreferClose" is deprecated; use "PreferSameZone"`)
	}
}

// NeedsHealthPort reports whether a service has a health check node port.
func NeedsHealthPort(spec map[string]any) bool {
	return object.String(spec, "type") == "LoadBalancer" && object.String(spec, "externalTrafficPolicy") == "Local"
}

// serviceFunctions are the functions that service.txt names.
func serviceFunctions() rule.Functions {
	return rule.Functions{
		"clusterIPs":            func(val *rule.Validation, p rule.Value) { clusterIPs(val, p.Object(), p.Path) },
		"externalIP":            checkExternalIP,
		"internalTrafficPolicy": internalTrafficPolicy,
		"loadBalancer":          loadBalancer,
		"portConflicts":         portConflicts,
		"service":               service,
		"servicePorts":          servicePorts,
		"serviceShape":          serviceShape,
		"serviceStatus":         serviceStatus,
		"serviceUpdate":         serviceUpdate,
		"sessionAffinity":       sessionAffinity,
		"sourceRanges":          sourceRanges,
		"trafficPolicy":         trafficPolicy,
	}
}
