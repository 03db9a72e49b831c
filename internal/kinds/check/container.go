package check

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func containerFunctions() map[string]func(*judgement, place) {
	return map[string]func(*judgement, place){
		"containers":          regularContainers,
		"initContainers":      initContainers,
		"ephemeralContainers": ephemeralContainers,
		"ports":               containerPorts,
		"resources":           resources,
		"overhead":            overhead,
		"resizePolicy":        resizePolicy,
		"handler":             handler,
		"sleep":               sleep,
		"headers":             headers,
		"unsetForReadiness":   unsetForReadiness,
	}
}

// regularContainers judges spec.containers, of which there must be one.
func regularContainers(j *judgement, p place) {
	list := objects(p.value)
	if len(list) == 0 {
		j.required(p.path, "")
		return
	}
	seen := map[string]bool{}
	for i, c := range list {
		path := p.path.Index(i)
		j.block("Container", c, nil, path)
		name := text1(c, "name")
		if seen[name] {
			j.duplicate(path.Child("name"), name)
		}
		seen[name] = true
		j.running(c, path)
		j.restartPolicy(c, path)
	}
	j.hostPortsOnce(list, p.path)
}

// running judges what only containers have that run as long as the pod does.
func (j *judgement) running(c object, path *field.Path) {
	j.lifecycle(inner(c, "lifecycle"), path.Child("lifecycle"))
	for _, probe := range [][2]string{{"livenessProbe", "LivenessProbe"}, {"readinessProbe", "ReadinessProbe"},
		{"startupProbe", "LivenessProbe"}} {
		if v := inner(c, probe[0]); v != nil {
			j.block(probe[1], v, nil, path.Child(probe[0]))
		}
	}
}

func (j *judgement) lifecycle(l object, path *field.Path) {
	for _, name := range []string{"postStart", "preStop"} {
		if h := inner(l, name); h != nil {
			j.block("Handler", h, nil, path.Child(name))
		}
	}
}

func initContainers(j *judgement, p place) {
	seen := map[string]bool{}
	for _, c := range objects(scopeOf(j).spec["containers"]) {
		seen[text1(c, "name")] = true
	}
	for i, c := range objects(p.value) {
		path := p.path.Index(i)
		j.block("Container", c, nil, path)
		j.restartPolicy(c, path)
		name := text1(c, "name")
		if seen[name] {
			j.duplicate(path.Child("name"), name)
		}
		seen[name] = name != ""
		j.hostPortsOnce([]object{c}, p.path)
		if text1(c, "restartPolicy") == "Always" {
			j.running(c, path)
			continue
		}
		for _, name := range []string{"lifecycle", "livenessProbe", "readinessProbe", "startupProbe"} {
			if c[name] != nil {
				j.forbidden(path.Child(name), "may not be set for init containers without restartPolicy=Always")
			}
		}
		for k, r := range objects(c["resizePolicy"]) {
			if policy := text1(r, "restartPolicy"); policy == "RestartContainer" && !j.excused(initRestart) {
				j.invalid(path.Child("resizePolicy").Index(k).Child("restartPolicy"), policy,
					"must not be set to 'RestartContainer' for non-sidecar initContainers")
			}
		}
	}
}

// ephemeralContainers judges containers that are put into a running pod.
func ephemeralContainers(j *judgement, p place) {
	others, all := map[string]bool{}, map[string]bool{}
	for _, list := range []string{"containers", "initContainers"} {
		for _, c := range objects(scopeOf(j).spec[list]) {
			others[text1(c, "name")], all[text1(c, "name")] = true, true
		}
	}
	for i, c := range objects(p.value) {
		path := p.path.Index(i)
		j.block("Container", c, nil, path)
		j.invalids(path.Child("image"), text1(c, "image"), trimmed(text1(c, "image")))
		name := text1(c, "name")
		if all[name] {
			j.duplicate(path.Child("name"), name)
		}
		all[name] = true
		if target := text1(c, "targetContainerName"); target != "" && !others[target] {
			j.add(field.NotFound(path.Child("targetContainerName"), target))
		}
		for _, name := range []string{"ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules",
			"livenessProbe", "readinessProbe", "startupProbe", "lifecycle"} {
			if _, isObject := c[name].(object); !empty(c[name]) || isObject && name != "resources" {
				j.forbidden(path.Child(name), "cannot be set for an Ephemeral Container")
			}
		}
		for k, m := range objects(c["volumeMounts"]) {
			for _, name := range []string{"subPath", "subPathExpr"} {
				if text1(m, name) != "" {
					j.forbidden(path.Child("volumeMounts").Index(k).Child(name),
						"cannot be set for an Ephemeral Container")
				}
			}
		}
	}
}

// restartPolicy judges whether and when a container is started again.
func (j *judgement) restartPolicy(c object, path *field.Path) {
	rules := objects(c["restartPolicyRules"])
	policy, ok := c["restartPolicy"].(string)
	switch {
	case !ok && len(rules) == 0:
		return
	case !ok:
		j.required(path.Child("restartPolicy"), "must specify restartPolicy when restart rules are used")
		if strings.HasPrefix(path.String(), scopeOf(j).path.Child("initContainers").String()) {
			return // Kubernetes looks no further for these
		}
	case policy != "Always" && policy != "Never" && policy != "OnFailure":
		j.unsupported(path.Child("restartPolicy"), policy, "Always", "Never", "OnFailure")
	}
	if len(rules) > 20 {
		j.add(field.TooMany(path.Child("restartPolicyRules"), len(rules), 20))
	}
	for i, r := range rules {
		at := path.Child("restartPolicyRules").Index(i)
		if action := text1(r, "action"); action != "Restart" && action != "RestartAllContainers" {
			j.unsupported(at.Child("action"), action, "Restart", "RestartAllContainers")
		}
		codes := inner(r, "exitCodes")
		if codes == nil {
			j.required(at.Child("exitCodes"), "must be specified")
			continue
		}
		if op := text1(codes, "operator"); op != "In" && op != "NotIn" {
			j.unsupported(at.Child("exitCodes", "operator"), op, "In", "NotIn")
		}
		if values, _ := codes["values"].([]any); len(values) > 255 {
			j.add(field.TooMany(at.Child("exitCodes", "values"), len(values), 255))
		}
	}
}

func containerPorts(j *judgement, p place) {
	seen := map[string]bool{}
	for i, port := range objects(p.value) {
		path := p.path.Index(i)
		if name := text1(port, "name"); name != "" {
			if wrong := validation.IsValidPortName(name); len(wrong) > 0 {
				j.invalids(path.Child("name"), name, wrong)
			} else if seen[name] {
				j.duplicate(path.Child("name"), name)
			} else {
				seen[name] = true
			}
		}
		j.block("ContainerPort", port, nil, path)
	}
}

// hostPortsOnce wants each port of the host to be taken once.
func (j *judgement) hostPortsOnce(list []object, path *field.Path) {
	seen := map[string]bool{}
	for i, c := range list {
		for k, port := range objects(c["ports"]) {
			n, _ := number(port, "hostPort")
			if n == 0 {
				continue
			}
			key := fmt.Sprintf("%s/%s/%d", text1(port, "protocol"), text1(port, "hostIP"), n)
			if seen[key] {
				j.duplicate(path.Index(i).Child("ports").Index(k).Child("hostPort"), key)
			}
			seen[key] = true
		}
	}
}

func resizePolicy(j *judgement, p place) {
	seen := map[string]bool{}
	for i, r := range objects(p.value) {
		name, policy := text1(r, "resourceName"), text1(r, "restartPolicy")
		if seen[name] {
			j.duplicate(p.path.Index(i), name)
		}
		seen[name] = true
		j.choice(p.path, name, "cpu", "memory")
		j.choice(p.path, policy, "NotRequired", "RestartContainer")
		if text1(scopeOf(j).spec, "restartPolicy") == "Never" && policy != "NotRequired" {
			j.invalid(p.path, policy, "must be 'NotRequired' when pod `restartPolicy` is 'Never'")
		}
	}
}

// choice wants one of the values.
func (j *judgement) choice(path *field.Path, s string, values ...string) {
	if s == "" {
		j.required(path, "")
	} else if !slices.Contains(values, s) {
		j.unsupported(path, s, values...)
	}
}

// handler judges how a probe looks at its container.
func handler(j *judgement, p place) { j.block("Handler", p.object(), nil, p.path) }

func sleep(j *judgement, p place) {
	n, _ := number(p.object(), "seconds")
	if grace, ok := number(scopeOf(j).spec, "terminationGracePeriodSeconds"); ok && (n < 0 || n > grace) {
		j.invalid(p.path, n,
			fmt.Sprintf("must be non-negative and less than terminationGracePeriodSeconds (%d)", grace))
	}
}

func headers(j *judgement, p place) {
	for _, h := range objects(p.object()["httpHeaders"]) {
		j.invalids(p.path.Child("httpHeaders"), text1(h, "name"), validation.IsHTTPHeaderName(text1(h, "name")))
	}
}

func unsetForReadiness(j *judgement, p place) {
	if p.value != nil {
		j.invalid(p.path, p.value, "must not be set for readinessProbes")
	}
}
