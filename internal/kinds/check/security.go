package check

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func securityFunctions() map[string]func(*judgement, place) {
	return map[string]func(*judgement, place){
		"podSecurity":       podSecurity,
		"unmasked":          unmasked,
		"escalation":        escalation,
		"localhostSeccomp":  localhostSeccomp,
		"localhostAppArmor": localhostAppArmor,
		"windowsOptions":    windowsOptions,
		"hostProcess":       hostProcess,
		"os":                podOS,
	}
}

// sysctlName is a name in segments, divided by dots or slashes.
var sysctlName = regexp.MustCompile(`^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`)

// podSecurity judges what in a pod's security context depends on the rest of its spec.
func podSecurity(j *judgement, p place) {
	spec := p.object()
	sc, path := inner(spec, "securityContext"), p.path.Child("securityContext")
	if truth(spec, "shareProcessNamespace") && truth(spec, "hostPID") {
		j.invalid(path.Child("shareProcessNamespace"), true, "ShareProcessNamespace and HostPID cannot both be enabled")
	}
	seen := map[string]bool{}
	for i, s := range objects(sc["sysctls"]) {
		name, at := text1(s, "name"), path.Child("sysctls").Index(i).Child("name")
		switch {
		case name == "":
			j.required(at, "")
		case len(name) > 253 || !sysctlName.MatchString(name):
			j.invalid(at, name, fmt.Sprintf("must have at most %d characters and match regex %s", 253, sysctlName))
		case seen[name]:
			j.duplicate(at, name)
		}
		seen[name] = true
		shared := ""
		switch dotted := strings.ReplaceAll(name, "/", "."); {
		case truth(spec, "hostNetwork") && strings.HasPrefix(dotted, "net."):
			shared = "hostNetwork"
		case truth(spec, "hostIPC") && ipcSysctl(dotted):
			shared = "hostIPC"
		}
		if shared != "" && !j.excused(hostSysctl) {
			j.invalid(at, name, "may not be specified when '"+shared+"' is true")
		}
	}
}

// ipcSysctl tells whether a kernel parameter belongs to the namespace of inter-process communication.
func ipcSysctl(name string) bool {
	return name == "kernel.sem" || name == "kernel.shm_rmid_forced" || strings.HasPrefix(name, "kernel.shm") ||
		strings.HasPrefix(name, "kernel.msg") || strings.HasPrefix(name, "fs.mqueue.")
}

func unmasked(j *judgement, p place) {
	if p.value == "Unmasked" && scopeOf(j).hostUsers() {
		j.invalid(p.path, p.value, "`hostUsers` must be false to use `Unmasked`")
	}
}

func escalation(j *judgement, p place) {
	sc := p.object()
	if sc["allowPrivilegeEscalation"] != false {
		return
	}
	if truth(sc, "privileged") {
		j.invalid(p.path, sc, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true")
	}
	if slices.Contains(texts(inner(sc, "capabilities")["add"]), "CAP_SYS_ADMIN") {
		j.invalid(p.path, sc, "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN")
	}
}

func localhostSeccomp(j *judgement, p place) {
	obj, path := p.object(), p.path.Child("localhostProfile")
	file, ok := obj["localhostProfile"].(string)
	switch local := text1(obj, "type") == "Localhost"; {
	case local && !ok:
		j.required(path, "must be set when seccomp type is Localhost")
	case local:
		j.invalids(path, file, relative(file))
	case ok:
		j.invalid(path, obj, "can only be set when seccomp type is Localhost")
	}
}

func localhostAppArmor(j *judgement, p place) {
	obj, path := p.object(), p.path.Child("localhostProfile")
	profile, ok := obj["localhostProfile"].(string)
	switch text1(obj, "type") {
	case "Localhost":
		switch {
		case !ok || profile == "":
			j.required(path, "must be set when AppArmor type is Localhost")
		case strings.TrimSpace(profile) != profile:
			j.invalid(path, profile, "must not be padded with whitespace")
		}
		if len(profile) > 4095 { // a path's longest, without its end
			j.add(field.TooLong(path, "", 4095))
		}
	case "RuntimeDefault", "Unconfined":
		if ok {
			j.invalid(path, profile, "can only be set when AppArmor type is Localhost")
		}
	}
}

var (
	controlCharacter = regexp.MustCompile(`[[:cntrl:]]+`)
	netBIOSDomain    = regexp.MustCompile(`^[^\\/:\*\?"<>|\.][^\\/:\*\?"<>|]{0,14}$`)
	dnsDomain        = regexp.MustCompile(
		`^[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$`)
	dotsAndSpaces = regexp.MustCompile(`^[\. ]+$`)
)

func windowsOptions(j *judgement, p place) {
	obj := p.object()
	if s, ok := obj["gmsaCredentialSpec"].(string); ok {
		switch path := p.path.Child("gmsaCredentialSpec"); {
		case s == "":
			j.invalid(path, s, "gmsaCredentialSpec cannot be an empty string")
		case len(s) > 64<<10:
			j.invalid(path, s, "gmsaCredentialSpec size must be under 64 KiB")
		}
	}
	name, ok := obj["runAsUserName"].(string)
	if !ok {
		return
	}
	wrong := func(what string) { j.invalid(p.path.Child("runAsUserName"), name, what) }
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
func hostProcess(j *judgement, p place) {
	spec := p.object()
	ofPod, podSays := inner(spec, "securityContext", "windowsOptions")["hostProcess"].(bool)
	all, onHost := 0, 0
	containers(spec, p.path, func(c object, path *field.Path) {
		all++
		own, says := inner(c, "securityContext", "windowsOptions")["hostProcess"].(bool)
		if says && podSays && own != ofPod {
			j.invalid(path.Child("securityContext", "windowsOptions", "hostProcess"), own,
				fmt.Sprintf("pod hostProcess value must be identical if both are specified, was %v", ofPod))
		}
		if says && own || !says && ofPod {
			onHost++
		}
	})
	if onHost == 0 {
		return
	}
	if onHost != all {
		j.invalid(p.path, "",
			"If pod contains any hostProcess containers then all containers must be HostProcess containers")
	}
	if !truth(spec, "hostNetwork") {
		j.invalid(p.path.Child("hostNetwork"), false,
			"hostNetwork must be true if pod contains any hostProcess containers")
	}
}

// What a pod for one system may not say, because only the other has it.
var (
	linuxOnlyInPod = []string{"appArmorProfile", "seLinuxOptions", "seccompProfile", "fsGroup",
		"fsGroupChangePolicy", "sysctls", "runAsUser", "runAsGroup", "supplementalGroups", "supplementalGroupsPolicy",
		"seLinuxChangePolicy"}
	linuxOnlyInSpec      = []string{"hostUsers", "hostPID", "hostIPC", "shareProcessNamespace"}
	linuxOnlyInContainer = []string{"appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities",
		"readOnlyRootFilesystem", "privileged", "allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup"}
)

func podOS(j *judgement, p place) {
	if p.object() == nil {
		return
	}
	spec, path := scopeOf(j).spec, scopeOf(j).path
	switch name := scopeOf(j).os(); name {
	case "":
		j.required(p.path.Child("name"), "")
	case "linux":
		j.forbidAll(inner(spec, "securityContext"), []string{"windowsOptions"}, path.Child("securityContext"),
			"windows options cannot be set for a linux pod")
		containers(spec, path, func(c object, path *field.Path) {
			j.forbidAll(inner(c, "securityContext"), []string{"windowsOptions"}, path.Child("securityContext"),
				"windows options cannot be set for a linux pod")
		})
	case "windows":
		const why = "cannot be set for a windows pod"
		j.forbidAll(inner(spec, "securityContext"), linuxOnlyInPod, path.Child("securityContext"), why)
		for _, name := range linuxOnlyInSpec {
			if v := spec[name]; v != nil && (v != false || name == "hostUsers" || name == "shareProcessNamespace") {
				j.forbidden(path.Child(name), why)
			}
		}
		containers(spec, path, func(c object, path *field.Path) {
			j.forbidAll(inner(c, "securityContext"), linuxOnlyInContainer, path.Child("securityContext"), why)
		})
	default:
		j.unsupported(p.path, name, "linux", "windows")
	}
}

func (j *judgement) forbidAll(obj object, names []string, path *field.Path, why string) {
	for _, name := range names {
		if obj[name] != nil {
			j.forbidden(path.Child(name), why)
		}
	}
}
