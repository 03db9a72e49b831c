package core

import (
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

// mayChange lists the mutable fields of a pod, in the text of the error.
const mayChange = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations)," +
	"`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"

// podUpdate allows changes of images, shorter deadlines, added tolerations, and little else.
func podUpdate(val *rule.Validation, _ rule.Value) {
	annotationsKept(val)
	spec, was, path := object.Map(val.Obj, "spec"), object.Map(val.Old, "spec"), field.NewPath("spec")
	for _, list := range []string{"containers", "initContainers"} {
		if !sameContainers(val, rule.Objects(spec[list]), rule.Objects(was[list]), path.Child(list)) {
			return
		}
	}
	if !deadline(val, spec, was, path.Child("activeDeadlineSeconds")) {
		return
	}
	addedTolerations(val, rule.Objects(spec["tolerations"]), rule.Objects(was["tolerations"]),
		path.Child("tolerations"))
	removedGates(val, rule.Objects(spec["schedulingGates"]), rule.Objects(was["schedulingGates"]),
		path.Child("schedulingGates"))
	if rule.Equivalent(spec, was) {
		return
	}
	masked := runtime.DeepCopyJSON(spec)
	for _, list := range []string{"containers", "initContainers"} {
		for i, c := range rule.Objects(masked[list]) {
			pod.Keep(c, rule.Objects(was[list])[i], "image")
		}
	}
	for _, name := range []string{"activeDeadlineSeconds", "schedulingGates", "tolerations"} {
		pod.Keep(masked, was, name)
	}
	if grace, _ := object.Int(was, "terminationGracePeriodSeconds"); grace < 0 &&
		masked["terminationGracePeriodSeconds"] == int64(1) {
		masked["terminationGracePeriodSeconds"] = grace
	}
	if !rule.IsEmpty(was["schedulingGates"]) {
		gatedChanges(val, masked, was, path)
	}
	if !rule.Equivalent(masked, was) {
		val.Forbidden(path,
			fmt.Sprintf("pod updates may not change fields other than %s\n%v", mayChange,
				changed[corev1.PodSpec](was, masked)))
	}
}

// annotationsKept rejects adding or removing some annotations.
func annotationsKept(val *rule.Validation) {
	now, was := rule.StringMap(object.Map(val.Obj, "metadata")["annotations"]),
		rule.StringMap(object.Map(val.Old, "metadata")["annotations"])
	path := field.NewPath("metadata", "annotations")
	for _, key := range pod.SortedNames(was) {
		if v, ok := now[key]; ok && v == was[key] {
			continue
		}
		if strings.HasPrefix(key, pod.AppArmor) {
			val.Forbidden(path.Key(key), "may not remove or update AppArmor annotations")
		}
		if key == pod.MirrorPod {
			val.Forbidden(path.Key(key), "may not remove or update mirror pod annotation")
		}
	}
	for _, key := range pod.SortedNames(now) {
		if _, ok := was[key]; ok {
			continue
		}
		if strings.HasPrefix(key, pod.AppArmor) {
			val.Forbidden(path.Key(key), "may not add AppArmor annotations")
		}
		if key == pod.MirrorPod {
			val.Forbidden(path.Key(key), "may not add mirror pod annotation")
		}
	}
}

func sameContainers(val *rule.Validation, now, was []object.Object, path *field.Path) bool {
	if len(now) != len(was) {
		val.Forbidden(path, "pod updates may not add or remove containers")
		return false
	}
	return true
}

// deadline allows setting or shortening spec.activeDeadlineSeconds.
func deadline(val *rule.Validation, spec, was object.Object, path *field.Path) bool {
	n, ok := object.Int(spec, "activeDeadlineSeconds")
	old, had := object.Int(was, "activeDeadlineSeconds")
	switch {
	case ok && (n < 0 || n > math.MaxInt32):
		val.Invalid(path, n, validation.InclusiveRangeError(0, math.MaxInt32))
		return false
	case ok && had && old < n:
		val.Invalid(path, n, "must be less than or equal to previous value")
		return false
	case !ok && had:
		val.Invalid(path, nil, "must not update from a positive integer to nil value")
	}
	return true
}

func addedTolerations(val *rule.Validation, now, was []object.Object, path *field.Path) {
	kept := sets.Set[string]{}
	for _, t := range now {
		kept.Insert(tolerated(t))
	}
	for _, old := range was {
		if !kept.Has(tolerated(old)) {
			val.Forbidden(path, "existing toleration can not be modified except its tolerationSeconds")
			return
		}
	}
}

// tolerated returns a text that is equal for tolerations that differ only in their seconds.
func tolerated(t object.Object) string {
	var b strings.Builder
	for _, key := range object.Keys(t) {
		if text, ok := t[key].(string); ok {
			fmt.Fprintf(&b, "%q:%q,", key, text)
		}
	}
	return b.String()
}

func removedGates(val *rule.Validation, now, was []object.Object, path *field.Path) {
	had := sets.Set[string]{}
	for _, old := range was {
		had.Insert(object.String(old, "name"))
	}
	for i, g := range now {
		name := object.String(g, "name")
		if !had.Has(name) {
			val.Forbidden(path.Index(i).Child("name"),
				fmt.Sprintf("only deletion is allowed, but found new scheduling gate '%s'", name))
		}
	}
}

// gatedChanges lets a pod with scheduling gates restrict its nodes further. It reverts the validated changes in masked.
func gatedChanges(val *rule.Validation, masked, was object.Object, path *field.Path) {
	selector, oldSelector := rule.StringMap(masked["nodeSelector"]), rule.StringMap(was["nodeSelector"])
	for key, v := range oldSelector {
		if selector[key] != v {
			val.Invalid(path.Child("nodeSelector"), selector,
				"only additions to spec.nodeSelector are allowed (no mutations or deletions)")
			break
		}
	}
	pod.Keep(masked, was, "nodeSelector")
	affinity, oldAffinity := object.Map(masked, "affinity"), object.Map(was, "affinity")
	if rule.Equivalent(affinity["nodeAffinity"], oldAffinity["nodeAffinity"]) {
		return
	}
	narrowed(val, object.Map(affinity, "nodeAffinity"), object.Map(oldAffinity, "nodeAffinity"),
		path.Child("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"))
	switch {
	case affinity == nil:
		masked["affinity"] = object.Object{"nodeAffinity": oldAffinity["nodeAffinity"]}
	case oldAffinity == nil && affinity["podAntiAffinity"] == nil && affinity["podAffinity"] == nil:
		delete(masked, "affinity")
	default:
		pod.Keep(affinity, oldAffinity, "nodeAffinity")
	}
}

// narrowed allows adding requirements to the terms of a node affinity.
func narrowed(val *rule.Validation, now, was object.Object, path *field.Path) {
	const required = "requiredDuringSchedulingIgnoredDuringExecution"
	if object.Map(was, required) == nil {
		return
	}
	terms, old := rule.Objects(object.Map(now, required)["nodeSelectorTerms"]),
		rule.Objects(object.Map(was, required)["nodeSelectorTerms"])
	if len(old) > 0 && len(old) != len(terms) {
		val.Invalid(path, terms, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")
		return
	}
	for i := range old {
		if !begins(terms[i], old[i]) {
			val.Invalid(path.Index(i), terms[i], "only additions are allowed (no mutations or deletions)")
		}
	}
}

// begins reports whether the requirements of another term are a prefix of a term's. An empty term matches nothing and
// must stay empty.
func begins(now, was object.Object) bool {
	before := 0
	for _, list := range []string{"matchExpressions", "matchFields"} {
		a, b := rule.Objects(now[list]), rule.Objects(was[list])
		if len(a) < len(b) {
			return false
		}
		for i := range b {
			if !rule.Equivalent(a[i], b[i]) {
				return false
			}
		}
		before += len(b)
	}
	return before > 0 || rule.IsEmpty(now["matchExpressions"]) && rule.IsEmpty(now["matchFields"])
}

// addedContainers allows adding ephemeral containers; existing ones must stay unchanged.
func addedContainers(val *rule.Validation, _ rule.Value) {
	annotationsKept(val)
	if _, ok := object.Map(val.Old, "metadata", "annotations")[pod.MirrorPod]; ok {
		val.Errs = field.ErrorList{
			field.Forbidden(field.NewPath(""), "static pods do not support ephemeral containers"),
		}
		return
	}
	path := field.NewPath("spec", "ephemeralContainers")
	now := rule.Objects(object.Map(val.Obj, "spec")["ephemeralContainers"])
	at := map[string]int{}
	for i, c := range slices.Backward(now) {
		at[object.String(c, "name")] = i
	}
	for _, old := range rule.Objects(object.Map(val.Old, "spec")["ephemeralContainers"]) {
		name := object.String(old, "name")
		i, ok := at[name]
		switch {
		case !ok:
			val.Forbidden(path, fmt.Sprintf("existing ephemeral containers %q may not be removed\n", name))
		case !rule.Equivalent(old, now[i]):
			val.Forbidden(path,
				fmt.Sprintf("existing ephemeral containers %q may not be changed\n%v", name,
					changed[corev1.EphemeralContainer](old, now[i])))
		}
	}
}
