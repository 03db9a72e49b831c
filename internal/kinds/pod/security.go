package pod

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

const hostSysctl rule.Exception = "who uses a namespace of the host leaves its parameters alone"

// sysctlName is a name in segments, divided by dots or slashes.
var sysctlName = regexp.MustCompile(`^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`)

// podSecurity validates the fields of a pod's security context that depend on the rest of its spec.
func podSecurity(val *rule.Validation, p rule.Value) {
	spec := p.Object()
	sc, path := object.Map(spec, "securityContext"), p.Path.Child("securityContext")
	if object.True(spec, "shareProcessNamespace") && object.True(spec, "hostPID") {
		val.Invalid(path.Child("shareProcessNamespace"), true,
			"ShareProcessNamespace and HostPID cannot both be enabled")
	}
	seen := map[string]bool{}
	for i, s := range rule.Objects(sc["sysctls"]) {
		name, at := object.String(s, "name"), path.Child("sysctls").Index(i).Child("name")
		switch {
		case name == "":
			val.Required(at, "")
		case len(name) > 253 || !sysctlName.MatchString(name):
			val.Invalid(at, name, fmt.Sprintf("must have at most %d characters and match regex %s", 253, sysctlName))
		case seen[name]:
			val.Duplicate(at, name)
		}
		seen[name] = true
		shared := ""
		switch dotted := strings.ReplaceAll(name, "/", "."); {
		case object.True(spec, "hostNetwork") && strings.HasPrefix(dotted, "net."):
			shared = "hostNetwork"
		case object.True(spec, "hostIPC") && ipcSysctl(dotted):
			shared = "hostIPC"
		}
		if shared != "" && !val.Excused(hostSysctl) {
			val.Invalid(at, name, "may not be specified when '"+shared+"' is true")
		}
	}
}

// ipcSysctl reports whether a kernel parameter belongs to the namespace of inter-process communication.
func ipcSysctl(name string) bool {
	return name == "kernel.sem" || name == "kernel.shm_rmid_forced" || strings.HasPrefix(name, "kernel.shm") ||
		strings.HasPrefix(name, "kernel.msg") || strings.HasPrefix(name, "fs.mqueue.")
}

func unmasked(val *rule.Validation, p rule.Value) {
	if p.New == "Unmasked" && scopeOf(val).hostUsers() {
		val.Invalid(p.Path, p.New, "`hostUsers` must be false to use `Unmasked`")
	}
}

func escalation(val *rule.Validation, p rule.Value) {
	sc := p.Object()
	if sc["allowPrivilegeEscalation"] != false {
		return
	}
	if object.True(sc, "privileged") {
		val.Invalid(p.Path, sc, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true")
	}
	if slices.Contains(rule.Strings(object.Map(sc, "capabilities")["add"]), "CAP_SYS_ADMIN") {
		val.Invalid(p.Path, sc, "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN")
	}
}

func localhostSeccomp(val *rule.Validation, p rule.Value) {
	obj, path := p.Object(), p.Path.Child("localhostProfile")
	file, ok := obj["localhostProfile"].(string)
	switch local := object.String(obj, "type") == "Localhost"; {
	case local && !ok:
		val.Required(path, "must be set when seccomp type is Localhost")
	case local:
		val.Invalids(path, file, rule.Relative(file))
	case ok:
		val.Invalid(path, obj, "can only be set when seccomp type is Localhost")
	}
}

func localhostAppArmor(val *rule.Validation, p rule.Value) {
	obj, path := p.Object(), p.Path.Child("localhostProfile")
	profile, ok := obj["localhostProfile"].(string)
	switch object.String(obj, "type") {
	case "Localhost":
		switch {
		case !ok || profile == "":
			val.Required(path, "must be set when AppArmor type is Localhost")
		case strings.TrimSpace(profile) != profile:
			val.Invalid(path, profile, "must not be padded with whitespace")
		}
		if len(profile) > 4095 { // the longest path, without its terminator
			val.Add(field.TooLong(path, "", 4095))
		}
	case "RuntimeDefault", "Unconfined":
		if ok {
			val.Invalid(path, profile, "can only be set when AppArmor type is Localhost")
		}
	}
}

var controlCharacter = regexp.MustCompile(`[[:cntrl:]]+`)

var netBIOSDomain = regexp.MustCompile(`^[^\\/:\*\?"<>|\.][^\\/:\*\?"<>|]{0,14}$`)

var dnsDomain = regexp.MustCompile(
	`^[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$`)

var dotsAndSpaces = regexp.MustCompile(`^[\. ]+$`)

func windowsOptions(val *rule.Validation, p rule.Value) {
	obj := p.Object()
	if s, ok := obj["gmsaCredentialSpec"].(string); ok {
		switch path := p.Path.Child("gmsaCredentialSpec"); {
		case s == "":
			val.Invalid(path, s, "gmsaCredentialSpec cannot be an empty string")
		case len(s) > 64<<10:
			val.Invalid(path, s, "gmsaCredentialSpec size must be under 64 KiB")
		}
	}
	name, ok := obj["runAsUserName"].(string)
	if !ok {
		return
	}
	wrong := func(noun string) { val.Invalid(p.Path.Child("runAsUserName"), name, noun) }
	switch {
	case name == "":
		wrong("runAsUserName cannot be an empty string")
		return
	case controlCharacter.MatchString(name):
		wrong("runAsUserName cannot contain control characters")
		return
	case strings.Count(name, `\`) > 1:
		wrong("runAsUserName cannot contain more than one backslash")
		return
	}
	domain, user, hasDomain := strings.Cut(name, `\`)
	if !hasDomain {
		domain, user = "", name
	}
	if len(domain) >= 256 {
		wrong("runAsUserName's Domain length must be under 256 characters")
	}
	if hasDomain && !netBIOSDomain.MatchString(domain) && !dnsDomain.MatchString(domain) {
		wrong("runAsUserName's Domain doesn't match the NetBios nor the DNS format")
	}
	switch {
	case user == "":
		wrong("runAsUserName's User cannot be empty")
	case len(user) > 104:
		wrong("runAsUserName's User length must not be longer than 104 characters")
	}
	if dotsAndSpaces.MatchString(user) {
		wrong("runAsUserName's User cannot contain only periods or spaces")
	}
	if strings.ContainsAny(user, `"/\:;|=,+*?<>@[]`) {
		wrong(`runAsUserName's User cannot contain the following characters: "/\:;|=,+*?<>@[]`)
	}
}

// hostProcess: in Windows, either all containers of a pod are processes of the host or none.
func hostProcess(val *rule.Validation, p rule.Value) {
	spec := p.Object()
	ofPod, podSets := object.Map(spec, "securityContext", "windowsOptions")["hostProcess"].(bool)
	all, onHost := 0, 0
	Containers(spec, p.Path, func(c object.Object, path *field.Path) {
		all++
		own, isSet := object.Map(c, "securityContext", "windowsOptions")["hostProcess"].(bool)
		if isSet && podSets && own != ofPod {
			val.Invalid(path.Child("securityContext", "windowsOptions", "hostProcess"), own,
				fmt.Sprintf("pod hostProcess value must be identical if both are specified, was %v", ofPod))
		}
		if isSet && own || !isSet && ofPod {
			onHost++
		}
	})
	if onHost == 0 {
		return
	}
	if onHost != all {
		val.Invalid(p.Path, "",
			"If pod contains any hostProcess containers then all containers must be HostProcess containers")
	}
	if !object.True(spec, "hostNetwork") {
		val.Invalid(p.Path.Child("hostNetwork"), false,
			"hostNetwork must be true if pod contains any hostProcess containers")
	}
}

var linuxOnlyInPod = []string{"appArmorProfile", "seLinuxOptions", "seccompProfile", "fsGroup",
	"fsGroupChangePolicy", "sysctls", "runAsUser", "runAsGroup", "supplementalGroups", "supplementalGroupsPolicy",
	"seLinuxChangePolicy"}

var linuxOnlyInSpec = []string{"hostUsers", "hostPID", "hostIPC", "shareProcessNamespace"}

var linuxOnlyInContainer = []string{"appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities",
	"readOnlyRootFilesystem", "privileged", "allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup"}

func podOS(val *rule.Validation, p rule.Value) {
	if p.Object() == nil {
		return
	}
	spec, path := scopeOf(val).Spec, scopeOf(val).Path
	switch name := scopeOf(val).os(); name {
	case "":
		val.Required(p.Path.Child("name"), "")
	case "linux":
		forbidAll(val, object.Map(spec, "securityContext"), []string{"windowsOptions"}, path.Child("securityContext"),
			"windows options cannot be set for a linux pod")
		Containers(spec, path, func(c object.Object, path *field.Path) {
			forbidAll(val, object.Map(c, "securityContext"), []string{"windowsOptions"}, path.Child("securityContext"),
				"windows options cannot be set for a linux pod")
		})
	case "windows":
		const why = "cannot be set for a windows pod"
		forbidAll(val, object.Map(spec, "securityContext"), linuxOnlyInPod, path.Child("securityContext"), why)
		for _, name := range linuxOnlyInSpec {
			if v := spec[name]; v != nil && (v != false || name == "hostUsers" || name == "shareProcessNamespace") {
				val.Forbidden(path.Child(name), why)
			}
		}
		Containers(spec, path, func(c object.Object, path *field.Path) {
			forbidAll(val, object.Map(c, "securityContext"), linuxOnlyInContainer, path.Child("securityContext"), why)
		})
	default:
		val.Unsupported(p.Path, name, "linux", "windows")
	}
}

func forbidAll(val *rule.Validation, obj object.Object, names []string, path *field.Path, why string) {
	for _, name := range names {
		if obj[name] != nil {
			val.Forbidden(path.Child(name), why)
		}
	}
}

// securityFunctions are the functions that security.txt names.
func securityFunctions() rule.Functions {
	return rule.Functions{
		"escalation":        escalation,
		"id":                rule.GroupOrUser,
		"localhostAppArmor": localhostAppArmor,
		"localhostSeccomp":  localhostSeccomp,
		"unmasked":          unmasked,
		"windowsOptions":    windowsOptions,
	}
}
