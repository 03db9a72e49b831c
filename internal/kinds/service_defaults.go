package kinds

import "github.com/bowsprit/bowsprit/internal/api/catalog"

// clientAffinity is how long, in seconds, a client stays with its endpoint if nobody says: three hours.
const clientAffinity = 10800

func defaultService(obj catalog.Object) {
	spec := child(obj, "spec")
	switch catalog.Text(spec, "sessionAffinity") {
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
	for _, p := range catalog.Objects(spec["ports"]) {
		if t := p["targetPort"]; t == nil || t == int64(0) || t == "" {
			p["targetPort"] = p["port"]
		}
	}
	kind := catalog.Text(spec, "type")
	external, _ := spec["externalIPs"].([]any)
	if kind == "LoadBalancer" || kind == "NodePort" || kind == "ClusterIP" && len(external) > 0 {
		orElse(spec, "externalTrafficPolicy", "Cluster")
	}
	if kind == "NodePort" || kind == "LoadBalancer" || kind == "ClusterIP" {
		orElse(spec, "internalTrafficPolicy", "Cluster")
	}
	if policy := catalog.Text(spec, "internalTrafficPolicy"); kind == "ExternalName" &&
		(policy == "Cluster" || policy == "Local") {
		// it has no traffic; a service that was of another type still has the field
		delete(spec, "internalTrafficPolicy")
	}
	if kind != "LoadBalancer" {
		return
	}
	orElse(spec, "allocateLoadBalancerNodePorts", true)
	status, _ := obj["status"].(map[string]any)
	balancer, _ := status["loadBalancer"].(map[string]any)
	for _, in := range catalog.Objects(balancer["ingress"]) {
		if catalog.Text(in, "ip") != "" {
			orElse(in, "ipMode", "VIP")
		}
	}
}
