package core

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

// podStatus validates a kubelet's status report.
func podStatus(val *rule.Validation, _ rule.Value) {
	annotationsKept(val)
	pod.ValidateAnnotations(val, rule.StringMap(object.Map(val.Obj, "metadata")["annotations"]),
		object.Map(val.Obj, "spec"),
		field.NewPath("metadata", "annotations"))
	status, was, path := object.Map(val.Obj, "status"), object.Map(val.Old, "status"), field.NewPath("status")
	for i, c := range rule.Objects(status["conditions"]) {
		at := path.Child("conditions").Index(i)
		if n, _ := object.Int(c, "observedGeneration"); n < 0 {
			val.Invalid(at.Child("observedGeneration"), n, "must be a non-negative integer")
		}
		if kind := object.String(c, "type"); kind != "PodScheduled" && kind != "Ready" && kind != "Initialized" {
			val.Invalids(at.Child("Type"), kind, validation.IsQualifiedName(kind))
		}
	}
	if node := object.String(status, "nominatedNodeName"); node != "" &&
		node != object.String(was, "nominatedNodeName") {
		val.Invalids(path.Child("nominatedNodeName"), node, validation.IsDNS1123Subdomain(node))
		if object.String(object.Map(val.Old, "spec"), "nodeName") != "" {
			val.Forbidden(path.Child("nominatedNodeName"), "may not be set on pods that are already bound to a node")
		}
	}
	if n, _ := object.Int(status, "observedGeneration"); n < 0 {
		val.Invalid(path.Child("observedGeneration"), n, "must be a non-negative integer")
	}
	if class := object.String(status, "qosClass"); class != object.String(was, "qosClass") {
		val.Invalid(path.Child("qosClass"), class, "field is immutable")
	}
	for _, list := range []string{"containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"} {
		endedStaysEnded(val, list, path.Child(list))
	}
	claimStatuses(val, status, path.Child("resourceClaimStatuses"))
	extendedClaim(val, object.Map(status, "extendedResourceClaimStatus"), path.Child("extendedResourceClaimStatus"))
	podAddresses(val, "podIPs", path.Child("podIPs"))
	podAddresses(val, "hostIPs", path.Child("hostIPs"))
	containerStatuses(val, status, path)
}

// endedStaysEnded lets an ended container run again only if its restart policy allows it.
func endedStaysEnded(val *rule.Validation, list string, path *field.Path) {
	running := map[string]bool{}
	for _, now := range rule.Objects(object.Map(val.Obj, "status")[list]) {
		if object.Map(now, "state", "terminated") == nil {
			running[object.String(now, "name")] = true
		}
	}
	spec := object.Map(val.Old, "spec")
	containers := byName(rule.Objects(spec[strings.TrimSuffix(list, "Statuses")+"s"]))
	allRestart := anyRestartsAll(spec)
	for i, was := range rule.Objects(object.Map(val.Old, "status")[list]) {
		ended, name := object.Map(was, "state", "terminated"), object.String(was, "name")
		if ended == nil || !running[name] {
			continue
		}
		code, _ := object.Int(ended, "exitCode")
		if list == "ephemeralContainerStatuses" || !allRestart && !startsAgain(spec, containers[name], code) {
			val.Forbidden(path.Index(i).Child("state"), "may not be transitioned to non-terminated state")
		}
	}
}

// byName returns the first container of each name.
func byName(containers []object.Object) map[string]object.Object {
	out := make(map[string]object.Object, len(containers))
	for _, c := range containers {
		name := object.String(c, "name")
		if _, ok := out[name]; !ok {
			out[name] = c
		}
	}
	return out
}

// anyRestartsAll reports whether a container can restart all containers.
func anyRestartsAll(spec object.Object) bool {
	all := false
	pod.Containers(spec, nil, func(c object.Object, _ *field.Path) {
		for _, r := range rule.Objects(c["restartPolicyRules"]) {
			all = all || object.String(r, "action") == "RestartAllContainers"
		}
	})
	return all
}

// startsAgain reports whether a container that has ended with a code is started again. nil is an unknown container.
func startsAgain(spec, c object.Object, code int64) bool {
	if c == nil {
		return false
	}
	for _, r := range rule.Objects(c["restartPolicyRules"]) {
		values, _ := object.Map(r, "exitCodes")["values"].([]any)
		if slices.Contains(values, any(code)) == (object.String(object.Map(r, "exitCodes"), "operator") == "In") {
			return true
		}
	}
	policy := rule.Or(object.String(c, "restartPolicy"), object.String(spec, "restartPolicy"))
	return policy == "Always" || policy == "OnFailure" && code != 0
}

func claimStatuses(val *rule.Validation, status object.Object, path *field.Path) {
	claims := sets.Set[string]{}
	for _, c := range rule.Objects(object.Map(val.Obj, "spec")["resourceClaims"]) {
		claims.Insert(object.String(c, "name"))
	}
	seen := map[string]bool{}
	for i, s := range rule.Objects(status["resourceClaimStatuses"]) {
		at, name := path.Index(i), object.String(s, "name")
		if !claims.Has(name) {
			val.Invalid(at.Child("name"), name, "must match the name of an entry in `spec.resourceClaims`")
		}
		if seen[name] {
			val.Duplicate(at.Child("name"), name)
		}
		seen[name] = true
		if claim, ok := s["resourceClaimName"].(string); ok {
			val.Invalids(at.Child("resourceClaimName"), claim, validation.IsDNS1123Subdomain(claim))
		}
	}
}

// podAddresses validates the addresses of a pod or its host: at most one of each family.
func podAddresses(val *rule.Validation, list string, path *field.Path) {
	status := object.Map(val.Obj, "status")
	old, now := sets.Set[string]{}, []string(nil)
	for _, e := range rule.Objects(object.Map(val.Old, "status")[list]) {
		old.Insert(object.String(e, "ip"))
	}
	for i, e := range rule.Objects(status[list]) {
		ip := object.String(e, "ip")
		if i == 0 && list == "hostIPs" && ip != object.String(status, "hostIP") {
			val.Invalid(path.Index(0).Child("ip"), ip, "must be equal to `hostIP`")
		}
		now = append(now, ip)
		val.Errs = append(val.Errs, val.IP(path.Index(i), ip, old)...)
	}
	if len(now) > 1 && !(len(now) == 2 && twoFamilies(now)) {
		val.Invalid(path, status[list], "may specify no more than one IP for each IP family")
	}
}
