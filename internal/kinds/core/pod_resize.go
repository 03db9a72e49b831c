package core

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

// podResize allows changes of CPU and memory of a pod's containers, but not of its QoS class.
func podResize(val *rule.Validation, _ rule.Value) {
	path := field.NewPath("spec")
	spec, was := object.Map(val.Obj, "spec"), object.Map(val.Old, "spec")
	if _, ok := object.Map(val.Old, "metadata", "annotations")[pod.MirrorPod]; ok {
		val.Errs = field.ErrorList{field.Forbidden(field.NewPath(""), "static pods cannot be resized")}
		return
	}
	if object.String(object.Map(was, "os"), "name") == "windows" {
		val.Errs = field.ErrorList{field.Forbidden(field.NewPath(""), "windows pods cannot be resized")}
		return
	}
	oldClass := object.String(object.Map(val.Old, "status"), "qosClass")
	if oldClass == "" {
		oldClass = pod.ClassOf(was)
	}
	if oldClass != pod.ClassOf(spec) {
		val.Invalid(path, object.String(object.Map(val.Obj, "status"), "qosClass"),
			"Pod QOS Class may not change as a result of resizing")
	}
	for _, s := range rule.Objects(object.Map(val.Old, "status")["containerStatuses"]) {
		if object.Map(s, "state", "running") != nil {
			if s["resources"] == nil {
				val.Forbidden(path, "Pod running on node without support for resize")
			}
			break
		}
	}
	masked := runtime.DeepCopyJSON(spec)
	podLevel(val, spec, masked, was, path)
	if !inOrder(val, spec, was, path) {
		return
	}
	containersResized(val, spec, masked, was, path)
	if len(val.Errs) == 0 && !rule.Equivalent(masked, was) {
		val.Forbidden(path, "only cpu and memory resources are mutable")
	}
}

// podLevel validates a change of pod-level resources, and reverts it in masked.
func podLevel(val *rule.Validation, spec, masked, was object.Object, path *field.Path) {
	now, old := object.Map(spec, "resources"), object.Map(was, "resources")
	set := func(r object.Object) bool { return len(object.Map(r, "requests"))+len(object.Map(r, "limits")) > 0 }
	if !set(now) && !set(old) {
		return
	}
	if old != nil && now == nil {
		val.Forbidden(path.Child("resources"), "pod-level resources cannot be removed")
		return
	}
	for _, list := range []string{"requests", "limits"} {
		if lacks(object.Map(now, list), object.Map(old, list)) {
			val.Forbidden(path.Child("resources", list), "pod-level resource "+list+" cannot be removed")
		}
	}
	hideCompute(object.Map(masked, "resources"), old)
	if old == nil &&
		rule.Equivalent(masked["resources"], object.Object{"requests": object.Object{}, "limits": object.Object{}}) {
		delete(masked, "resources")
	}
	if !rule.Equivalent(masked["resources"], was["resources"]) {
		val.Forbidden(path, "only cpu and memory resources are mutable at pod-level")
	}
}

// lacks reports whether a resource of was is missing in now.
func lacks(now, was object.Object) bool {
	for name := range was {
		if _, ok := now[name]; !ok {
			return true
		}
	}
	return false
}

// hideCompute resets CPU and memory in r to was.
func hideCompute(r, was object.Object) {
	for _, list := range []string{"requests", "limits"} {
		l := object.Map(r, list)
		if l == nil {
			l = object.Object{}
		}
		for _, name := range []string{"cpu", "memory"} {
			pod.Keep(l, object.Map(was, list), name)
		}
		r[list] = l
	}
}

func inOrder(val *rule.Validation, spec, was object.Object, path *field.Path) bool {
	before := len(val.Errs)
	for _, list := range []string{"containers", "initContainers"} {
		now, old := rule.Objects(spec[list]), rule.Objects(was[list])
		if len(now) != len(old) {
			val.Forbidden(path.Child(list), list+" may not be added or removed on resize")
			continue
		}
		for i := range old {
			if object.String(now[i], "name") != object.String(old[i], "name") {
				val.Forbidden(path.Child(list).Index(i).Child("name"), list+
					" may not be renamed or reordered on resize")
			}
		}
	}
	return len(val.Errs) == before
}

func containersResized(val *rule.Validation, spec, masked, was object.Object, path *field.Path) {
	for _, list := range []string{"initContainers", "containers"} {
		for i, old := range rule.Objects(was[list]) {
			c, at := rule.Objects(spec[list])[i], path.Child(list).Index(i)
			for _, l := range [][2]string{{"requests", "resource requests cannot be removed"},
				{"limits", "resource limits cannot be removed"}} {
				if lacks(object.Map(c, "resources", l[0]), object.Map(old, "resources", l[0])) {
					val.Forbidden(at.Child("resources", l[0]), l[1])
				}
			}
		}
	}
	for _, list := range []string{"containers", "initContainers"} {
		for i, old := range rule.Objects(was[list]) {
			c, at := rule.Objects(masked[list])[i], path.Child(list).Index(i)
			modified := !rule.Equivalent(c, old)
			r := object.Map(c, "resources")
			if r == nil {
				r = object.Object{}
				c["resources"] = r
			}
			hideCompute(r, object.Map(old, "resources"))
			switch changed := !rule.Equivalent(withoutEmpty(c), withoutEmpty(old)); {
			case changed && list == "containers":
				val.Forbidden(path, "only cpu and memory resources are mutable")
			case changed:
				val.Forbidden(at, "only cpu and memory resources for init or sidecar containers are mutable")
			}
			if list == "initContainers" && modified && object.String(c, "restartPolicy") != "Always" {
				for _, p := range rule.Objects(c["resizePolicy"]) {
					if object.String(p, "restartPolicy") == "RestartContainer" {
						val.Forbidden(at,
							"non-sidecar init containers with a resize policy of RestartContainer cannot be resized")
					}
				}
			}
		}
	}
}

// withoutEmpty returns a container without empty resource lists.
func withoutEmpty(c object.Object) object.Object {
	out := runtime.DeepCopyJSON(c)
	r := object.Map(out, "resources")
	for _, list := range []string{"requests", "limits"} {
		if len(object.Map(r, list)) == 0 {
			delete(r, list)
		}
	}
	return out
}
