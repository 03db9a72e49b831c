package core

import (
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func endpointsKind() rule.Kind {
	//lint:ignore SA1019 clients still read and write them
	return rule.Of[corev1.Endpoints](rule.Kind{
		Group: coreV1, Kind: "Endpoints",
		Deprecated: "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice", Plural: "endpoints",
		Short: []string{"ep"}, Prefix: "services/endpoints",
		Strategy: &catalog.Strategy{
			Cells: rule.Printed(endpointsCells), UnconditionalUpdate: true, CreateOnUpdate: true,
		},
		Warn: warnEndpoints,
	})
}

//lint:ignore SA1019 clients still read and write them
func endpointsCells(ep *corev1.Endpoints, e catalog.Env) []any {
	if len(ep.Subsets) == 0 {
		return []any{ep.Name, rule.None, rule.Ago(ep.CreationTimestamp, e)}
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
	return []any{ep.Name, rule.FirstFew(list, 3, ","), rule.Ago(ep.CreationTimestamp, e)}
}

// warnEndpoints ignores Endpoints of Kubernetes' own controller, which normalizes addresses itself.
func warnEndpoints(w *rule.Warnings) {
	if w.Label("endpoints.kubernetes.io/managed-by") == "endpoint-controller" {
		return
	}
	for i, subset := range rule.Objects(w.Obj["subsets"]) {
		for _, list := range []string{"addresses", "notReadyAddresses"} {
			for k, address := range rule.Objects(subset[list]) {
				w.IP(field.NewPath("subsets").Index(i).Child(list).Index(k).Child("ip"), object.String(address, "ip"))
			}
		}
	}
}

// endpointSubsets validates the addresses of Endpoints, if they have changed: older servers accepted more.
func endpointSubsets(val *rule.Validation, p rule.Value) {
	if val.Old != nil && rule.Equivalent(p.New, p.Old) {
		return
	}
	for i, s := range rule.Objects(p.New) {
		at := p.Path.Index(i)
		if rule.IsEmpty(s["addresses"]) && rule.IsEmpty(s["notReadyAddresses"]) {
			val.Required(at, "must specify `addresses` or `notReadyAddresses`")
		}
		for _, list := range []string{"addresses", "notReadyAddresses"} {
			for k, a := range rule.Objects(s[list]) {
				val.Block("EndpointAddress", a, nil, at.Child(list).Index(k))
			}
		}
		ports := rule.Objects(s["ports"])
		for k, port := range ports {
			name := object.String(port, "name")
			if name == "" && len(ports) > 1 {
				val.Required(at.Child("ports").Index(k).Child("name"), "")
			} else if name != "" {
				val.Invalids(at.Child("ports").Index(k).Child("name"), name, validation.IsDNS1123Label(name))
			}
			val.Block("EndpointPort", port, nil, at.Child("ports").Index(k))
		}
	}
}

// endpointsFunctions are the functions that endpoints.txt names.
func endpointsFunctions() rule.Functions {
	return rule.Functions{
		"endpointIP": func(val *rule.Validation, p rule.Value) {
			s, _ := p.New.(string)
			rule.CheckReachableIP(val, s, p.Path)
		},
		"endpointSubsets": endpointSubsets,
	}
}
