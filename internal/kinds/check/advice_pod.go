package check

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// pod does not comment on updates: it is controllers and nodes that make them.
func (a *advice) pod() {
	if a.old != nil {
		return
	}
	a.name("the Pod's hostname")
	a.podSpec(a.obj, nil)
}

func (a *advice) podTemplate() { a.template(inner(a.obj, "template"), field.NewPath("template")) }

func (a *advice) workload() {
	a.template(inner(a.obj, "spec", "template"), field.NewPath("spec", "template"))
}

// namedWorkload is a workload whose pods' names begin with its own.
func (a *advice) namedWorkload() {
	a.name("Pod names and hostnames")
	a.workload()
}

// replicationController speaks, when it is updated, about the template that it had: so does Kubernetes.
func (a *advice) replicationController() {
	a.name("Pod names and hostnames")
	of := a.obj
	if a.old != nil {
		of = a.old
	}
	a.template(inner(of, "spec", "template"), field.NewPath("spec", "template"))
}

func (a *advice) statefulSet() {
	a.workload()
	spec := inner(a.obj, "spec")
	for i, claim := range objects(spec["volumeClaimTemplates"]) {
		path := field.NewPath("spec", "volumeClaimTemplates").Index(i)
		if a.old != nil {
			path = path.Child("Spec")
		}
		a.claimSpec(inner(claim, "spec"), path)
	}
	if limit, ok := number(spec, "revisionHistoryLimit"); ok && limit < 0 {
		a.say(field.NewPath("spec", "revisionHistoryLimit"),
			"a negative value retains all historical revisions; a value >= 0 is recommended")
	}
}

func (a *advice) job() {
	a.name("Pod names and hostnames")
	a.jobSpec(inner(a.obj, "spec"), field.NewPath("spec"))
}

func (a *advice) cronJob() {
	a.name("Pod names and hostnames")
	a.jobSpec(inner(a.obj, "spec", "jobTemplate", "spec"), field.NewPath("spec", "jobTemplate", "spec"))
	if a.old != nil && strings.Contains(text1(inner(a.obj, "spec"), "schedule"), "TZ") {
		a.plainly(
			"cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details")
	}
}

func (a *advice) jobSpec(spec object, path *field.Path) {
	if a.stays() {
		return
	}
	completions, _ := number(spec, "completions")
	parallelism, _ := number(spec, "parallelism")
	if indexed(spec) && completions > 100_000 && parallelism > 10_000 {
		a.say(path,
			"In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail")
	}
	a.template(inner(spec, "template"), path.Child("template"))
}

// template is about the pods that will be made.
func (a *advice) template(template object, path *field.Path) {
	if template != nil && !a.stays() {
		a.podSpec(template, path)
	}
}

// podSpec is about a pod or a template of pods at path, nil for a pod itself.
func (a *advice) podSpec(pod object, path *field.Path) {
	spec := inner(pod, "spec")
	a.placement(spec, path)
	annotations := pairs(inner(pod, "metadata")["annotations"])
	for _, old := range [][2]string{
		{"scheduler.alpha.kubernetes.io/critical-pod",
			`non-functional in v1.16+; use the "priorityClassName" field instead`},
		{"security.alpha.kubernetes.io/sysctls", `non-functional in v1.11+; use the "sysctls" field instead`},
		{"security.alpha.kubernetes.io/unsafe-sysctls", `non-functional in v1.11+; use the "sysctls" field instead`},
	} {
		if _, ok := annotations[old[0]]; ok {
			a.say(path.Child("metadata", "annotations").Key(old[0]), "%s", old[1])
		}
	}
	a.volumes(objects(spec["volumes"]), path.Child("spec", "volumes"))
	a.repeated(spec, "hostAliases", "ip", path)
	a.repeated(spec, "imagePullSecrets", "name", path)
	for i, secret := range objects(spec["imagePullSecrets"]) {
		if text1(secret, "name") == "" {
			a.say(path.Child("spec", "imagePullSecrets").Index(i).Child("name"), `invalid empty name ""`)
		}
	}
	a.wholeBytes(inner(spec, "overhead"), path.Child("spec", "overhead"), "memory", "ephemeral-storage")
	const seccomp = "seccomp.security.alpha.kubernetes.io/pod"
	if _, ok := annotations[seccomp]; ok && inner(spec, "securityContext")["seccompProfile"] == nil {
		a.say(path.Child("metadata", "annotations").Key(seccomp),
			`non-functional in v1.27+; use the "seccompProfile" field instead`)
	}
	list := containersAt(spec, path.Child("spec"))
	for _, c := range list {
		a.container(c, spec, annotations, path)
	}
	a.ports(list)
	a.portNames(list)
	if seconds, ok := number(spec, "terminationGracePeriodSeconds"); ok && seconds < 0 {
		a.say(path.Child("spec", "terminationGracePeriodSeconds"),
			"must be >= 0; negative values are invalid and will be treated as 1")
	}
	for _, kind := range []string{"podAffinity", "podAntiAffinity"} {
		a.affinity(inner(spec, "affinity", kind), path.Child("spec", "affinity", kind))
	}
	for i, server := range texts(inner(spec, "dnsConfig")["nameservers"]) {
		a.ip(path.Child("spec", "dnsConfig", "nameservers").Index(i), server)
	}
	for i, alias := range objects(spec["hostAliases"]) {
		a.ip(path.Child("spec", "hostAliases").Index(i).Child("ip"), text1(alias, "ip"))
	}
}

// placement is about the nodes and zones that pods ask for.
func (a *advice) placement(spec object, path *field.Path) {
	for _, key := range keys(inner(spec, "nodeSelector")) {
		if text := oldNodeLabels[key]; text != "" {
			a.say(path.Child("spec", "nodeSelector").Key(key), "%s", text)
		}
	}
	const required, preferred = "requiredDuringSchedulingIgnoredDuringExecution",
		"preferredDuringSchedulingIgnoredDuringExecution"
	affinity, at := inner(spec, "affinity", "nodeAffinity"), path.Child("spec", "affinity", "nodeAffinity")
	for i, term := range objects(inner(affinity, required)["nodeSelectorTerms"]) {
		a.nodeTerm(term, at.Child(required, "nodeSelectorTerms").Index(i), false)
	}
	for i, term := range objects(affinity[preferred]) {
		a.nodeTerm(inner(term, "preference"), at.Child(preferred).Index(i).Child("preference"), true)
	}
	for i, constraint := range objects(spec["topologySpreadConstraints"]) {
		at := path.Child("spec", "topologySpreadConstraints").Index(i)
		key := text1(constraint, "topologyKey")
		if text := oldNodeLabels[key]; text != "" {
			a.say(at.Child("topologyKey"), "%s is %s", key, text)
		}
		a.selects(constraint, at)
	}
}

func (a *advice) affinity(affinity object, path *field.Path) {
	const required, preferred = "requiredDuringSchedulingIgnoredDuringExecution",
		"preferredDuringSchedulingIgnoredDuringExecution"
	for i, term := range objects(affinity[required]) {
		a.selects(term, path.Child(required).Index(i))
	}
	for i, term := range objects(affinity[preferred]) {
		a.selects(inner(term, "podAffinityTerm"), path.Child(preferred).Index(i).Child("podAffinityTerm"))
	}
}

// selects wants a labelSelector: without one no pod is meant.
func (a *advice) selects(term object, path *field.Path) {
	if term["labelSelector"] == nil {
		a.say(path.Child("labelSelector"), "a null labelSelector results in matching no pod")
	}
}

// repeated is about elements of a list with a key that an earlier one has.
func (a *advice) repeated(spec object, list, key string, path *field.Path) {
	seen := map[string]bool{}
	for i, e := range objects(spec[list]) {
		value := text1(e, key)
		if seen[value] {
			a.say(path.Child("spec", list).Index(i).Child(key), "duplicate %s %q", key, value)
		}
		seen[value] = true
	}
}

// located is a part of a pod and where it is.
type located struct {
	object
	path *field.Path
}

// containersAt returns all containers of a pod, those that run first in front.
func containersAt(spec object, path *field.Path) (out []located) {
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		for i, c := range objects(spec[list]) {
			out = append(out, located{c, path.Child(list).Index(i)})
		}
	}
	return out
}

// container is about one container of a pod, or of a template at template.
func (a *advice) container(c located, spec object, annotations map[string]string, template *field.Path) {
	name := text1(c.object, "name")
	if key := "container.seccomp.security.alpha.kubernetes.io/" +
		name; inner(c.object, "securityContext")["seccompProfile"] == nil {
		if _, ok := annotations[key]; ok {
			a.say(template.Child("metadata", "annotations").Key(key),
				`non-functional in v1.27+; use the "seccompProfile" field instead`)
		}
	}
	// In a pod itself the annotation has become the field before this is asked.
	if key := "container.apparmor.security.beta.kubernetes.io/" + name; template != nil &&
		inner(c.object, "securityContext")["appArmorProfile"] == nil {
		ofPod := inner(spec, "securityContext", "appArmorProfile")
		if annotation, ok := annotations[key]; ok && (ofPod == nil || !same(ofPod, armor(annotation))) {
			a.say(template.Child("metadata", "annotations").Key(key),
				`deprecated since v1.30; use the "appArmorProfile" field instead`)
		}
	}
	resources := inner(c.object, "resources")
	for _, name := range []string{"memory", "ephemeral-storage"} {
		for _, kind := range []string{"limits", "requests"} {
			a.wholeBytes(inner(resources, kind), c.path.Child("resources", kind), name)
		}
	}
	a.variables(objects(c.object["env"]), c.path.Child("env"))
}

// armor is the profile that an annotation of older clients means; nil if it means none.
func armor(annotation string) object {
	const local = "localhost/"
	switch {
	case annotation == "unconfined":
		return object{"type": "Unconfined"}
	case annotation == "runtime/default":
		return object{"type": "RuntimeDefault"}
	case strings.HasPrefix(annotation, local) && len(annotation) > len(local):
		return object{"type": "Localhost", "localhostProfile": strings.TrimPrefix(annotation, local)}
	}
	return nil
}

// variables is about one variable that is defined twice, unless the second definition adds to the first.
func (a *advice) variables(env []object, path *field.Path) {
	seen := map[string]bool{}
	for i, v := range env {
		name, value := text1(v, "name"), text1(v, "value")
		if reference := "$(" + name + ")"; seen[name] &&
			(v["valueFrom"] != nil || value == reference || !strings.Contains(value, reference)) {
			a.say(path.Index(i), "hides previous definition of %q, which may be dropped when using apply", name)
		}
		seen[name] = true
	}
}

// ports is about ports of containers that are in each other's way.
func (a *advice) ports(containers []located) {
	taken := map[string][]located{}
	for _, c := range containers {
		for i, port := range objects(c.object["ports"]) {
			p := located{port, c.path.Child("ports").Index(i)}
			number1, _ := number(port, "containerPort")
			hostPort, _ := number(port, "hostPort")
			hostIP, protocol := text1(port, "hostIP"), text1(port, "protocol")
			if hostIP != "" && hostPort == 0 {
				a.say(p.path,
					"hostIP set without hostPort: {Name:%s HostPort:0 ContainerPort:%d Protocol:%s HostIP:%s}",
					text1(port, "name"), number1, protocol, hostIP)
			}
			key := fmt.Sprint(number1, "/", protocol)
			for _, other := range taken[key] {
				otherPort, _ := number(other.object, "hostPort")
				otherIP := text1(other.object, "hostIP")
				switch {
				case hostIP == otherIP && hostPort == otherPort:
					a.say(p.path, "duplicate port definition with %s", other.path)
				case hostPort == 0 || otherPort == 0:
					a.say(p.path, "overlapping port definition with %s", other.path)
				case hostPort == otherPort && (hostIP == "") != (otherIP == ""):
					a.say(p.path, "dangerously ambiguous port definition with %s", other.path)
				}
			}
			taken[key] = append(taken[key], p)
		}
	}
}

func (a *advice) portNames(containers []located) {
	first := map[string]*field.Path{}
	for _, c := range containers {
		for i, port := range objects(c.object["ports"]) {
			name, path := text1(port, "name"), c.path.Child("ports").Index(i)
			switch other := first[name]; {
			case name == "":
			case other != nil:
				a.say(path, "duplicate port name %q with %s, services and probes that select ports by name will use %s",
					name, other, other)
			default:
				first[name] = path
			}
		}
	}
}

// volumes is about volumes that cannot be mounted, and files in one volume that hide one another.
func (a *advice) volumes(list []object, path *field.Path) {
	for i, v := range list {
		for n, old := range oldVolumes {
			if n == beforeClaims {
				a.claimSpec(inner(v, "ephemeral", "volumeClaimTemplate", "spec"),
					path.Index(i).Child("ephemeral", "volumeClaimTemplate", "spec"))
			}
			if v[old[0]] != nil {
				a.say(path.Index(i).Child(goName(old[0])), "%s", old[1])
			}
		}
	}
	for _, v := range list {
		a.files(v)
	}
}

// beforeClaims is the place among oldVolumes at which Kubernetes looks at an ephemeral volume's claim.
var beforeClaims = slices.IndexFunc(oldVolumes, func(v [2]string) bool { return v[0] == "cephfs" })

// file is a path in a volume, and what it comes from if that has to be said.
type file struct{ path, source string }

func (f file) String() string {
	if f.source != "" {
		return fmt.Sprintf("%q (%s)", f.path, f.source)
	}
	return fmt.Sprintf("%q", f.path)
}

// files is about paths in one volume of which one lies at or below the other.
func (a *advice) files(volume object) {
	name := text1(volume, "name")
	for _, source := range []struct{ field, kind, name string }{{"configMap", "ConfigMap", "name"},
		{"secret", "Secret", "secretName"}, {"downwardAPI", "DownwardAPI", ""}} {
		s := inner(volume, source.field)
		what := source.kind
		if source.name != "" {
			what = fmt.Sprintf("%s %q", source.kind, text1(s, source.name))
		}
		var seen []file
		for _, f := range filesOf(s, "") {
			seen = a.addFile(seen, f, name, what)
		}
	}
	var seen []file
	for _, source := range objects(inner(volume, "projected")["sources"]) {
		if len(source) == 0 {
			a.plainly(fmt.Sprintf("volume %q (Projected) has no sources provided", name))
			continue
		}
		for _, f := range projectedFiles(source) {
			seen = a.addFile(seen, f, name, "Projected")
		}
	}
}

func (a *advice) addFile(seen []file, f file, volume, what string) []file {
	f.path = strings.TrimRight(f.path, "/")
	for _, other := range seen {
		if f.path != "" && other.path != "" &&
			(strings.HasPrefix(f.path+"/", other.path+"/") || strings.HasPrefix(other.path+"/", f.path+"/")) {
			a.plainly(fmt.Sprintf("volume %q (%s): overlapping paths: %s with %s", volume, what, f, other))
		}
	}
	return append(seen, f)
}

func filesOf(source object, from string) (out []file) {
	for _, item := range objects(source["items"]) {
		out = append(out, file{text1(item, "path"), from})
	}
	return out
}

// projectedFiles returns the files of one source of a projected volume: of the first that it names and that says its
// files.
func projectedFiles(source object) (out []file) {
	config, secret, downward, token, bundle, certificate := inner(source, "configMap"), inner(source, "secret"),
		inner(source, "downwardAPI"),
		inner(source, "serviceAccountToken"), inner(source, "clusterTrustBundle"), inner(source, "podCertificate")
	switch {
	case config["items"] != nil:
		return filesOf(config, fmt.Sprintf("ConfigMap %q", text1(config, "name")))
	case secret["items"] != nil:
		return filesOf(secret, fmt.Sprintf("Secret %q", text1(secret, "name")))
	case downward["items"] != nil:
		return filesOf(downward, "DownwardAPI")
	case token != nil:
		return []file{{text1(token, "path"), "ServiceAccountToken"}}
	case bundle != nil:
		name, ok := bundle["name"].(string)
		if !ok {
			name = text1(bundle, "signerName")
		}
		return []file{{text1(bundle, "path"), fmt.Sprintf("ClusterTrustBundle %q", name)}}
	}
	for _, f := range [][2]string{{"certificateChainPath", "PodCertificate chain"}, {"keyPath", "PodCertificate key"},
		{"credentialBundlePath", "PodCertificate credential bundle"}} {
		if path := text1(certificate, f[0]); path != "" {
			out = append(out, file{path, f[1]})
		}
	}
	return out
}
