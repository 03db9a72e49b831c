package check

import (
	"fmt"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	unversioned "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// podScope is what the parts of a pod's spec need to know about the whole.
type podScope struct {
	spec, meta object // meta is nil in a template
	volumes    map[string]object
	claims     []string // sorted
	path       *field.Path
}

// scopeOf returns the pod that a container or a volume being judged is part of, nil if there is none.
func scopeOf(j *judgement) *podScope {
	s, _ := j.scope.(*podScope)
	return s
}

func (s *podScope) isPod() bool { return s.meta != nil }

// hostUsers tells whether the users of the pod's containers are those of the host.
func (s *podScope) hostUsers() bool { return s.spec["hostUsers"] != false }

func (s *podScope) os() string { return text1(inner(s.spec, "os"), "name") }

// containers calls f for all containers of a spec.
func containers(spec object, path *field.Path, f func(c object, path *field.Path)) {
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		for i, c := range objects(spec[list]) {
			f(c, path.Child(list).Index(i))
		}
	}
}

func podFunctions() map[string]func(*judgement, place) {
	return map[string]func(*judgement, place){
		"pod":         pod,
		"podTemplate": podTemplate,
		"gatedNode":   gatedNode,
		"podAnnotationsMatch": func(j *judgement, _ place) {
			j.annotationsMatch(inner(j.obj, "metadata"), inner(j.obj, "spec"), field.NewPath("spec"))
		},
		"podClaims":        podClaims,
		"podResources":     podResources,
		"hostPorts":        hostPorts,
		"hostUsers":        hostUsers,
		"hostnameOverride": hostnameOverride,
		"fileKeys":         fileKeys,
		"dnsConfig":        dnsConfig,
		"schedulingGates":  schedulingGates,
		"hostnames":        hostnames,
	}
}

// pod judges a pod's annotations and spec.
func pod(j *judgement, p place) {
	obj := p.object()
	meta, spec := inner(obj, "metadata"), inner(obj, "spec")
	if meta == nil {
		meta = object{}
	}
	path := field.NewPath("spec")
	j.podAnnotations(pairs(meta["annotations"]), spec, field.NewPath("metadata", "annotations"))
	j.podSpec(&podScope{spec: spec, meta: meta, path: path})
	if text1(spec, "serviceAccountName") == "" {
		for i, v := range objects(spec["volumes"]) {
			for k, s := range objects(inner(v, "projected")["sources"]) {
				if s["serviceAccountToken"] != nil {
					j.forbidden(path.Child("volumes").Index(i).Child("projected",
						"sources").Index(k).Child("serviceAccountToken"),
						"must not be specified when serviceAccountName is not set")
				}
			}
		}
	}
	for _, list := range []string{"containers", "initContainers"} {
		for i, c := range objects(spec[list]) {
			image := text1(c, "image")
			j.invalids(path.Child(list).Index(i).Child("image"), image, trimmed(image))
		}
	}
}

func (j *judgement) podSpec(s *podScope) {
	outside := scopeOf(j)
	j.scope = s
	for _, c := range objects(s.spec["resourceClaims"]) {
		if name := text1(c, "name"); name != "" && !slices.Contains(s.claims, name) {
			s.claims = append(s.claims, name)
		}
	}
	slices.Sort(s.claims)
	j.block("PodSpec", s.spec, nil, s.path)
	j.scope = outside
}

// podTemplate judges a template of pods.
func podTemplate(j *judgement, p place) {
	if t := p.object(); t != nil {
		j.template(t, inner(t, "spec"), p.path)
	}
}

// template judges a template as one with the spec.
func (j *judgement) template(t, spec object, path *field.Path) {
	meta := inner(t, "metadata")
	annotations := pairs(meta["annotations"])
	j.errs = append(j.errs, unversioned.ValidateLabels(pairs(meta["labels"]), path.Child("labels"))...)
	j.errs = append(j.errs, apivalidation.ValidateAnnotations(annotations, path.Child("annotations"))...)
	j.podAnnotations(annotations, spec, path.Child("annotations"))
	j.podSpec(&podScope{spec: spec, path: path.Child("spec")})
	j.annotationsMatch(meta, spec, path.Child("spec"))
	if !empty(spec["ephemeralContainers"]) {
		j.forbidden(path.Child("spec", "ephemeralContainers"), "ephemeral containers not allowed in pod template")
	}
}

func gatedNode(j *judgement, _ place) {
	spec := inner(j.obj, "spec")
	if text1(spec, "nodeName") != "" && !empty(spec["schedulingGates"]) {
		j.forbidden(field.NewPath("spec", "nodeName"), "cannot be set until all schedulingGates have been cleared")
	}
}

func podClaims(j *judgement, p place) {
	seen := map[string]bool{}
	for i, c := range objects(p.value) {
		at, name := p.path.Index(i), text1(c, "name")
		if _, mirror := inner(scopeOf(j).meta, "annotations")[mirrorPod]; mirror {
			j.forbidden(field.NewPath(""), "static pods do not support resource claims")
			continue
		}
		switch {
		case name == "":
			j.required(at.Child("name"), "")
		case seen[name]:
			j.duplicate(at.Child("name"), name)
		default:
			j.invalids(at.Child("name"), name, validation.IsDNS1123Label(name))
			seen[name] = true
		}
		claim, isClaim := c["resourceClaimName"].(string)
		from, isTemplate := c["resourceClaimTemplateName"].(string)
		switch {
		case isClaim && isTemplate:
			j.invalid(at, c, "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified")
		case !isClaim && !isTemplate:
			j.invalid(at, c, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
		}
		if isClaim {
			j.invalids(at.Child("resourceClaimName"), claim, validation.IsDNS1123Subdomain(claim))
		}
		if isTemplate {
			j.invalids(at.Child("resourceClaimTemplateName"), from, validation.IsDNS1123Subdomain(from))
		}
	}
}

// podResources judges what a pod as a whole asks for.
func podResources(j *judgement, p place) {
	spec := p.object()
	r := inner(spec, "resources")
	if r == nil {
		return
	}
	path := p.path.Child("resources")
	if scopeOf(j).os() == "windows" {
		j.forbidden(path, "may not be set for a windows pod")
		return
	}
	if r["claims"] != nil {
		j.forbidden(path.Child("claims"), "claims may not be set for Resources at pod-level")
	}
	j.requirements(r, path, j.podResource)
	j.withinPod(spec, r, path)
}

// withinPod wants what containers ask for to be within what the pod asks for.
func (j *judgement) withinPod(spec, r object, path *field.Path) {
	requests, limits := inner(r, "requests"), inner(r, "limits")
	for name, sum := range Total(spec, "requests") {
		if v, ok := requests[name]; ok {
			if q := quantity(v); sum.Cmp(q) > 0 {
				j.invalid(path.Child("requests").Key(name), q.String(),
					fmt.Sprintf("must be greater than or equal to aggregate container requests of %s", sum.String()))
			}
		}
	}
	for name, sum := range Total(spec, "limits") {
		if v, ok := limits[name]; ok && strings.HasPrefix(name, hugePages) {
			if q := quantity(v); sum.Cmp(q) > 0 {
				j.invalid(path.Child("limits").Key(name), q.String(),
					fmt.Sprintf("must be greater than or equal to aggregate container limits of %s", sum.String()))
			}
		}
	}
	for i, c := range objects(spec["containers"]) {
		own := inner(c, "resources", "limits")
		for _, name := range keys(own) {
			if v, ok := limits[name]; ok {
				if q, most := quantity(own[name]), quantity(v); q.Cmp(most) > 0 {
					j.invalid(path.Child("containers").Index(i).Key(name).Child("limits"), q.String(),
						fmt.Sprintf("must be less than or equal to pod limits of %s", most.String()))
				}
			}
		}
	}
}

// hostPorts wants the ports of a pod in the host's network to be those of the host.
func hostPorts(j *judgement, p place) {
	spec := p.object()
	if !truth(spec, "hostNetwork") {
		return
	}
	for i, c := range objects(spec["containers"]) {
		for k, port := range objects(c["ports"]) {
			host, _ := number(port, "hostPort")
			own, _ := number(port, "containerPort")
			if (scopeOf(j).isPod() || host != 0) && host != own {
				j.invalid(p.path.Child("containers").Index(i).Child("ports").Index(k).Child("hostPort"), host,
					"must match `containerPort` when `hostNetwork` is true")
			}
		}
	}
}

// hostUsers: a pod with users of its own shares nothing else with the host.
func hostUsers(j *judgement, p place) {
	if scopeOf(j).hostUsers() {
		return
	}
	spec := p.object()
	for _, f := range [][2]string{{"hostNetwork", "hostNetwork"}, {"hostPID", "HostPID"}, {"hostIPC", "HostIPC"}} {
		if truth(spec, f[0]) {
			j.forbidden(p.path.Child(f[1]), "when `hostUsers` is false")
		}
	}
	containers(spec, p.path, func(c object, path *field.Path) {
		if !empty(c["volumeDevices"]) && !j.excused(ownUsersDevices) {
			j.forbidden(path.Child("volumeDevices"), "when `hostUsers` is false")
		}
	})
}

func hostnameOverride(j *judgement, p place) {
	spec, path := p.object(), p.path.Child("hostnameOverride")
	name, ok := spec["hostnameOverride"].(string)
	if !ok {
		return
	}
	if truth(spec, "setHostnameAsFQDN") {
		j.forbidden(path, "may not be specified when setHostnameAsFQDN is true")
	}
	if truth(spec, "hostNetwork") {
		j.forbidden(path, "may not be specified when hostNetwork is true")
	}
	if len(name) > 64 {
		j.add(field.TooLong(path, "", 64))
	}
	j.invalids(path, name, validation.IsDNS1123Subdomain(name))
}

// fileKeys wants variables that are read from files to be in volumes of type emptyDir.
func fileKeys(j *judgement, p place) {
	spec := p.object()
	sources := map[string]object{}
	for _, v := range objects(spec["volumes"]) {
		sources[text1(v, "name")] = v
	}
	containers(spec, p.path, func(c object, path *field.Path) {
		for i, v := range objects(c["env"]) {
			ref := inner(v, "valueFrom", "fileKeyRef")
			if ref == nil {
				continue
			}
			name, at := text1(ref, "volumeName"),
				path.Child("env").Index(i).Child("valueFrom", "fileKeyRef", "volumeName")
			if source, ok := sources[name]; !ok {
				j.add(field.NotFound(at, name))
			} else if source["emptyDir"] == nil {
				j.invalid(at, name, "referenced volume must be of type emptyDir")
			}
		}
	})
}

func dnsConfig(j *judgement, p place) {
	spec, path := p.object(), p.path.Child("dnsConfig")
	config := inner(spec, "dnsConfig")
	servers := texts(config["nameservers"])
	if text1(spec, "dnsPolicy") == "None" {
		if config == nil {
			j.required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
			return
		}
		if len(servers) == 0 {
			j.required(path.Child("nameservers"), "must provide at least one DNS nameserver when `dnsPolicy` is None")
			return
		}
	}
	if len(servers) > 3 {
		j.invalid(path.Child("nameservers"), servers, "must not have more than 3 nameservers")
	}
	for i, s := range servers {
		j.errs = append(j.errs, validation.IsValidIPForLegacyField(path.Child("nameservers").Index(i), s, true, nil)...)
	}
	searches := texts(config["searches"])
	if len(searches) > 32 {
		j.invalid(path.Child("searches"), searches, "must not have more than 32 search paths")
	}
	if len(strings.Join(searches, " ")) > 2048 {
		j.invalid(path.Child("searches"), searches,
			"must not have more than 2048 characters (including spaces) in the search list")
	}
	for i, s := range searches {
		if s != "." {
			s = strings.TrimSuffix(s, ".")
			j.invalids(path.Child("searches").Index(i), s, validation.IsDNS1123SubdomainWithUnderscore(s))
		}
	}
	for i, o := range objects(config["options"]) {
		if text1(o, "name") == "" {
			j.required(path.Child("options").Index(i), "must not be empty")
		}
	}
}

func schedulingGates(j *judgement, p place) {
	seen := map[string]bool{}
	for i, g := range objects(p.value) {
		name := text1(g, "name")
		j.invalids(p.path.Index(i), name, validation.IsQualifiedName(name))
		if seen[name] {
			j.duplicate(p.path.Index(i), name)
		}
		seen[name] = true
	}
}

func hostnames(j *judgement, p place) {
	for i, name := range texts(p.object()["hostnames"]) {
		j.invalids(p.path.Child("hostnames").Index(i), name, validation.IsDNS1123Subdomain(name))
	}
}
