package check

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unversioned "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func workloadFunctions() map[string]func(*judgement, place) {
	return map[string]func(*judgement, place){
		"controlled":          controlled,
		"deployed":            deployed,
		"stateful":            stateful,
		"daemons":             daemons,
		"sameSelector":        sameSelector,
		"deploymentStrategy":  deploymentStrategy,
		"daemonSetStrategy":   daemonSetStrategy,
		"statefulSetStrategy": statefulSetStrategy,
		"statefulSetUpdate":   statefulSetUpdate,
		"progressDeadline":    progressDeadline,
		"ordinals":            ordinals,
		"replicaCounts":       replicaCounts,
		"replicaSetCounts":    replicaSetCounts,
		"statefulSetCounts":   statefulSetCounts,
		"collisionCount":      collisionCount,
		"revisionData":        revisionData,
	}
}

// neededSelector wants a selector that is valid and selects less than everything, and returns it. of is the kind as
// errors name it.
func (j *judgement) neededSelector(v any, of string, path *field.Path) *metav1.LabelSelector {
	s := labelSelector(v)
	if s == nil {
		j.required(path, "")
		return nil
	}
	j.errs = append(j.errs, unversioned.ValidateLabelSelector(s, unversioned.LabelSelectorValidationOptions{}, path)...)
	if len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		j.invalid(path, s, "empty selector is invalid for "+of)
	}
	return s
}

// selected wants a template whose pods the selector selects.
func (j *judgement) selected(s labels.Selector, template object, path *field.Path) {
	own := pairs(inner(template, "metadata")["labels"])
	if !s.Matches(labels.Set(own)) {
		j.invalid(path.Child("metadata", "labels"), own, "`selector` does not match template `labels`")
	}
}

// untilDeleted wants pods that run until they are deleted.
func (j *judgement) untilDeleted(template object, of string, path *field.Path) {
	spec := inner(template, "spec")
	if policy := text1(spec, "restartPolicy"); policy != "Always" {
		j.unsupported(path.Child("spec", "restartPolicy"), policy, "Always")
	}
	if spec["activeDeadlineSeconds"] != nil {
		j.forbidden(path.Child("spec", "activeDeadlineSeconds"), "activeDeadlineSeconds in "+of+" is not Supported")
	}
}

// controlled judges selector and template of a ReplicationController.
func controlled(j *judgement, p place) {
	template, path := inner(p.object(), "template"), p.path.Child("template")
	if template == nil {
		return
	}
	if s := labels.Set(pairs(p.object()["selector"])).AsSelector(); !s.Empty() {
		j.selected(s, template, path)
	}
	j.template(template, inner(template, "spec"), path)
	j.untilDeleted(template, "ReplicationController", path)
}

// deployed judges selector and template of a Deployment or ReplicaSet, which errors call deployments both.
func deployed(j *judgement, p place) {
	s := j.neededSelector(p.object()["selector"], "deployment", p.path.Child("selector"))
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		j.invalid(p.path.Child("selector"), s, "invalid label selector")
		return
	}
	template, path := inner(p.object(), "template"), p.path.Child("template")
	if !selector.Empty() {
		j.selected(selector, template, path)
	}
	j.template(template, inner(template, "spec"), path)
	j.untilDeleted(template, "ReplicaSet", path)
}

// stateful judges selector and template of a StatefulSet, whose pods get host names, and volumes of the claims' names.
func stateful(j *judgement, p place) {
	s := j.neededSelector(p.object()["selector"], "statefulset", p.path.Child("selector"))
	template, path := inner(p.object(), "template"), p.path.Child("template")
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		j.invalid(p.path.Child("selector"), s, "")
		j.untilDeleted(template, "StatefulSet", path)
		return
	}
	spec := object{}
	for name, v := range inner(template, "spec") {
		if name != "subdomain" && name != "hostname" {
			spec[name] = v
		}
	}
	if claims := objects(p.object()["volumeClaimTemplates"]); len(claims) > 0 {
		var all []any
		made := map[string]bool{}
		for _, c := range claims {
			if name := text1(inner(c, "metadata"), "name"); !made[name] {
				made[name] = true
				all = append(all, object{"name": name, "persistentVolumeClaim": object{"claimName": name}})
			}
		}
		for _, v := range objects(spec["volumes"]) {
			if !made[text1(v, "name")] {
				all = append(all, v)
			}
		}
		spec["volumes"] = all
	}
	if !selector.Empty() {
		j.selected(selector, template, path)
	}
	j.template(template, spec, path)
	j.untilDeleted(template, "StatefulSet", path)
}

func daemons(j *judgement, p place) {
	s := labelSelector(p.object()["selector"])
	template, path := inner(p.object(), "template"), p.path.Child("template")
	if selector, err := metav1.LabelSelectorAsSelector(s); err == nil {
		j.selected(selector, template, path)
	}
	if s != nil && len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		j.invalid(p.path.Child("selector"), s, "empty selector is invalid for daemonset")
	}
	j.template(template, inner(template, "spec"), path)
	j.untilDeleted(template, "DaemonSet", path)
}

func sameSelector(j *judgement, p place) {
	if !same(p.value, p.old) {
		j.invalid(p.path, labelSelector(p.value), "field is immutable")
	}
}

func deploymentStrategy(j *judgement, p place) {
	s := p.object()
	rolling, isRolling := s["rollingUpdate"].(object)
	path := p.path.Child("rollingUpdate")
	switch text1(s, "type") {
	case "Recreate":
		if isRolling {
			j.forbidden(path, "may not be specified when strategy `type` is 'Recreate'")
		}
	case "RollingUpdate":
		if !isRolling {
			j.required(path, "this should be defaulted and never be nil")
			return
		}
		unavailable, surge := place{value: rolling["maxUnavailable"], path: path.Child("maxUnavailable")},
			place{value: rolling["maxSurge"], path: path.Child("maxSurge")}
		j.count(unavailable)
		j.count(surge)
		if countOf(unavailable.value) == 0 && countOf(surge.value) == 0 {
			j.invalid(unavailable.path, unavailable.value, "may not be 0 when `maxSurge` is 0")
		}
		j.atMostAll(unavailable)
	default:
		j.unsupported(p.path, s, "Recreate", "RollingUpdate")
	}
}

func daemonSetStrategy(j *judgement, p place) {
	s := p.object()
	path := p.path.Child("rollingUpdate")
	switch text1(s, "type") {
	case "OnDelete":
	case "RollingUpdate":
		rolling := inner(s, "rollingUpdate")
		if rolling == nil {
			j.required(path, "")
			return
		}
		unavailable, surge := place{value: rolling["maxUnavailable"], path: path.Child("maxUnavailable")},
			place{value: rolling["maxSurge"], path: path.Child("maxSurge")}
		for _, p := range []place{unavailable, surge} {
			j.count(p)
			j.atMostAll(p)
		}
		switch down, up := countOf(unavailable.value) != 0, countOf(surge.value) != 0; {
		case down && up:
			j.invalid(surge.path, surge.value, "may not be set when maxUnavailable is non-zero")
		case !down && !up:
			j.required(unavailable.path, "cannot be 0 when maxSurge is 0")
		}
	default:
		j.unsupported(p.path, s, "RollingUpdate", "OnDelete")
	}
}

func statefulSetStrategy(j *judgement, p place) {
	spec := p.object()
	if policy := text1(spec, "podManagementPolicy"); policy != "" && policy != "OrderedReady" && policy != "Parallel" {
		j.invalid(p.path.Child("podManagementPolicy"), policy, "must be 'OrderedReady' or 'Parallel'")
	}
	s, path := inner(spec, "updateStrategy"), p.path.Child("updateStrategy")
	rolling, isRolling := s["rollingUpdate"].(object)
	switch text1(s, "type") {
	case "":
		j.required(path, "")
	case "OnDelete":
		if isRolling {
			j.invalid(path.Child("rollingUpdate"), rolling, "only allowed for updateStrategy 'RollingUpdate'")
		}
	case "RollingUpdate":
		if n, _ := number(rolling, "partition"); n < 0 {
			j.invalid(path.Child("rollingUpdate", "partition"), n, "must be greater than or equal to 0")
		}
		if v := rolling["maxUnavailable"]; v != nil {
			at := place{value: v, path: path.Child("rollingUpdate", "maxUnavailable")}
			j.count(at)
			if countOf(v) == 0 {
				j.invalid(at.path, v, "cannot be 0")
			}
			j.atMostAll(at)
		}
	default:
		j.invalid(path, s, "must be 'RollingUpdate' or 'OnDelete'")
	}
}

// statefulSetUpdate lets only some of a stateful set's spec change.
func statefulSetUpdate(j *judgement, _ place) {
	spec, was := runtime.DeepCopyJSON(inner(j.obj, "spec")), inner(j.old, "spec")
	for _, name := range []string{"replicas", "template", "updateStrategy", "minReadySeconds", "ordinals",
		"revisionHistoryLimit", "persistentVolumeClaimRetentionPolicy"} {
		keep(spec, was, name)
	}
	was = runtime.DeepCopyJSON(was)
	for _, s := range []object{spec, was} {
		for _, c := range objects(s["volumeClaimTemplates"]) { // whose kind goes without saying
			delete(c, "apiVersion")
			delete(c, "kind")
		}
	}
	if !same(spec, was) {
		j.forbidden(field.NewPath("spec"),
			"updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden")
	}
}

func progressDeadline(j *judgement, p place) {
	deadline, ok := number(p.object(), "progressDeadlineSeconds")
	if ready, _ := number(p.object(), "minReadySeconds"); ok && deadline <= ready {
		j.invalid(p.path.Child("progressDeadlineSeconds"), deadline, "must be greater than minReadySeconds")
	}
}

func ordinals(j *judgement, p place) {
	if n, _ := number(inner(p.object(), "ordinals"), "start"); n < 0 {
		j.invalid(p.path.Child("ordinals.start"), n, "must be greater than or equal to 0")
	}
}

// replicaCounts wants parts to be no more than the whole.
func replicaCounts(j *judgement, p place) {
	j.noMore(p, "cannot be greater than readyReplicas", "updatedReplicas", "readyReplicas", "availableReplicas")
}

func replicaSetCounts(j *judgement, p place) {
	j.noMore(p, "cannot be greater than readyReplicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas")
}

func statefulSetCounts(j *judgement, p place) {
	j.noMore(p, "cannot be greater than status.readyReplicas", "readyReplicas", "currentReplicas", "updatedReplicas",
		"availableReplicas")
}

func (j *judgement) noMore(p place, thanReady string, names ...string) {
	s := p.object()
	whole, _ := number(s, "replicas")
	for _, name := range names {
		if n, _ := number(s, name); n > whole {
			j.invalid(p.path.Child(name), n, "cannot be greater than status.replicas")
		}
	}
	available, _ := number(s, "availableReplicas")
	if ready, _ := number(s, "readyReplicas"); available > ready {
		j.invalid(p.path.Child("availableReplicas"), available, thanReady)
	}
}

func collisionCount(j *judgement, _ place) {
	now, ok := number(inner(j.obj, "status"), "collisionCount")
	was, had := number(inner(j.old, "status"), "collisionCount")
	if had && (!ok || now < was) {
		j.invalid(field.NewPath("status", "collisionCount"), now, "cannot be decremented")
	}
}

func revisionData(j *judgement, p place) {
	switch p.value.(type) {
	case nil:
		j.required(p.path, "data is mandatory")
	case object:
	default:
		if _, err := json.Marshal(p.value); err != nil {
			j.invalid(p.path, "<value omitted>", fmt.Sprintf("error parsing data: %v", err))
			return
		}
		j.required(p.path, "data must be a valid JSON object")
	}
}
