package pod

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

// regularContainers validates spec.containers, which must have at least one.
func regularContainers(val *rule.Validation, p rule.Value) {
	list := rule.Objects(p.New)
	if len(list) == 0 {
		val.Required(p.Path, "")
		return
	}
	seen := map[string]bool{}
	for i, c := range list {
		path := p.Path.Index(i)
		val.Block("Container", c, nil, path)
		name := object.String(c, "name")
		if seen[name] {
			val.Duplicate(path.Child("name"), name)
		}
		seen[name] = true
		running(val, c, path)
		restartPolicy(val, c, path)
	}
	hostPortsOnce(val, list, p.Path)
}

// running validates the fields that only containers with the pod's whole lifetime may have.
func running(val *rule.Validation, c object.Object, path *field.Path) {
	lifecycle(val, object.Map(c, "lifecycle"), path.Child("lifecycle"))
	for _, probe := range [][2]string{{"livenessProbe", "LivenessProbe"}, {"readinessProbe", "ReadinessProbe"},
		{"startupProbe", "LivenessProbe"}} {
		if v := object.Map(c, probe[0]); v != nil {
			val.Block(probe[1], v, nil, path.Child(probe[0]))
		}
	}
}

func lifecycle(val *rule.Validation, l object.Object, path *field.Path) {
	for _, name := range []string{"postStart", "preStop"} {
		if h := object.Map(l, name); h != nil {
			val.Block("Handler", h, nil, path.Child(name))
		}
	}
}

func initContainers(val *rule.Validation, p rule.Value) {
	seen := map[string]bool{}
	for _, c := range rule.Objects(scopeOf(val).Spec["containers"]) {
		seen[object.String(c, "name")] = true
	}
	for i, c := range rule.Objects(p.New) {
		path := p.Path.Index(i)
		val.Block("Container", c, nil, path)
		restartPolicy(val, c, path)
		name := object.String(c, "name")
		if seen[name] {
			val.Duplicate(path.Child("name"), name)
		}
		seen[name] = name != ""
		hostPortsOnce(val, []object.Object{c}, p.Path)
		if object.String(c, "restartPolicy") == "Always" {
			running(val, c, path)
			continue
		}
		for _, name := range []string{"lifecycle", "livenessProbe", "readinessProbe", "startupProbe"} {
			if c[name] != nil {
				val.Forbidden(path.Child(name), "may not be set for init containers without restartPolicy=Always")
			}
		}
		for k, r := range rule.Objects(c["resizePolicy"]) {
			if policy := object.String(r, "restartPolicy"); policy == "RestartContainer" && !val.Excused(initRestart) {
				val.Invalid(path.Child("resizePolicy").Index(k).Child("restartPolicy"), policy,
					"must not be set to 'RestartContainer' for non-sidecar initContainers")
			}
		}
	}
}

// ephemeralContainers validates containers that are added to a running pod.
func ephemeralContainers(val *rule.Validation, p rule.Value) {
	others, all := map[string]bool{}, map[string]bool{}
	for _, list := range []string{"containers", "initContainers"} {
		for _, c := range rule.Objects(scopeOf(val).Spec[list]) {
			others[object.String(c, "name")], all[object.String(c, "name")] = true, true
		}
	}
	for i, c := range rule.Objects(p.New) {
		path := p.Path.Index(i)
		val.Block("Container", c, nil, path)
		val.Invalids(path.Child("image"), object.String(c, "image"), rule.Trimmed(object.String(c, "image")))
		name := object.String(c, "name")
		if all[name] {
			val.Duplicate(path.Child("name"), name)
		}
		all[name] = true
		if target := object.String(c, "targetContainerName"); target != "" && !others[target] {
			val.Add(field.NotFound(path.Child("targetContainerName"), target))
		}
		for _, name := range []string{"ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules",
			"livenessProbe", "readinessProbe", "startupProbe", "lifecycle"} {
			if _, isObject := c[name].(object.Object); !rule.IsEmpty(c[name]) || isObject && name != "resources" {
				val.Forbidden(path.Child(name), "cannot be set for an Ephemeral Container")
			}
		}
		for k, m := range rule.Objects(c["volumeMounts"]) {
			for _, name := range []string{"subPath", "subPathExpr"} {
				if object.String(m, name) != "" {
					val.Forbidden(path.Child("volumeMounts").Index(k).Child(name),
						"cannot be set for an Ephemeral Container")
				}
			}
		}
	}
}

// restartPolicy validates whether and when a container is started again.
func restartPolicy(val *rule.Validation, c object.Object, path *field.Path) {
	rules := rule.Objects(c["restartPolicyRules"])
	policy, ok := c["restartPolicy"].(string)
	switch {
	case !ok && len(rules) == 0:
		return
	case !ok:
		val.Required(path.Child("restartPolicy"), "must specify restartPolicy when restart rules are used")
		if strings.HasPrefix(path.String(), scopeOf(val).Path.Child("initContainers").String()) {
			return // Kubernetes checks nothing else for these
		}
	case policy != "Always" && policy != "Never" && policy != "OnFailure":
		val.Unsupported(path.Child("restartPolicy"), policy, "Always", "Never", "OnFailure")
	}
	if len(rules) > 20 {
		val.Add(field.TooMany(path.Child("restartPolicyRules"), len(rules), 20))
	}
	for i, r := range rules {
		at := path.Child("restartPolicyRules").Index(i)
		if action := object.String(r, "action"); action != "Restart" && action != "RestartAllContainers" {
			val.Unsupported(at.Child("action"), action, "Restart", "RestartAllContainers")
		}
		codes := object.Map(r, "exitCodes")
		if codes == nil {
			val.Required(at.Child("exitCodes"), "must be specified")
			continue
		}
		if op := object.String(codes, "operator"); op != "In" && op != "NotIn" {
			val.Unsupported(at.Child("exitCodes", "operator"), op, "In", "NotIn")
		}
		if values, _ := codes["values"].([]any); len(values) > 255 {
			val.Add(field.TooMany(at.Child("exitCodes", "values"), len(values), 255))
		}
	}
}

func containerPorts(val *rule.Validation, p rule.Value) {
	seen := map[string]bool{}
	for i, port := range rule.Objects(p.New) {
		path := p.Path.Index(i)
		if name := object.String(port, "name"); name != "" {
			if wrong := validation.IsValidPortName(name); len(wrong) > 0 {
				val.Invalids(path.Child("name"), name, wrong)
			} else if seen[name] {
				val.Duplicate(path.Child("name"), name)
			} else {
				seen[name] = true
			}
		}
		val.Block("ContainerPort", port, nil, path)
	}
}

// hostPortsOnce requires unique host ports.
func hostPortsOnce(val *rule.Validation, list []object.Object, path *field.Path) {
	seen := map[string]bool{}
	for i, c := range list {
		for k, port := range rule.Objects(c["ports"]) {
			n, _ := object.Int(port, "hostPort")
			if n == 0 {
				continue
			}
			key := fmt.Sprintf("%s/%s/%d", object.String(port, "protocol"), object.String(port, "hostIP"), n)
			if seen[key] {
				val.Duplicate(path.Index(i).Child("ports").Index(k).Child("hostPort"), key)
			}
			seen[key] = true
		}
	}
}

func resizePolicy(val *rule.Validation, p rule.Value) {
	seen := map[string]bool{}
	for i, r := range rule.Objects(p.New) {
		name, policy := object.String(r, "resourceName"), object.String(r, "restartPolicy")
		if seen[name] {
			val.Duplicate(p.Path.Index(i), name)
		}
		seen[name] = true
		Choice(val, p.Path, name, "cpu", "memory")
		Choice(val, p.Path, policy, "NotRequired", "RestartContainer")
		if object.String(scopeOf(val).Spec, "restartPolicy") == "Never" && policy != "NotRequired" {
			val.Invalid(p.Path, policy, "must be 'NotRequired' when pod `restartPolicy` is 'Never'")
		}
	}
}

// Choice requires one of the values.
func Choice(val *rule.Validation, path *field.Path, s string, values ...string) {
	if s == "" {
		val.Required(path, "")
	} else if !slices.Contains(values, s) {
		val.Unsupported(path, s, values...)
	}
}

// handler validates the handler of a probe.
func handler(val *rule.Validation, p rule.Value) { val.Block("Handler", p.Object(), nil, p.Path) }

func sleep(val *rule.Validation, p rule.Value) {
	n, _ := object.Int(p.Object(), "seconds")
	if grace, ok := object.Int(scopeOf(val).Spec, "terminationGracePeriodSeconds"); ok && (n < 0 || n > grace) {
		val.Invalid(p.Path, n,
			fmt.Sprintf("must be non-negative and less than terminationGracePeriodSeconds (%d)", grace))
	}
}

func headers(val *rule.Validation, p rule.Value) {
	for _, h := range rule.Objects(p.Object()["httpHeaders"]) {
		val.Invalids(p.Path.Child("httpHeaders"), object.String(h, "name"),
			validation.IsHTTPHeaderName(object.String(h, "name")))
	}
}

func unsetForReadiness(val *rule.Validation, p rule.Value) {
	if p.New != nil {
		val.Invalid(p.Path, p.New, "must not be set for readinessProbes")
	}
}

const initRestart rule.Exception = "a resize does not restart a container that has ended"

// containerFunctions are the functions that container.txt names.
func containerFunctions() rule.Functions {
	return rule.Functions{
		"devices":           devices,
		"envFrom":           envFrom,
		"handler":           handler,
		"headers":           headers,
		"mounts":            mounts,
		"portOrName":        rule.PortOrName,
		"ports":             containerPorts,
		"resizePolicy":      resizePolicy,
		"resources":         resources,
		"sleep":             sleep,
		"unsetForReadiness": unsetForReadiness,
		"valueFrom":         valueFrom,
	}
}
