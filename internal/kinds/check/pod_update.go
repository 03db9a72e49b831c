package check

import (
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func podUpdateFunctions() map[string]func(*judgement, place) {
	return map[string]func(*judgement, place){
		"podUpdate":       podUpdate,
		"addedContainers": addedContainers,
		"podResize":       podResize,
		"podStatus":       podStatus,
	}
}

// mayChange is what of a pod may change, as the error about the rest says it.
const mayChange = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations)," +
	"`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"

// podUpdate lets images change, deadlines come nearer, tolerations be added, and little else.
func podUpdate(j *judgement, _ place) {
	j.annotationsKept()
	spec, was, path := inner(j.obj, "spec"), inner(j.old, "spec"), field.NewPath("spec")
	for _, list := range []string{"containers", "initContainers"} {
		if !j.sameContainers(objects(spec[list]), objects(was[list]), path.Child(list)) {
			return
		}
	}
	if !j.deadline(spec, was, path.Child("activeDeadlineSeconds")) {
		return
	}
	j.addedTolerations(objects(spec["tolerations"]), objects(was["tolerations"]), path.Child("tolerations"))
	j.removedGates(objects(spec["schedulingGates"]), objects(was["schedulingGates"]), path.Child("schedulingGates"))
	if same(spec, was) {
		return
	}
	masked := runtime.DeepCopyJSON(spec)
	for _, list := range []string{"containers", "initContainers"} {
		for i, c := range objects(masked[list]) {
			keep(c, objects(was[list])[i], "image")
		}
	}
	for _, name := range []string{"activeDeadlineSeconds", "schedulingGates", "tolerations"} {
		keep(masked, was, name)
	}
	if grace, _ := number(was, "terminationGracePeriodSeconds"); grace < 0 &&
		masked["terminationGracePeriodSeconds"] == int64(1) {
		masked["terminationGracePeriodSeconds"] = grace
	}
	if !empty(was["schedulingGates"]) {
		j.gatedChanges(masked, was, path)
	}
	if !same(masked, was) {
		j.forbidden(path,
			fmt.Sprintf("pod updates may not change fields other than %s\n%v", mayChange,
				changed[corev1.PodSpec](was, masked)))
	}
}

// annotationsKept lets some annotations neither come nor go.
func (j *judgement) annotationsKept() {
	now, was := pairs(inner(j.obj, "metadata")["annotations"]), pairs(inner(j.old, "metadata")["annotations"])
	path := field.NewPath("metadata", "annotations")
	for _, key := range sorted(was) {
		if v, ok := now[key]; ok && v == was[key] {
			continue
		}
		if strings.HasPrefix(key, appArmor) {
			j.forbidden(path.Key(key), "may not remove or update AppArmor annotations")
		}
		if key == mirrorPod {
			j.forbidden(path.Key(key), "may not remove or update mirror pod annotation")
		}
	}
	for _, key := range sorted(now) {
		if _, ok := was[key]; ok {
			continue
		}
		if strings.HasPrefix(key, appArmor) {
			j.forbidden(path.Key(key), "may not add AppArmor annotations")
		}
		if key == mirrorPod {
			j.forbidden(path.Key(key), "may not add mirror pod annotation")
		}
	}
}

func (j *judgement) sameContainers(now, was []object, path *field.Path) bool {
	if len(now) != len(was) {
		j.forbidden(path, "pod updates may not add or remove containers")
		return false
	}
	return true
}

// deadline lets spec.activeDeadlineSeconds be set, or come nearer.
func (j *judgement) deadline(spec, was object, path *field.Path) bool {
	n, ok := number(spec, "activeDeadlineSeconds")
	old, had := number(was, "activeDeadlineSeconds")
	switch {
	case ok && (n < 0 || n > math.MaxInt32):
		j.invalid(path, n, validation.InclusiveRangeError(0, math.MaxInt32))
		return false
	case ok && had && old < n:
		j.invalid(path, n, "must be less than or equal to previous value")
		return false
	case !ok && had:
		j.invalid(path, nil, "must not update from a positive integer to nil value")
	}
	return true
}

func (j *judgement) addedTolerations(now, was []object, path *field.Path) {
	for _, old := range was {
		if !slices.ContainsFunc(now, func(t object) bool {
			masked := runtime.DeepCopyJSON(old)
			keep(masked, t, "tolerationSeconds")
			return same(masked, t)
		}) {
			j.forbidden(path, "existing toleration can not be modified except its tolerationSeconds")
			return
		}
	}
}

func (j *judgement) removedGates(now, was []object, path *field.Path) {
	for i, g := range now {
		name := text1(g, "name")
		if !slices.ContainsFunc(was, func(old object) bool { return text1(old, "name") == name }) {
			j.forbidden(path.Index(i).Child("name"),
				fmt.Sprintf("only deletion is allowed, but found new scheduling gate '%s'", name))
		}
	}
}

// gatedChanges lets a pod that is not ready to be scheduled be bound to fewer nodes. It takes what it has judged out
// of masked.
func (j *judgement) gatedChanges(masked, was object, path *field.Path) {
	selector, oldSelector := pairs(masked["nodeSelector"]), pairs(was["nodeSelector"])
	for key, v := range oldSelector {
		if selector[key] != v {
			j.invalid(path.Child("nodeSelector"), selector,
				"only additions to spec.nodeSelector are allowed (no mutations or deletions)")
			break
		}
	}
	keep(masked, was, "nodeSelector")
	affinity, oldAffinity := inner(masked, "affinity"), inner(was, "affinity")
	if same(affinity["nodeAffinity"], oldAffinity["nodeAffinity"]) {
		return
	}
	j.narrowed(inner(affinity, "nodeAffinity"), inner(oldAffinity, "nodeAffinity"),
		path.Child("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"))
	switch {
	case affinity == nil:
		masked["affinity"] = object{"nodeAffinity": oldAffinity["nodeAffinity"]}
	case oldAffinity == nil && affinity["podAntiAffinity"] == nil && affinity["podAffinity"] == nil:
		delete(masked, "affinity")
	default:
		keep(affinity, oldAffinity, "nodeAffinity")
	}
}

// narrowed lets the terms of a node affinity get more requirements.
func (j *judgement) narrowed(now, was object, path *field.Path) {
	const required = "requiredDuringSchedulingIgnoredDuringExecution"
	if inner(was, required) == nil {
		return
	}
	terms, old := objects(inner(now, required)["nodeSelectorTerms"]), objects(inner(was, required)["nodeSelectorTerms"])
	if len(old) > 0 && len(old) != len(terms) {
		j.invalid(path, terms, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")
		return
	}
	for i := range old {
		if !begins(terms[i], old[i]) {
			j.invalid(path.Index(i), terms[i], "only additions are allowed (no mutations or deletions)")
		}
	}
}

// begins tells whether the requirements of a term begin with those of another. An empty term matches nothing and stays
// so.
func begins(now, was object) bool {
	before := 0
	for _, list := range []string{"matchExpressions", "matchFields"} {
		a, b := objects(now[list]), objects(was[list])
		if len(a) < len(b) {
			return false
		}
		for i := range b {
			if !same(a[i], b[i]) {
				return false
			}
		}
		before += len(b)
	}
	return before > 0 || empty(now["matchExpressions"]) && empty(now["matchFields"])
}

// addedContainers lets ephemeral containers be added, and those that are there stay as they are.
func addedContainers(j *judgement, _ place) {
	j.annotationsKept()
	if _, ok := inner(j.old, "metadata", "annotations")[mirrorPod]; ok {
		j.errs = field.ErrorList{field.Forbidden(field.NewPath(""), "static pods do not support ephemeral containers")}
		return
	}
	path := field.NewPath("spec", "ephemeralContainers")
	now := objects(inner(j.obj, "spec")["ephemeralContainers"])
	for _, old := range objects(inner(j.old, "spec")["ephemeralContainers"]) {
		name := text1(old, "name")
		i := slices.IndexFunc(now, func(c object) bool { return text1(c, "name") == name })
		switch {
		case i < 0:
			j.forbidden(path, fmt.Sprintf("existing ephemeral containers %q may not be removed\n", name))
		case !same(old, now[i]):
			j.forbidden(path,
				fmt.Sprintf("existing ephemeral containers %q may not be changed\n%v", name,
					changed[corev1.EphemeralContainer](old, now[i])))
		}
	}
}
