package check

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// podStatus judges what a kubelet reports.
func podStatus(j *judgement, _ place) {
	j.annotationsKept()
	j.podAnnotations(pairs(inner(j.obj, "metadata")["annotations"]), inner(j.obj, "spec"),
		field.NewPath("metadata", "annotations"))
	status, was, path := inner(j.obj, "status"), inner(j.old, "status"), field.NewPath("status")
	for i, c := range objects(status["conditions"]) {
		at := path.Child("conditions").Index(i)
		if n, _ := number(c, "observedGeneration"); n < 0 {
			j.invalid(at.Child("observedGeneration"), n, "must be a non-negative integer")
		}
		if kind := text1(c, "type"); kind != "PodScheduled" && kind != "Ready" && kind != "Initialized" {
			j.invalids(at.Child("Type"), kind, validation.IsQualifiedName(kind))
		}
	}
	if node := text1(status, "nominatedNodeName"); node != "" && node != text1(was, "nominatedNodeName") {
		j.invalids(path.Child("nominatedNodeName"), node, validation.IsDNS1123Subdomain(node))
		if text1(inner(j.old, "spec"), "nodeName") != "" {
			j.forbidden(path.Child("nominatedNodeName"), "may not be set on pods that are already bound to a node")
		}
	}
	if n, _ := number(status, "observedGeneration"); n < 0 {
		j.invalid(path.Child("observedGeneration"), n, "must be a non-negative integer")
	}
	if class := text1(status, "qosClass"); class != text1(was, "qosClass") {
		j.invalid(path.Child("qosClass"), class, "field is immutable")
	}
	for _, list := range []string{"containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"} {
		j.endedStaysEnded(list, path.Child(list))
	}
	j.claimStatuses(status, path.Child("resourceClaimStatuses"))
	j.extendedClaim(inner(status, "extendedResourceClaimStatus"), path.Child("extendedResourceClaimStatus"))
	j.podAddresses("podIPs", path.Child("podIPs"))
	j.podAddresses("hostIPs", path.Child("hostIPs"))
	j.containerStatuses(status, path)
}

// endedStaysEnded lets a container that has ended run again only if it may be started again.
func (j *judgement) endedStaysEnded(list string, path *field.Path) {
	spec := inner(j.old, "spec")
	for i, was := range objects(inner(j.old, "status")[list]) {
		ended := inner(was, "state", "terminated")
		if ended == nil {
			continue
		}
		code, _ := number(ended, "exitCode")
		for _, now := range objects(inner(j.obj, "status")[list]) {
			if text1(now, "name") != text1(was, "name") || inner(now, "state", "terminated") != nil {
				continue
			}
			if list == "ephemeralContainerStatuses" ||
				!startsAgain(spec, strings.TrimSuffix(list, "Statuses")+"s", text1(was, "name"), code) {
				j.forbidden(path.Index(i).Child("state"), "may not be transitioned to non-terminated state")
			}
			break
		}
	}
}

// startsAgain tells whether a container that has ended with a code is started again.
func startsAgain(spec object, list, name string, code int64) bool {
	all := false
	containers(spec, nil, func(c object, _ *field.Path) {
		for _, r := range objects(c["restartPolicyRules"]) {
			all = all || text1(r, "action") == "RestartAllContainers"
		}
	})
	if all {
		return true
	}
	for _, c := range objects(spec[list]) {
		if text1(c, "name") != name {
			continue
		}
		for _, r := range objects(c["restartPolicyRules"]) {
			values, _ := inner(r, "exitCodes")["values"].([]any)
			if slices.Contains(values, any(code)) == (text1(inner(r, "exitCodes"), "operator") == "In") {
				return true
			}
		}
		policy := or(text1(c, "restartPolicy"), text1(spec, "restartPolicy"))
		return policy == "Always" || policy == "OnFailure" && code != 0
	}
	return false
}

func (j *judgement) claimStatuses(status object, path *field.Path) {
	var claims []string
	for _, c := range objects(inner(j.obj, "spec")["resourceClaims"]) {
		claims = append(claims, text1(c, "name"))
	}
	seen := map[string]bool{}
	for i, s := range objects(status["resourceClaimStatuses"]) {
		at, name := path.Index(i), text1(s, "name")
		if !slices.Contains(claims, name) {
			j.invalid(at.Child("name"), name, "must match the name of an entry in `spec.resourceClaims`")
		}
		if seen[name] {
			j.duplicate(at.Child("name"), name)
		}
		seen[name] = true
		if claim, ok := s["resourceClaimName"].(string); ok {
			j.invalids(at.Child("resourceClaimName"), claim, validation.IsDNS1123Subdomain(claim))
		}
	}
}

// podAddresses judges the addresses of a pod or its host: at most one of each family.
func (j *judgement) podAddresses(list string, path *field.Path) {
	status := inner(j.obj, "status")
	var old, now []string
	for _, e := range objects(inner(j.old, "status")[list]) {
		old = append(old, text1(e, "ip"))
	}
	for i, e := range objects(status[list]) {
		ip := text1(e, "ip")
		if i == 0 && list == "hostIPs" && ip != text1(status, "hostIP") {
			j.invalid(path.Index(0).Child("ip"), ip, "must be equal to `hostIP`")
		}
		now = append(now, ip)
		j.errs = append(j.errs, validation.IsValidIPForLegacyField(path.Index(i), ip, true, old)...)
	}
	if len(now) > 1 && !(len(now) == 2 && twoFamilies(now)) {
		j.invalid(path, status[list], "may specify no more than one IP for each IP family")
	}
}

// twoFamilies tells whether addresses are of both families.
func twoFamilies(ips []string) bool {
	six := 0
	for _, ip := range ips {
		if strings.Contains(ip, ":") {
			six++
		}
	}
	return six > 0 && six < len(ips)
}
