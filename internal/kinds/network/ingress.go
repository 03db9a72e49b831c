package network

import (
	"fmt"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func ingressKind() rule.Kind {
	return rule.Of[networkingv1.Ingress](rule.Kind{
		Group: networkingV1, Kind: "Ingress", Plural: "ingresses", Short: []string{"ing"}, Prefix: "ingress",
		Status: true, Generation: true,
		Strategy:   &catalog.Strategy{Cells: rule.Printed(ingressCells), UnconditionalUpdate: true},
		Warn:       warnIngress,
		WarnStatus: rule.WarnLoadBalancer,
	})
}

func ingressCells(in *networkingv1.Ingress, e catalog.Env) []any {
	var at []string
	for _, i := range in.Status.LoadBalancer.Ingress {
		at = append(at, rule.OrText(i.IP, i.Hostname))
	}
	ports := "80"
	if len(in.Spec.TLS) > 0 {
		ports = "80, 443"
	}
	return []any{in.Name, rule.Deref(in.Spec.IngressClassName, rule.None), hosts(in.Spec.Rules),
		strings.Join(rule.Distinct(at), ","),
		ports, rule.Ago(in.CreationTimestamp, e)}
}

// hosts shows three of the rules' hosts. As in Kubernetes, rules without a host are counted among the omitted ones.
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

func warnIngress(w *rule.Warnings) {
	const annotation = "kubernetes.io/ingress.class"
	if _, ok := w.Annotations()[annotation]; ok && w.Old == nil &&
		object.Map(w.Obj, "spec")["ingressClassName"] == nil {
		w.AddText(fmt.Sprintf("annotation %q is deprecated, please use 'spec.ingressClassName' instead", annotation))
	}
}

func ingressClassAnnotation(val *rule.Validation, _ rule.Value) {
	v, ok := object.Map(val.Obj, "metadata", "annotations")["kubernetes.io/ingress.class"].(string)
	if class, set := object.Map(val.Obj, "spec")["ingressClassName"].(string); ok && set && v != class {
		val.Invalid(field.NewPath("annotations").Child("kubernetes.io/ingress.class"), v,
			"must match `ingressClassName` when both are specified")
	}
}

func ingressRules(val *rule.Validation, p rule.Value) {
	if rule.IsEmpty(p.Object()["rules"]) && p.Object()["defaultBackend"] == nil {
		val.Invalid(p.Path, p.Object()["rules"], "either `defaultBackend` or `rules` must be specified")
	}
}

func ingressRule(val *rule.Validation, p rule.Value) {
	entry := p.Object()
	ingressHost(val, p)
	http, before := object.Map(entry, "http"), len(val.Errs)
	if http == nil {
		return
	}
	ingressPaths(val, http["paths"], p.Path.Child("http", "paths"))
	if len(val.Errs) > before && strings.Contains(object.String(entry, "host"), "*") && val.Excused(wildcardBackends) {
		val.Errs = val.Errs[:before]
	}
}

func ingressHost(val *rule.Validation, p rule.Value) {
	host, path := object.String(p.Object(), "host"), p.Path.Child("host")
	if host == "" {
		return
	}
	if netutils.ParseIPSloppy(host) != nil {
		val.Invalid(path, host, "must be a DNS name, not an IP address")
	}
	val.Invalids(path, host, hostOrWildcard(host))
}

func hostOrWildcard(s string) []string {
	if strings.Contains(s, "*") {
		return validation.IsWildcardDNS1123Subdomain(s)
	}
	return validation.IsDNS1123Subdomain(s)
}

func ingressPaths(val *rule.Validation, v any, path *field.Path) {
	list := rule.Objects(v)
	if len(list) == 0 {
		val.Required(path, "")
	}
	for i, e := range list {
		at, s := path.Index(i), object.String(e, "path")
		kind, ok := e["pathType"].(string)
		switch {
		case !ok:
			val.Required(at.Child("pathType"), "pathType must be specified")
			continue
		case kind == "Exact", kind == "Prefix":
			exactPath(val, s, at.Child("path"))
		case kind == "ImplementationSpecific":
			if s != "" {
				val.Invalids(at.Child("path"), s, rule.Absolute(s))
			}
		default:
			val.Unsupported(at.Child("pathType"), kind, "Exact", "ImplementationSpecific", "Prefix")
		}
		backend(val, object.Map(e, "backend"), at.Child("backend"))
	}
}

func exactPath(val *rule.Validation, s string, path *field.Path) {
	val.Invalids(path, s, rule.Absolute(s))
	for _, part := range []string{"//", "/./", "/../", "%2f", "%2F"} {
		if strings.Contains(s, part) {
			val.Invalid(path, s, fmt.Sprintf("must not contain '%s'", part))
		}
	}
	for _, end := range []string{"/..", "/."} {
		if strings.HasSuffix(s, end) {
			val.Invalid(path, s, fmt.Sprintf("cannot end with '%s'", end))
		}
	}
}

// backend validates where an Ingress sends requests: a port of a service, or another object.
func backend(val *rule.Validation, b object.Object, path *field.Path) {
	if b == nil {
		return
	}
	service, resource := object.Map(b, "service"), object.Map(b, "resource")
	switch {
	case service != nil && resource != nil:
		val.Invalid(path, "", "cannot set both resource and service backends")
		return
	case resource != nil:
		at := path.Child("resource")
		if group, ok := resource["apiGroup"].(string); ok {
			val.Invalids(at.Child("apiGroup"), group, validation.IsDNS1123Subdomain(group))
		}
		for _, name := range []string{"kind", "name"} {
			if s := object.String(resource, name); s == "" {
				val.Required(at.Child(name), "")
			} else {
				val.Invalids(at.Child(name), s, content.IsPathSegmentName(s))
			}
		}
		return
	case service == nil:
		val.Invalid(path, "", "resource or service backend is required")
		return
	}
	if name := object.String(service, "name"); name == "" {
		val.Required(path.Child("service", "name"), "")
	} else {
		val.Invalids(path.Child("service", "name"), name, validation.IsDNS1123Label(name))
	}
	port := object.Map(service, "port")
	name := object.String(port, "name")
	switch n, _ := object.Int(port, "number"); {
	case name != "" && n != 0:
		val.Invalid(path, "", "cannot set both port name & port number")
	case name != "":
		val.Invalids(path.Child("service", "port", "name"), name, validation.IsValidPortName(name))
	case n != 0:
		val.Invalids(path.Child("service", "port", "number"), n, validation.IsValidPortNum(int(n)))
	default:
		val.Required(path, "port name or number is required")
	}
}

func ingressTLS(val *rule.Validation, p rule.Value) {
	for i, host := range rule.Strings(p.Object()["hosts"]) {
		val.Invalids(p.Path.Child("hosts").Index(i), host, hostOrWildcard(host))
	}
	name := object.String(p.Object(), "secretName")
	if wrong := validation.IsDNS1123Subdomain(name); name != "" && len(wrong) > 0 && !val.Excused(tlsSecretName) {
		val.Invalids(p.Path.Child("secretName"), name, wrong)
	}
}

const tlsSecretName rule.Exception = "the name of a secret is one"

const wildcardBackends rule.Exception = "the rules of a host with an asterisk are valid"

// ingressFunctions are the functions that ingress.txt names.
func ingressFunctions() rule.Functions {
	return rule.Functions{
		"backend": func(val *rule.Validation, p rule.Value) { backend(val, p.Object(), p.Path) },
		"ingressAddress": func(val *rule.Validation, p rule.Value) {
			rule.CheckLoadBalancerAddress(val, p.Object(), p.Path)
		},
		"ingressClassAnnotation": ingressClassAnnotation,
		"ingressRule":            ingressRule,
		"ingressRules":           ingressRules,
		"ingressTLS":             ingressTLS,
	}
}
