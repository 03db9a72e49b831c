package pod

import (
	"fmt"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	unversioned "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/quantity"
)

const ownUsersDevices rule.Exception = "who has users of its own has no devices"

// Scope is the whole pod, for the validation of its parts.
type Scope struct {
	Spec, Meta object.Object // meta is nil in a template
	volumes    map[string]object.Object
	claims     sets.Set[string]
	claimList  string // the claims in order, for errors
	Path       *field.Path
}

// scopeOf returns the pod of the validated container or volume, nil if there is none.
func scopeOf(val *rule.Validation) *Scope {
	s, _ := val.Scope.(*Scope)
	return s
}

func (s *Scope) isPod() bool { return s.Meta != nil }

// hostUsers reports whether the pod uses the host's user namespace.
func (s *Scope) hostUsers() bool { return s.Spec["hostUsers"] != false }

func (s *Scope) os() string { return object.String(object.Map(s.Spec, "os"), "name") }

// Containers calls f for all containers of a spec.
func Containers(spec object.Object, path *field.Path, f func(c object.Object, path *field.Path)) {
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		for i, c := range rule.Objects(spec[list]) {
			f(c, path.Child(list).Index(i))
		}
	}
}

// ValidateSpec checks the spec of a pod or of a template of pods.
func ValidateSpec(val *rule.Validation, s *Scope) {
	outside := scopeOf(val)
	val.Scope = s
	for _, c := range rule.Objects(s.Spec["resourceClaims"]) {
		if name := object.String(c, "name"); name != "" {
			if s.claims == nil {
				s.claims = sets.Set[string]{}
			}
			s.claims.Insert(name)
		}
	}
	s.claimList = "must be one of the names in pod.spec.resourceClaims: " + strings.Join(sets.List(s.claims), ", ")
	val.Block("PodSpec", s.Spec, nil, s.Path)
	val.Scope = outside
}

// Template validates a template of pods.
func Template(val *rule.Validation, p rule.Value) {
	if t := p.Object(); t != nil {
		ValidateTemplate(val, t, object.Map(t, "spec"), p.Path)
	}
}

// ValidateTemplate validates a template as one with the spec.
func ValidateTemplate(val *rule.Validation, t, spec object.Object, path *field.Path) {
	meta := object.Map(t, "metadata")
	annotations := rule.StringMap(meta["annotations"])
	val.Errs = append(val.Errs, unversioned.ValidateLabels(rule.StringMap(meta["labels"]), path.Child("labels"))...)
	val.Errs = append(val.Errs, apivalidation.ValidateAnnotations(annotations, path.Child("annotations"))...)
	ValidateAnnotations(val, annotations, spec, path.Child("annotations"))
	ValidateSpec(val, &Scope{Spec: spec, Path: path.Child("spec")})
	CheckAnnotationsMatch(val, meta, spec, path.Child("spec"))
	if !rule.IsEmpty(spec["ephemeralContainers"]) {
		val.Forbidden(path.Child("spec", "ephemeralContainers"), "ephemeral containers not allowed in pod template")
	}
}

func podClaims(val *rule.Validation, p rule.Value) {
	seen := map[string]bool{}
	for i, c := range rule.Objects(p.New) {
		at, name := p.Path.Index(i), object.String(c, "name")
		if _, mirror := object.Map(scopeOf(val).Meta, "annotations")[MirrorPod]; mirror {
			val.Forbidden(field.NewPath(""), "static pods do not support resource claims")
			continue
		}
		switch {
		case name == "":
			val.Required(at.Child("name"), "")
		case seen[name]:
			val.Duplicate(at.Child("name"), name)
		default:
			val.Invalids(at.Child("name"), name, validation.IsDNS1123Label(name))
			seen[name] = true
		}
		claim, isClaim := c["resourceClaimName"].(string)
		from, isTemplate := c["resourceClaimTemplateName"].(string)
		switch {
		case isClaim && isTemplate:
			val.Invalid(at, c, "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified")
		case !isClaim && !isTemplate:
			val.Invalid(at, c, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
		}
		if isClaim {
			val.Invalids(at.Child("resourceClaimName"), claim, validation.IsDNS1123Subdomain(claim))
		}
		if isTemplate {
			val.Invalids(at.Child("resourceClaimTemplateName"), from, validation.IsDNS1123Subdomain(from))
		}
	}
}

// podResources validates pod-level resources.
func podResources(val *rule.Validation, p rule.Value) {
	spec := p.Object()
	r := object.Map(spec, "resources")
	if r == nil {
		return
	}
	path := p.Path.Child("resources")
	if scopeOf(val).os() == "windows" {
		val.Forbidden(path, "may not be set for a windows pod")
		return
	}
	if r["claims"] != nil {
		val.Forbidden(path.Child("claims"), "claims may not be set for Resources at pod-level")
	}
	CheckRequirements(val, r, path, func(name string, path *field.Path) { podResource(val, name, path) })
	withinPod(val, spec, r, path)
}

// withinPod requires the containers' resources to be within the pod's.
func withinPod(val *rule.Validation, spec, r object.Object, path *field.Path) {
	requests, limits := object.Map(r, "requests"), object.Map(r, "limits")
	for name, sum := range Total(spec, "requests") {
		if v, ok := requests[name]; ok {
			if q := rule.Quantity(v); quantity.Cmp(sum, q) > 0 {
				val.Invalid(path.Child("requests").Key(name), q.String(),
					fmt.Sprintf("must be greater than or equal to aggregate container requests of %s", sum.String()))
			}
		}
	}
	for name, sum := range Total(spec, "limits") {
		if v, ok := limits[name]; ok && strings.HasPrefix(name, hugePages) {
			if q := rule.Quantity(v); quantity.Cmp(sum, q) > 0 {
				val.Invalid(path.Child("limits").Key(name), q.String(),
					fmt.Sprintf("must be greater than or equal to aggregate container limits of %s", sum.String()))
			}
		}
	}
	for i, c := range rule.Objects(spec["containers"]) {
		own := object.Map(c, "resources", "limits")
		for _, name := range object.Keys(own) {
			if v, ok := limits[name]; ok {
				if q, most := rule.Quantity(own[name]), rule.Quantity(v); quantity.Cmp(q, most) > 0 {
					val.Invalid(path.Child("containers").Index(i).Key(name).Child("limits"), q.String(),
						fmt.Sprintf("must be less than or equal to pod limits of %s", most.String()))
				}
			}
		}
	}
}

// hostPorts requires the ports of a pod with hostNetwork to equal its host ports.
func hostPorts(val *rule.Validation, p rule.Value) {
	spec := p.Object()
	if !object.True(spec, "hostNetwork") {
		return
	}
	for i, c := range rule.Objects(spec["containers"]) {
		for k, port := range rule.Objects(c["ports"]) {
			host, _ := object.Int(port, "hostPort")
			own, _ := object.Int(port, "containerPort")
			if (scopeOf(val).isPod() || host != 0) && host != own {
				val.Invalid(p.Path.Child("containers").Index(i).Child("ports").Index(k).Child("hostPort"), host,
					"must match `containerPort` when `hostNetwork` is true")
			}
		}
	}
}

// hostUsers checks that a pod with its own user namespace shares no other namespace of the host.
func hostUsers(val *rule.Validation, p rule.Value) {
	if scopeOf(val).hostUsers() {
		return
	}
	spec := p.Object()
	for _, f := range [][2]string{{"hostNetwork", "hostNetwork"}, {"hostPID", "HostPID"}, {"hostIPC", "HostIPC"}} {
		if object.True(spec, f[0]) {
			val.Forbidden(p.Path.Child(f[1]), "when `hostUsers` is false")
		}
	}
	Containers(spec, p.Path, func(c object.Object, path *field.Path) {
		if !rule.IsEmpty(c["volumeDevices"]) && !val.Excused(ownUsersDevices) {
			val.Forbidden(path.Child("volumeDevices"), "when `hostUsers` is false")
		}
	})
}

func hostnameOverride(val *rule.Validation, p rule.Value) {
	spec, path := p.Object(), p.Path.Child("hostnameOverride")
	name, ok := spec["hostnameOverride"].(string)
	if !ok {
		return
	}
	if object.True(spec, "setHostnameAsFQDN") {
		val.Forbidden(path, "may not be specified when setHostnameAsFQDN is true")
	}
	if object.True(spec, "hostNetwork") {
		val.Forbidden(path, "may not be specified when hostNetwork is true")
	}
	if len(name) > 64 {
		val.Add(field.TooLong(path, "", 64))
	}
	val.Invalids(path, name, validation.IsDNS1123Subdomain(name))
}

// fileKeys requires variables from files to be in emptyDir volumes.
func fileKeys(val *rule.Validation, p rule.Value) {
	spec := p.Object()
	sources := map[string]object.Object{}
	for _, v := range rule.Objects(spec["volumes"]) {
		sources[object.String(v, "name")] = v
	}
	Containers(spec, p.Path, func(c object.Object, path *field.Path) {
		for i, v := range rule.Objects(c["env"]) {
			ref := object.Map(v, "valueFrom", "fileKeyRef")
			if ref == nil {
				continue
			}
			name, at := object.String(ref, "volumeName"),
				path.Child("env").Index(i).Child("valueFrom", "fileKeyRef", "volumeName")
			if source, ok := sources[name]; !ok {
				val.Add(field.NotFound(at, name))
			} else if source["emptyDir"] == nil {
				val.Invalid(at, name, "referenced volume must be of type emptyDir")
			}
		}
	})
}

func dnsConfig(val *rule.Validation, p rule.Value) {
	spec, path := p.Object(), p.Path.Child("dnsConfig")
	config := object.Map(spec, "dnsConfig")
	servers := rule.Strings(config["nameservers"])
	if object.String(spec, "dnsPolicy") == "None" {
		if config == nil {
			val.Required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
			return
		}
		if len(servers) == 0 {
			val.Required(path.Child("nameservers"), "must provide at least one DNS nameserver when `dnsPolicy` is None")
			return
		}
	}
	if len(servers) > 3 {
		val.Invalid(path.Child("nameservers"), servers, "must not have more than 3 nameservers")
	}
	for i, s := range servers {
		val.Errs = append(val.Errs, val.IP(path.Child("nameservers").Index(i), s, nil)...)
	}
	searches := rule.Strings(config["searches"])
	if len(searches) > 32 {
		val.Invalid(path.Child("searches"), searches, "must not have more than 32 search paths")
	}
	if len(strings.Join(searches, " ")) > 2048 {
		val.Invalid(path.Child("searches"), searches,
			"must not have more than 2048 characters (including spaces) in the search list")
	}
	for i, s := range searches {
		if s != "." {
			s = strings.TrimSuffix(s, ".")
			val.Invalids(path.Child("searches").Index(i), s, validation.IsDNS1123SubdomainWithUnderscore(s))
		}
	}
	for i, o := range rule.Objects(config["options"]) {
		if object.String(o, "name") == "" {
			val.Required(path.Child("options").Index(i), "must not be empty")
		}
	}
}

func schedulingGates(val *rule.Validation, p rule.Value) {
	seen := map[string]bool{}
	for i, g := range rule.Objects(p.New) {
		name := object.String(g, "name")
		val.Invalids(p.Path.Index(i), name, validation.IsQualifiedName(name))
		if seen[name] {
			val.Duplicate(p.Path.Index(i), name)
		}
		seen[name] = true
	}
}

// schedulingGroup requires the one existing way to name a group.
func schedulingGroup(val *rule.Validation, p rule.Value) {
	if p.New == nil {
		return
	}
	at := p.Path.Child("podGroupName")
	name, ok := p.Object()["podGroupName"].(string)
	if !ok {
		val.Invalid(at, nil, "must specify one of: `podGroupName`")
		return
	}
	val.Invalids(at, name, validation.IsDNS1123Subdomain(name))
}

func hostnames(val *rule.Validation, p rule.Value) {
	for i, name := range rule.Strings(p.Object()["hostnames"]) {
		val.Invalids(p.Path.Child("hostnames").Index(i), name, validation.IsDNS1123Subdomain(name))
	}
}

// podFunctions are the functions that pod.txt names.
func podFunctions() rule.Functions {
	return rule.Functions{
		"containers":          regularContainers,
		"dnsConfig":           dnsConfig,
		"ephemeralContainers": ephemeralContainers,
		"fileKeys":            fileKeys,
		"hostPorts":           hostPorts,
		"hostProcess":         hostProcess,
		"hostUsers":           hostUsers,
		"hostnameOverride":    hostnameOverride,
		"hostnames":           hostnames,
		"initContainers":      initContainers,
		"os":                  podOS,
		"overhead":            overhead,
		"podClaims":           podClaims,
		"podResources":        podResources,
		"podSecurity":         podSecurity,
		"schedulingGates":     schedulingGates,
		"schedulingGroup":     schedulingGroup,
		"spread":              spread,
		"volumes":             volumes,
	}
}
