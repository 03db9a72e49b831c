package check

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// podResize lets processor and memory of a pod's containers change, but not what class of service it is in.
func podResize(j *judgement, _ place) {
	path := field.NewPath("spec")
	spec, was := inner(j.obj, "spec"), inner(j.old, "spec")
	if _, ok := inner(j.old, "metadata", "annotations")[mirrorPod]; ok {
		j.errs = field.ErrorList{field.Forbidden(field.NewPath(""), "static pods cannot be resized")}
		return
	}
	if text1(inner(was, "os"), "name") == "windows" {
		j.errs = field.ErrorList{field.Forbidden(field.NewPath(""), "windows pods cannot be resized")}
		return
	}
	oldClass := text1(inner(j.old, "status"), "qosClass")
	if oldClass == "" {
		oldClass = classOf(was)
	}
	if oldClass != classOf(spec) {
		j.invalid(path, text1(inner(j.obj, "status"), "qosClass"),
			"Pod QOS Class may not change as a result of resizing")
	}
	for _, s := range objects(inner(j.old, "status")["containerStatuses"]) {
		if inner(s, "state", "running") != nil {
			if s["resources"] == nil {
				j.forbidden(path, "Pod running on node without support for resize")
			}
			break
		}
	}
	masked := runtime.DeepCopyJSON(spec)
	j.podLevel(spec, masked, was, path)
	if len(objects(inner(j.old, "status")["nodeAllocatableResourceClaimStatuses"])) > 0 {
		j.forbidden(path, "pods with node allocatable resource claims cannot be resized")
	}
	if !j.inOrder(spec, was, path) {
		return
	}
	j.containersResized(spec, masked, was, path)
	if len(j.errs) == 0 && !same(masked, was) {
		j.forbidden(path, "only cpu and memory resources are mutable")
	}
}

// podLevel judges a change of what the pod as a whole asks for, and takes it out of masked.
func (j *judgement) podLevel(spec, masked, was object, path *field.Path) {
	now, old := inner(spec, "resources"), inner(was, "resources")
	set := func(r object) bool { return len(inner(r, "requests"))+len(inner(r, "limits")) > 0 }
	if !set(now) && !set(old) {
		return
	}
	if old != nil && now == nil {
		j.forbidden(path.Child("resources"), "pod-level resources cannot be removed")
		return
	}
	for list, what := range map[string]string{
		"requests": "pod-level resource requests cannot be removed",
		"limits":   "pod-level resource limits cannot be removed",
	} {
		if lacks(inner(now, list), inner(old, list)) {
			j.forbidden(path.Child("resources", list), what)
		}
	}
	hideCompute(inner(masked, "resources"), old)
	if old == nil && same(masked["resources"], object{"requests": object{}, "limits": object{}}) {
		delete(masked, "resources")
	}
	if !same(masked["resources"], was["resources"]) {
		j.forbidden(path, "only cpu and memory resources are mutable at pod-level")
	}
}

// lacks tells whether something that was asked for is asked for no more.
func lacks(now, was object) bool {
	for name := range was {
		if _, ok := now[name]; !ok {
			return true
		}
	}
	return false
}

// hideCompute makes processor and memory in r what they were.
func hideCompute(r, was object) {
	for _, list := range []string{"requests", "limits"} {
		l := inner(r, list)
		if l == nil {
			l = object{}
		}
		for _, name := range []string{"cpu", "memory"} {
			keep(l, inner(was, list), name)
		}
		r[list] = l
	}
}

func (j *judgement) inOrder(spec, was object, path *field.Path) bool {
	before := len(j.errs)
	for _, list := range []string{"containers", "initContainers"} {
		now, old := objects(spec[list]), objects(was[list])
		if len(now) != len(old) {
			j.forbidden(path.Child(list), list+" may not be added or removed on resize")
			continue
		}
		for i := range old {
			if text1(now[i], "name") != text1(old[i], "name") {
				j.forbidden(path.Child(list).Index(i).Child("name"), list+" may not be renamed or reordered on resize")
			}
		}
	}
	return len(j.errs) == before
}

func (j *judgement) containersResized(spec, masked, was object, path *field.Path) {
	for _, list := range []string{"initContainers", "containers"} {
		for i, old := range objects(was[list]) {
			c, at := objects(spec[list])[i], path.Child(list).Index(i)
			for _, l := range [][2]string{{"requests", "resource requests cannot be removed"},
				{"limits", "resource limits cannot be removed"}} {
				if lacks(inner(c, "resources", l[0]), inner(old, "resources", l[0])) {
					j.forbidden(at.Child("resources", l[0]), l[1])
				}
			}
		}
	}
	for _, list := range []string{"containers", "initContainers"} {
		for i, old := range objects(was[list]) {
			c, at := objects(masked[list])[i], path.Child(list).Index(i)
			modified := !same(c, old)
			r := inner(c, "resources")
			if r == nil {
				r = object{}
				c["resources"] = r
			}
			delete(r, "claims")
			hideCompute(r, inner(old, "resources"))
			switch changed := !same(withoutEmpty(c), withoutEmpty(old)); {
			case changed && list == "containers":
				j.forbidden(path, "only cpu and memory resources are mutable")
			case changed:
				j.forbidden(at, "only cpu and memory resources for init or sidecar containers are mutable")
			}
			if list == "initContainers" && modified && text1(c, "restartPolicy") != "Always" {
				for _, p := range objects(c["resizePolicy"]) {
					if text1(p, "restartPolicy") == "RestartContainer" {
						j.forbidden(at,
							"non-sidecar init containers with a resize policy of RestartContainer cannot be resized")
					}
				}
			}
		}
	}
}

// withoutEmpty returns a container in which resources that ask for nothing are left out.
func withoutEmpty(c object) object {
	out := runtime.DeepCopyJSON(c)
	r := inner(out, "resources")
	for _, list := range []string{"requests", "limits"} {
		if len(inner(r, list)) == 0 {
			delete(r, list)
		}
	}
	return out
}

// classOf returns a pod's class of service: Guaranteed, Burstable or BestEffort. Source: "Pod Quality of Service
// Classes" of Kubernetes' documentation.
func classOf(spec object) string {
	all := []object{inner(spec, "resources")}
	if all[0] == nil { // what the pod has itself counts alone
		all = nil
		for _, list := range []string{"containers", "initContainers"} {
			for _, c := range objects(spec[list]) {
				all = append(all, inner(c, "resources"))
			}
		}
	}
	guaranteed, any := true, false
	for _, r := range all {
		any = any || asks(r)
		for _, name := range []string{"cpu", "memory"} {
			request, limit := quantity(inner(r, "requests")[name]), quantity(inner(r, "limits")[name])
			guaranteed = guaranteed && limit.Sign() > 0 && request.Cmp(limit) == 0
		}
	}
	switch {
	case !any:
		return "BestEffort"
	case guaranteed:
		return "Guaranteed"
	}
	return "Burstable"
}

// asks tells whether processor or memory are asked for or limited.
func asks(r object) bool {
	for _, list := range []string{"requests", "limits"} {
		for _, name := range []string{"cpu", "memory"} {
			if q := quantity(inner(r, list)[name]); q.Sign() > 0 {
				return true
			}
		}
	}
	return false
}
