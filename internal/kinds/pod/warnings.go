package pod

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

// WarnTemplate is about the pods that will be made.
func WarnTemplate(w *rule.Warnings, template object.Object, path *field.Path) {
	if template != nil && !w.Unchanged() {
		WarnSpec(w, template, path)
	}
}

// WarnSpec is about a pod or a template of pods at path, nil for a pod itself.
func WarnSpec(w *rule.Warnings, pod object.Object, path *field.Path) {
	spec := object.Map(pod, "spec")
	warnPlacement(w, spec, path)
	annotations := rule.StringMap(object.Map(pod, "metadata")["annotations"])
	for _, old := range [][2]string{
		{"scheduler.alpha.kubernetes.io/critical-pod",
			`non-functional in v1.16+; use the "priorityClassName" field instead`},
		{"security.alpha.kubernetes.io/sysctls", `non-functional in v1.11+; use the "sysctls" field instead`},
		{"security.alpha.kubernetes.io/unsafe-sysctls", `non-functional in v1.11+; use the "sysctls" field instead`},
	} {
		if _, ok := annotations[old[0]]; ok {
			w.Addf(path.Child("metadata", "annotations").Key(old[0]), "%s", old[1])
		}
	}
	warnVolumes(w, rule.Objects(spec["volumes"]), path.Child("spec", "volumes"))
	warnRepeated(w, spec, "hostAliases", "ip", path)
	warnRepeated(w, spec, "imagePullSecrets", "name", path)
	for i, secret := range rule.Objects(spec["imagePullSecrets"]) {
		if object.String(secret, "name") == "" {
			w.Addf(path.Child("spec", "imagePullSecrets").Index(i).Child("name"), `invalid empty name ""`)
		}
	}
	warnWholeBytes(w, object.Map(spec, "overhead"), path.Child("spec", "overhead"), "memory", "ephemeral-storage")
	const seccomp = "seccomp.security.alpha.kubernetes.io/pod"
	if _, ok := annotations[seccomp]; ok && object.Map(spec, "securityContext")["seccompProfile"] == nil {
		w.Addf(path.Child("metadata", "annotations").Key(seccomp),
			`non-functional in v1.27+; use the "seccompProfile" field instead`)
	}
	list := containersAt(spec, path.Child("spec"))
	for _, c := range list {
		warnContainer(w, c, spec, annotations, path)
	}
	warnPorts(w, list)
	warnPortNames(w, list)
	if seconds, ok := object.Int(spec, "terminationGracePeriodSeconds"); ok && seconds < 0 {
		w.Addf(path.Child("spec", "terminationGracePeriodSeconds"),
			"must be >= 0; negative values are invalid and will be treated as 1")
	}
	for _, kind := range []string{"podAffinity", "podAntiAffinity"} {
		warnAffinity(w, object.Map(spec, "affinity", kind), path.Child("spec", "affinity", kind))
	}
	for i, server := range rule.Strings(object.Map(spec, "dnsConfig")["nameservers"]) {
		w.IP(path.Child("spec", "dnsConfig", "nameservers").Index(i), server)
	}
	for i, alias := range rule.Objects(spec["hostAliases"]) {
		w.IP(path.Child("spec", "hostAliases").Index(i).Child("ip"), object.String(alias, "ip"))
	}
}

// warnPlacement warns about the nodes and zones that pods select.
func warnPlacement(w *rule.Warnings, spec object.Object, path *field.Path) {
	for _, key := range object.Keys(object.Map(spec, "nodeSelector")) {
		if text := OldNodeLabels[key]; text != "" {
			w.Addf(path.Child("spec", "nodeSelector").Key(key), "%s", text)
		}
	}
	const required, preferred = "requiredDuringSchedulingIgnoredDuringExecution",
		"preferredDuringSchedulingIgnoredDuringExecution"
	affinity, at := object.Map(spec, "affinity", "nodeAffinity"), path.Child("spec", "affinity", "nodeAffinity")
	for i, term := range rule.Objects(object.Map(affinity, required)["nodeSelectorTerms"]) {
		WarnNodeTerm(w, term, at.Child(required, "nodeSelectorTerms").Index(i), false)
	}
	for i, term := range rule.Objects(affinity[preferred]) {
		WarnNodeTerm(w, object.Map(term, "preference"), at.Child(preferred).Index(i).Child("preference"), true)
	}
	for i, constraint := range rule.Objects(spec["topologySpreadConstraints"]) {
		at := path.Child("spec", "topologySpreadConstraints").Index(i)
		key := object.String(constraint, "topologyKey")
		if text := OldNodeLabels[key]; text != "" {
			w.Addf(at.Child("topologyKey"), "%s is %s", key, text)
		}
		warnSelects(w, constraint, at)
	}
}

func warnAffinity(w *rule.Warnings, affinity object.Object, path *field.Path) {
	const required, preferred = "requiredDuringSchedulingIgnoredDuringExecution",
		"preferredDuringSchedulingIgnoredDuringExecution"
	for i, term := range rule.Objects(affinity[required]) {
		warnSelects(w, term, path.Child(required).Index(i))
	}
	for i, term := range rule.Objects(affinity[preferred]) {
		warnSelects(w, object.Map(term, "podAffinityTerm"), path.Child(preferred).Index(i).Child("podAffinityTerm"))
	}
}

// warnSelects warns about a missing labelSelector, which matches no pod.
func warnSelects(w *rule.Warnings, term object.Object, path *field.Path) {
	if term["labelSelector"] == nil {
		w.Addf(path.Child("labelSelector"), "a null labelSelector results in matching no pod")
	}
}

// warnRepeated warns about elements of a list with a duplicate key.
func warnRepeated(w *rule.Warnings, spec object.Object, list, key string, path *field.Path) {
	seen := map[string]bool{}
	for i, e := range rule.Objects(spec[list]) {
		value := object.String(e, key)
		if seen[value] {
			w.Addf(path.Child("spec", list).Index(i).Child(key), "duplicate %s %q", key, value)
		}
		seen[value] = true
	}
}

// located is a part of a pod with its path.
type located struct {
	object.Object
	path *field.Path
}

// containersAt returns all containers of a pod, init containers first.
func containersAt(spec object.Object, path *field.Path) (out []located) {
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		for i, c := range rule.Objects(spec[list]) {
			out = append(out, located{c, path.Child(list).Index(i)})
		}
	}
	return out
}

// warnContainer warns about one container of a pod, or of a template at template.
func warnContainer(
	w *rule.Warnings, c located, spec object.Object, annotations map[string]string, template *field.Path,
) {
	name := object.String(c.Object, "name")
	if key := "container.seccomp.security.alpha.kubernetes.io/" +
		name; object.Map(c.Object, "securityContext")["seccompProfile"] == nil {
		if _, ok := annotations[key]; ok {
			w.Addf(template.Child("metadata", "annotations").Key(key),
				`non-functional in v1.27+; use the "seccompProfile" field instead`)
		}
	}
	// In a pod itself the annotation has become the field by now.
	if key := "container.apparmor.security.beta.kubernetes.io/" + name; template != nil &&
		object.Map(c.Object, "securityContext")["appArmorProfile"] == nil {
		ofPod := object.Map(spec, "securityContext", "appArmorProfile")
		if annotation, ok := annotations[key]; ok && (ofPod == nil || !rule.Equivalent(ofPod, armor(annotation))) {
			w.Addf(template.Child("metadata", "annotations").Key(key),
				`deprecated since v1.30; use the "appArmorProfile" field instead`)
		}
	}
	resources := object.Map(c.Object, "resources")
	for _, name := range []string{"memory", "ephemeral-storage"} {
		for _, kind := range []string{"limits", "requests"} {
			warnWholeBytes(w, object.Map(resources, kind), c.path.Child("resources", kind), name)
		}
	}
	warnVariables(w, rule.Objects(c.Object["env"]), c.path.Child("env"))
}

// armor is the profile that an annotation of older clients means; nil if it means none.
func armor(annotation string) object.Object {
	const local = "localhost/"
	switch {
	case annotation == "unconfined":
		return object.Object{"type": "Unconfined"}
	case annotation == "runtime/default":
		return object.Object{"type": "RuntimeDefault"}
	case strings.HasPrefix(annotation, local) && len(annotation) > len(local):
		return object.Object{"type": "Localhost", "localhostProfile": strings.TrimPrefix(annotation, local)}
	}
	return nil
}

// warnVariables warns about a variable that is defined twice, unless the second definition uses the first.
func warnVariables(w *rule.Warnings, env []object.Object, path *field.Path) {
	seen := map[string]bool{}
	for i, v := range env {
		name, value := object.String(v, "name"), object.String(v, "value")
		if reference := "$(" + name + ")"; seen[name] &&
			(v["valueFrom"] != nil || value == reference || !strings.Contains(value, reference)) {
			w.Addf(path.Index(i), "hides previous definition of %q, which may be dropped when using apply", name)
		}
		seen[name] = true
	}
}

// warnPorts warns about conflicting ports of containers.
func warnPorts(w *rule.Warnings, containers []located) {
	taken := map[string][]located{}
	for _, c := range containers {
		for i, port := range rule.Objects(c.Object["ports"]) {
			p := located{port, c.path.Child("ports").Index(i)}
			number1, _ := object.Int(port, "containerPort")
			hostPort, _ := object.Int(port, "hostPort")
			hostIP, protocol := object.String(port, "hostIP"), object.String(port, "protocol")
			if hostIP != "" && hostPort == 0 {
				w.Addf(p.path,
					"hostIP set without hostPort: {Name:%s HostPort:0 ContainerPort:%d Protocol:%s HostIP:%s}",
					object.String(port, "name"), number1, protocol, hostIP)
			}
			key := fmt.Sprint(number1, "/", protocol)
			for _, other := range taken[key] {
				otherPort, _ := object.Int(other.Object, "hostPort")
				otherIP := object.String(other.Object, "hostIP")
				switch {
				case hostIP == otherIP && hostPort == otherPort:
					w.Addf(p.path, "duplicate port definition with %s", other.path)
				case hostPort == 0 || otherPort == 0:
					w.Addf(p.path, "overlapping port definition with %s", other.path)
				case hostPort == otherPort && (hostIP == "") != (otherIP == ""):
					w.Addf(p.path, "dangerously ambiguous port definition with %s", other.path)
				}
			}
			taken[key] = append(taken[key], p)
		}
	}
}

func warnPortNames(w *rule.Warnings, containers []located) {
	first := map[string]*field.Path{}
	for _, c := range containers {
		for i, port := range rule.Objects(c.Object["ports"]) {
			name, path := object.String(port, "name"), c.path.Child("ports").Index(i)
			switch other := first[name]; {
			case name == "":
			case other != nil:
				w.Addf(path,
					"duplicate port name %q with %s, services and probes that select ports by name will use %s",
					name, other, other)
			default:
				first[name] = path
			}
		}
	}
}

// warnVolumes warns about volumes that cannot be mounted, and files in one volume that hide one another.
func warnVolumes(w *rule.Warnings, list []object.Object, path *field.Path) {
	for i, v := range list {
		for n, old := range OldVolumes {
			if n == beforeClaims {
				WarnClaimSpec(w, object.Map(v, "ephemeral", "volumeClaimTemplate", "spec"),
					path.Index(i).Child("ephemeral", "volumeClaimTemplate", "spec"))
			}
			if v[old[0]] != nil {
				w.Addf(path.Index(i).Child(GoName(old[0])), "%s", old[1])
			}
		}
	}
	for _, v := range list {
		warnFiles(w, v)
	}
}

// beforeClaims is the index in OldVolumes at which Kubernetes checks an ephemeral volume's claim.
var beforeClaims = slices.IndexFunc(OldVolumes, func(v [2]string) bool { return v[0] == "cephfs" })

// file is a path in a volume, and its source if the warning names it.
type file struct{ path, source string }

func (f file) String() string {
	if f.source != "" {
		return fmt.Sprintf("%q (%s)", f.path, f.source)
	}
	return fmt.Sprintf("%q", f.path)
}

// warnFiles warns about overlapping paths in one volume.
func warnFiles(w *rule.Warnings, volume object.Object) {
	name := object.String(volume, "name")
	for _, source := range []struct{ field, kind, name string }{{"configMap", "ConfigMap", "name"},
		{"secret", "Secret", "secretName"}, {"downwardAPI", "DownwardAPI", ""}} {
		s := object.Map(volume, source.field)
		kind := source.kind
		if source.name != "" {
			kind = fmt.Sprintf("%s %q", source.kind, object.String(s, source.name))
		}
		var seen []file
		for _, f := range filesOf(s, "") {
			seen = warnAddFile(w, seen, f, name, kind)
		}
	}
	var seen []file
	for _, source := range rule.Objects(object.Map(volume, "projected")["sources"]) {
		if len(source) == 0 {
			w.AddText(fmt.Sprintf("volume %q (Projected) has no sources provided", name))
			continue
		}
		for _, f := range projectedFiles(source) {
			seen = warnAddFile(w, seen, f, name, "Projected")
		}
	}
}

func warnAddFile(w *rule.Warnings, seen []file, f file, volume, kind string) []file {
	f.path = strings.TrimRight(f.path, "/")
	for _, other := range seen {
		if f.path != "" && other.path != "" &&
			(strings.HasPrefix(f.path+"/", other.path+"/") || strings.HasPrefix(other.path+"/", f.path+"/")) {
			w.AddText(fmt.Sprintf("volume %q (%s): overlapping paths: %s with %s", volume, kind, f, other))
		}
	}
	return append(seen, f)
}

func filesOf(source object.Object, from string) (out []file) {
	for _, item := range rule.Objects(source["items"]) {
		out = append(out, file{object.String(item, "path"), from})
	}
	return out
}

// projectedFiles returns the files of one source of a projected volume: of the first source type with explicit files.
func projectedFiles(source object.Object) (out []file) {
	config, secret, downward, token, bundle, certificate := object.Map(source, "configMap"),
		object.Map(source, "secret"),
		object.Map(source, "downwardAPI"),
		object.Map(source, "serviceAccountToken"), object.Map(source, "clusterTrustBundle"),
		object.Map(source, "podCertificate")
	switch {
	case config["items"] != nil:
		return filesOf(config, fmt.Sprintf("ConfigMap %q", object.String(config, "name")))
	case secret["items"] != nil:
		return filesOf(secret, fmt.Sprintf("Secret %q", object.String(secret, "name")))
	case downward["items"] != nil:
		return filesOf(downward, "DownwardAPI")
	case token != nil:
		return []file{{object.String(token, "path"), "ServiceAccountToken"}}
	case bundle != nil:
		name, ok := bundle["name"].(string)
		if !ok {
			name = object.String(bundle, "signerName")
		}
		return []file{{object.String(bundle, "path"), fmt.Sprintf("ClusterTrustBundle %q", name)}}
	}
	for _, f := range [][2]string{{"certificateChainPath", "PodCertificate chain"}, {"keyPath", "PodCertificate key"},
		{"credentialBundlePath", "PodCertificate credential bundle"}} {
		if path := object.String(certificate, f[0]); path != "" {
			out = append(out, file{path, f[1]})
		}
	}
	return out
}
