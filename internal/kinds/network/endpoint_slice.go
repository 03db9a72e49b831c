package network

import (
	"reflect"
	"slices"
	"strconv"

	discoveryv1 "k8s.io/api/discovery/v1"
	unversioned "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func endpointSliceKind() rule.Kind {
	return rule.Of[discoveryv1.EndpointSlice](rule.Kind{
		Group: discoveryV1, Kind: "EndpointSlice", Plural: "endpointslices", Generation: true,
		Strategy: &catalog.Strategy{
			Cells: rule.Printed(endpointSliceCells), PrepareCreate: prepareSliceCreate,
			PrepareUpdate:       prepareSliceUpdate,
			UnconditionalUpdate: true,
		},
		Warn: warnEndpointSlice,
	})
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
			return rule.Unset
		}
		return rule.FirstFew(l, 3, ",")
	}
	return []any{s.Name, string(s.AddressType), list(ports), list(addresses), rule.Ago(s.CreationTimestamp, e)}
}

const hostnameLabel = "kubernetes.io/hostname"

func prepareSliceCreate(obj object.Object, _ catalog.Env) { dropTopology(obj, nil) }

// prepareSliceUpdate counts changes of labels too.
func prepareSliceUpdate(obj, old object.Object, _ string, _ catalog.Env) {
	if !rule.SameBeyond(obj, old, "metadata") ||
		!reflect.DeepEqual(object.Map(obj, "metadata", "labels"), object.Map(old, "metadata", "labels")) {
		rule.RaiseGeneration(obj, old)
	}
	if !reflect.DeepEqual(obj["endpoints"], old["endpoints"]) {
		dropTopology(obj, old)
	}
}

// dropTopology drops a field that this version shows and does not accept. It keeps the node of an old endpoint.
func dropTopology(obj, old object.Object) {
	known := map[string]bool{}
	for _, e := range object.Objects(old["endpoints"]) {
		known[object.String(e, "deprecatedTopology", hostnameLabel)] = true
	}
	for _, e := range object.Objects(obj["endpoints"]) {
		node := object.String(e, "deprecatedTopology", hostnameLabel)
		if e["nodeName"] == nil && node != "" && known[node] && len(validation.IsDNS1123Subdomain(node)) == 0 {
			e["nodeName"] = node
		}
		delete(e, "deprecatedTopology")
	}
}

var discoveryV1 = rule.Group{Name: "discovery.k8s.io", Version: "v1", Priority: 16200, Rank: 15}

func warnEndpointSlice(w *rule.Warnings) {
	kind := object.String(w.Obj, "addressType")
	if w.Old == nil && kind == "FQDN" {
		// the field is not in a spec; the text is Kubernetes'
		w.Addf(field.NewPath("spec", "addressType"), "FQDN endpoints are deprecated")
	}
	if kind == "FQDN" {
		return
	}
	switch w.Label("endpointslice.kubernetes.io/managed-by") {
	case "endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io":
		return
	}
	for i, endpoint := range rule.Objects(w.Obj["endpoints"]) {
		for k, address := range rule.Strings(endpoint["addresses"]) {
			w.IP(field.NewPath("endpoints").Index(i).Child("addresses").Index(k), address)
		}
	}
}

func slicePorts(val *rule.Validation, p rule.Value) {
	list, seen := rule.Objects(p.New), map[string]bool{}
	if len(list) > 20000 {
		val.Add(field.TooMany(p.Path, len(list), 20000))
		return
	}
	for i, port := range list {
		at, name := p.Path.Index(i), object.String(port, "name")
		if name != "" {
			val.Invalids(at.Child("name"), name, validation.IsDNS1123Label(name))
		}
		if seen[name] {
			val.Duplicate(at.Child("name"), name)
		}
		seen[name] = true
		protocol, ok := port["protocol"].(string)
		if !ok {
			val.Required(at.Child("protocol"), "")
		} else if !slices.Contains(rule.Protocols, protocol) {
			val.Unsupported(at.Child("protocol"), protocol, rule.Protocols...)
		}
		if app, ok := port["appProtocol"].(string); ok {
			val.Invalids(at.Child("appProtocol"), app, validation.IsQualifiedName(app))
		}
	}
}

func sliceEndpoints(val *rule.Validation, p rule.Value) {
	if val.Old != nil && rule.Equivalent(p.New, p.Old) {
		return
	}
	list := rule.Objects(p.New)
	if len(list) > 1000 {
		val.Add(field.TooMany(p.Path, len(list), 1000))
		return
	}
	for i, e := range list {
		at := p.Path.Index(i)
		sliceAddresses(val, rule.Strings(e["addresses"]), at.Child("addresses"))
		if node, ok := e["nodeName"].(string); ok {
			val.Invalids(at.Child("nodeName"), node, validation.IsDNS1123Subdomain(node))
		}
		topology := rule.StringMap(e["deprecatedTopology"])
		if len(topology) > 16 {
			val.Add(field.TooMany(at.Child("deprecatedTopology"), len(topology), 16))
		}
		val.Errs = append(val.Errs, unversioned.ValidateLabels(topology, at.Child("deprecatedTopology"))...)
		if name, ok := e["hostname"].(string); ok {
			val.Invalids(at.Child("hostname"), name, validation.IsDNS1123Label(name))
		}
		h := object.Map(e, "hints")
		if hints(val, h, "forZones", validation.IsValidLabelValue, at.Child("hints", "forZones")) {
			hints(val, h, "forNodes", validation.IsDNS1123Subdomain, at.Child("hints", "forNodes"))
		}
	}
}

func sliceAddresses(val *rule.Validation, list []string, path *field.Path) {
	if len(list) == 0 {
		val.Required(path, "")
	} else if len(list) > 100 {
		val.Add(field.TooMany(path, len(list), 100))
	}
	for i, a := range list {
		at := path.Index(i)
		switch family := object.String(val.Obj, "addressType"); family {
		case "IPv4", "IPv6":
			var errs field.ErrorList
			if family == "IPv4" {
				errs = val.IP(at, a, nil)
			} else {
				errs = validation.IsValidIP(at, a)
			}
			if len(errs) > 0 {
				val.Errs = append(val.Errs, errs...)
				continue
			}
			if netutils.IsIPv6String(a) != (family == "IPv6") {
				val.Invalid(path, a, "must be an "+family+" address")
			}
			rule.CheckReachableIP(val, a, at)
		case "FQDN":
			val.Errs = append(val.Errs, validation.IsFullyQualifiedDomainName(at, a)...)
		}
	}
}

func hints(
	val *rule.Validation, hints object.Object, name string, format func(string) []string, path *field.Path,
) bool {
	list, seen := rule.Objects(hints[name]), map[string]bool{}
	if len(list) > 8 {
		val.Add(field.TooMany(path, len(list), 8))
		return false
	}
	for i, h := range list {
		s, at := object.String(h, "name"), path.Index(i).Child("name")
		if seen[s] {
			val.Duplicate(at, s)
		}
		seen[s] = true
		val.Invalids(at, s, format(s))
	}
	return true
}

// endpointSliceFunctions are the functions that endpoint_slice.txt names.
func endpointSliceFunctions() rule.Functions {
	return rule.Functions{
		"sliceEndpoints": sliceEndpoints,
		"slicePorts":     slicePorts,
	}
}
