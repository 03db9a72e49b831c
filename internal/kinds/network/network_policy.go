package network

import (
	"net"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func networkPolicyKind() rule.Kind {
	return rule.Of[networkingv1.NetworkPolicy](rule.Kind{
		Group: networkingV1, Kind: "NetworkPolicy", Plural: "networkpolicies", Short: []string{"netpol"},
		Generation: true,
		Strategy: &catalog.Strategy{
			Cells: rule.Printed(networkPolicyCells), Default: defaultNetworkPolicy, UnconditionalUpdate: true,
		},
		Warn: warnNetworkPolicy,
	})
}

func networkPolicyCells(p *networkingv1.NetworkPolicy, e catalog.Env) []any {
	return []any{p.Name, metav1.FormatLabelSelector(&p.Spec.PodSelector), rule.Ago(p.CreationTimestamp, e)}
}

// defaultNetworkPolicy sets the types of a policy without types: Ingress, and Egress if it has egress rules.
func defaultNetworkPolicy(obj object.Object) {
	spec := object.Child(obj, "spec")
	if types, _ := spec["policyTypes"].([]any); len(types) > 0 {
		return
	}
	types := []any{"Ingress"}
	if egress, _ := spec["egress"].([]any); len(egress) > 0 {
		types = append(types, "Egress")
	}
	spec["policyTypes"] = types
}

func warnNetworkPolicy(w *rule.Warnings) {
	for _, direction := range [][2]string{{"ingress", "from"}, {"egress", "to"}} {
		for i, traffic := range rule.Objects(object.Map(w.Obj, "spec")[direction[0]]) {
			for k, peer := range rule.Objects(traffic[direction[1]]) {
				block := object.Map(peer, "ipBlock")
				if block == nil {
					continue
				}
				path := field.NewPath("spec", direction[0]).Index(i).Child(direction[1]).Index(k).Child("ipBlock")
				w.CIDR(path.Child("cidr"), object.String(block, "cidr"))
				for n, except := range rule.Strings(block["except"]) {
					w.CIDR(path.Child("except").Index(n), except)
				}
			}
		}
	}
}

func policyPort(val *rule.Validation, p rule.Value) {
	port := p.Object()
	if protocol, ok := port["protocol"].(string); ok && !slices.Contains(rule.Protocols, protocol) {
		val.Unsupported(p.Path.Child("protocol"), protocol, "TCP", "UDP", "SCTP")
	}
	end, hasEnd := object.Int(port, "endPort")
	at := p.Path.Child("endPort")
	switch v := port["port"].(type) {
	case int64:
		val.Invalids(p.Path.Child("port"), v, validation.IsValidPortNum(int(v)))
		if !hasEnd {
			return
		}
		if end < v {
			val.Invalid(at, v, "must be greater than or equal to `port`")
		}
		val.Invalids(at, end, validation.IsValidPortNum(int(end)))
	case string:
		if hasEnd {
			val.Invalid(at, end, "may not be specified when `port` is non-numeric")
		}
		val.Invalids(p.Path.Child("port"), v, validation.IsValidPortName(v))
	default:
		if hasEnd {
			val.Invalid(at, end, "may not be specified when `port` is not specified")
		}
	}
}

// peer validates a peer: pods, or an IP block.
func peer(val *rule.Validation, p rule.Value) {
	n := 0
	for _, name := range []string{"podSelector", "namespaceSelector"} {
		if p.Object()[name] != nil {
			n++
			selector, path := rule.LabelSelector(p.Object()[name]), p.Path.Child(name)
			errs := rule.SelectorErrors(selector, false, path)
			if len(errs) > 0 && val.Was(rule.SelectorValues) { // the same as for spec.podSelector
				errs = rule.SelectorErrors(selector, true, path)
			}
			val.Errs = append(val.Errs, errs...)
		}
	}
	block := object.Map(p.Object(), "ipBlock")
	if block != nil {
		ipBlock(val, block, p.Path.Child("ipBlock"))
	}
	switch {
	case n == 0 && block == nil:
		val.Required(p.Path, "must specify a peer")
	case n > 0 && block != nil:
		val.Forbidden(p.Path, "may not specify both ipBlock and another peer")
	}
}

func ipBlock(val *rule.Validation, block object.Object, path *field.Path) {
	cidr := object.String(block, "cidr")
	if cidr == "" {
		val.Required(path.Child("cidr"), "")
		return
	}
	had := val.OldValues("ipBlock", func(old object.Object) []string { return blocksOf(object.Map(old, "spec")) })
	val.Errs = append(val.Errs, val.CIDR(path.Child("cidr"), cidr, had)...)
	_, whole, err := netutils.ParseCIDRSloppy(cidr)
	if err != nil {
		return
	}
	for i, s := range rule.Strings(block["except"]) {
		at := path.Child("except").Index(i)
		val.Errs = append(val.Errs, val.CIDR(at, s, had)...)
		if _, part, err := netutils.ParseCIDRSloppy(s); err == nil && !within(part, whole) {
			val.Invalid(at, s, "must be a strict subset of `cidr`")
		}
	}
}

func within(part, whole *net.IPNet) bool {
	a, _ := part.Mask.Size()
	b, _ := whole.Mask.Size()
	return whole.Contains(part.IP) && b < a
}

// blocksOf returns the IP blocks of a policy, which stay allowed.
func blocksOf(spec object.Object) (out []string) {
	for list, peers := range map[string]string{"ingress": "from", "egress": "to"} {
		for _, traffic := range rule.Objects(spec[list]) {
			for _, p := range rule.Objects(traffic[peers]) {
				if b := object.Map(p, "ipBlock"); b != nil {
					out = append(append(out, object.String(b, "cidr")), rule.Strings(b["except"])...)
				}
			}
		}
	}
	return out
}

func policyTypes(val *rule.Validation, p rule.Value) {
	list := rule.Strings(p.New)
	if len(list) > 2 {
		val.Invalid(p.Path, list, "may not specify more than two policyTypes")
		return
	}
	for i, t := range list {
		if t != "Ingress" && t != "Egress" {
			val.Unsupported(p.Path.Index(i), t, "Ingress", "Egress")
		}
	}
}

// networkPolicyFunctions are the functions that network_policy.txt names.
func networkPolicyFunctions() rule.Functions {
	return rule.Functions{
		"peer":        peer,
		"policyPort":  policyPort,
		"policyTypes": policyTypes,
	}
}
