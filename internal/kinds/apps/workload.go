package apps

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unversioned "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func warnWorkload(w *rule.Warnings) {
	pod.WarnTemplate(w, object.Map(w.Obj, "spec", "template"), field.NewPath("spec", "template"))
}

// warnNamedWorkload warns about the name of a workload, which is a prefix of its pods' names.
func warnNamedWorkload(w *rule.Warnings) {
	w.NameIsHostname("Pod names and hostnames")
	warnWorkload(w)
}

func warnStatefulSet(w *rule.Warnings) {
	warnWorkload(w)
	spec := object.Map(w.Obj, "spec")
	for i, claim := range rule.Objects(spec["volumeClaimTemplates"]) {
		path := field.NewPath("spec", "volumeClaimTemplates").Index(i)
		if w.Old != nil {
			path = path.Child("Spec")
		}
		pod.WarnClaimSpec(w, object.Map(claim, "spec"), path)
	}
	if limit, ok := object.Int(spec, "revisionHistoryLimit"); ok && limit < 0 {
		w.Addf(field.NewPath("spec", "revisionHistoryLimit"),
			"a negative value retains all historical revisions; a value >= 0 is recommended")
	}
}

// neededSelector requires a valid selector that does not select everything, and returns it. of is the kind in errors.
func neededSelector(val *rule.Validation, v any, of string, path *field.Path) *metav1.LabelSelector {
	s := rule.LabelSelector(v)
	if s == nil {
		val.Required(path, "")
		return nil
	}
	val.Errs = append(val.Errs,
		unversioned.ValidateLabelSelector(s, unversioned.LabelSelectorValidationOptions{}, path)...)
	if len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		val.Invalid(path, s, "empty selector is invalid for "+of)
	}
	return s
}

// deployed validates selector and template of a Deployment or ReplicaSet; errors call both deployments.
func deployed(val *rule.Validation, p rule.Value) {
	s := neededSelector(val, p.Object()["selector"], "deployment", p.Path.Child("selector"))
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		val.Invalid(p.Path.Child("selector"), s, "invalid label selector")
		return
	}
	template, path := object.Map(p.Object(), "template"), p.Path.Child("template")
	if !selector.Empty() {
		pod.CheckSelected(val, selector, template, path)
	}
	pod.ValidateTemplate(val, template, object.Map(template, "spec"), path)
	pod.CheckUntilDeleted(val, template, "ReplicaSet", path)
}

// stateful validates selector and template of a StatefulSet, with pod names as host names, and volumes named as the
// claims.
func stateful(val *rule.Validation, p rule.Value) {
	s := neededSelector(val, p.Object()["selector"], "statefulset", p.Path.Child("selector"))
	template, path := object.Map(p.Object(), "template"), p.Path.Child("template")
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		val.Invalid(p.Path.Child("selector"), s, "")
		pod.CheckUntilDeleted(val, template, "StatefulSet", path)
		return
	}
	spec := object.Object{}
	for name, v := range object.Map(template, "spec") {
		if name != "subdomain" && name != "hostname" {
			spec[name] = v
		}
	}
	if claims := rule.Objects(p.Object()["volumeClaimTemplates"]); len(claims) > 0 {
		var all []any
		made := map[string]bool{}
		for _, c := range claims {
			if name := object.String(object.Map(c, "metadata"), "name"); !made[name] {
				made[name] = true
				all = append(all,
					object.Object{"name": name, "persistentVolumeClaim": object.Object{"claimName": name}})
			}
		}
		for _, v := range rule.Objects(spec["volumes"]) {
			if !made[object.String(v, "name")] {
				all = append(all, v)
			}
		}
		spec["volumes"] = all
	}
	if !selector.Empty() {
		pod.CheckSelected(val, selector, template, path)
	}
	pod.ValidateTemplate(val, template, spec, path)
	pod.CheckUntilDeleted(val, template, "StatefulSet", path)
}

func daemons(val *rule.Validation, p rule.Value) {
	s := rule.LabelSelector(p.Object()["selector"])
	template, path := object.Map(p.Object(), "template"), p.Path.Child("template")
	if selector, err := metav1.LabelSelectorAsSelector(s); err == nil {
		pod.CheckSelected(val, selector, template, path)
	}
	if s != nil && len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		val.Invalid(p.Path.Child("selector"), s, "empty selector is invalid for daemonset")
	}
	pod.ValidateTemplate(val, template, object.Map(template, "spec"), path)
	pod.CheckUntilDeleted(val, template, "DaemonSet", path)
}

func sameSelector(val *rule.Validation, p rule.Value) {
	if !rule.Equivalent(p.New, p.Old) {
		val.Invalid(p.Path, rule.LabelSelector(p.New), "field is immutable")
	}
}

func deploymentStrategy(val *rule.Validation, p rule.Value) {
	s := p.Object()
	rolling, isRolling := s["rollingUpdate"].(object.Object)
	path := p.Path.Child("rollingUpdate")
	switch object.String(s, "type") {
	case "Recreate":
		if isRolling {
			val.Forbidden(path, "may not be specified when strategy `type` is 'Recreate'")
		}
	case "RollingUpdate":
		if !isRolling {
			val.Required(path, "this should be defaulted and never be nil")
			return
		}
		unavailable, surge := rule.Value{New: rolling["maxUnavailable"], Path: path.Child("maxUnavailable")},
			rule.Value{New: rolling["maxSurge"], Path: path.Child("maxSurge")}
		rule.CheckCount(val, unavailable)
		rule.CheckCount(val, surge)
		if rule.CountOf(unavailable.New) == 0 && rule.CountOf(surge.New) == 0 {
			val.Invalid(unavailable.Path, unavailable.New, "may not be 0 when `maxSurge` is 0")
		}
		rule.CheckAtMostAll(val, unavailable)
	default:
		val.Unsupported(p.Path, s, "Recreate", "RollingUpdate")
	}
}

func daemonSetStrategy(val *rule.Validation, p rule.Value) {
	s := p.Object()
	path := p.Path.Child("rollingUpdate")
	switch object.String(s, "type") {
	case "OnDelete":
	case "RollingUpdate":
		rolling := object.Map(s, "rollingUpdate")
		if rolling == nil {
			val.Required(path, "")
			return
		}
		unavailable, surge := rule.Value{New: rolling["maxUnavailable"], Path: path.Child("maxUnavailable")},
			rule.Value{New: rolling["maxSurge"], Path: path.Child("maxSurge")}
		for _, p := range []rule.Value{unavailable, surge} {
			rule.CheckCount(val, p)
			rule.CheckAtMostAll(val, p)
		}
		switch down, up := rule.CountOf(unavailable.New) != 0, rule.CountOf(surge.New) != 0; {
		case down && up:
			val.Invalid(surge.Path, surge.New, "may not be set when maxUnavailable is non-zero")
		case !down && !up:
			val.Required(unavailable.Path, "cannot be 0 when maxSurge is 0")
		}
	default:
		val.Unsupported(p.Path, s, "RollingUpdate", "OnDelete")
	}
}

// NoRecreate is the rule that updates of a stateful set do not recreate all pods. StatefulSetRecreateStrategy lifts it.
const NoRecreate rule.Exception = "a stateful set does not recreate its pods"

func statefulSetStrategy(val *rule.Validation, p rule.Value) {
	spec := p.Object()
	if policy := object.String(spec, "podManagementPolicy"); policy != "" && policy != "OrderedReady" &&
		policy != "Parallel" {
		val.Invalid(p.Path.Child("podManagementPolicy"), policy, "must be 'OrderedReady' or 'Parallel'")
	}
	s, path := object.Map(spec, "updateStrategy"), p.Path.Child("updateStrategy")
	rolling, isRolling := s["rollingUpdate"].(object.Object)
	switch object.String(s, "type") {
	case "":
		val.Required(path, "")
	case "OnDelete":
		notRolling(val, isRolling, rolling, path)
	case "RollingUpdate":
		if n, _ := object.Int(rolling, "partition"); n < 0 {
			val.Invalid(path.Child("rollingUpdate", "partition"), n, "must be greater than or equal to 0")
		}
		if v := rolling["maxUnavailable"]; v != nil {
			at := rule.Value{New: v, Path: path.Child("rollingUpdate", "maxUnavailable")}
			rule.CheckCount(val, at)
			if rule.CountOf(v) == 0 {
				val.Invalid(at.Path, v, "cannot be 0")
			}
			rule.CheckAtMostAll(val, at)
		}
	default:
		recreates := val.Excused(NoRecreate)
		switch {
		case recreates && object.String(s, "type") == "Recreate":
			notRolling(val, isRolling, rolling, path)
		case recreates:
			val.Invalid(path, s, "must be 'RollingUpdate', 'OnDelete', or 'Recreate'")
		default:
			val.Invalid(path, s, "must be 'RollingUpdate' or 'OnDelete'")
		}
	}
}

// notRolling refuses the settings of a rolling update with another strategy.
func notRolling(val *rule.Validation, isRolling bool, rolling object.Object, path *field.Path) {
	if isRolling {
		val.Invalid(path.Child("rollingUpdate"), rolling, "only allowed for updateStrategy 'RollingUpdate'")
	}
}

// statefulSetUpdate allows changes of only some fields of a stateful set's spec.
func statefulSetUpdate(val *rule.Validation, _ rule.Value) {
	spec, was := object.Map(val.Obj, "spec"), object.Map(val.Old, "spec")
	path := field.NewPath("spec")
	for _, name := range []string{"selector", "serviceName", "podManagementPolicy"} {
		if !rule.Equivalent(spec[name], was[name]) {
			val.Invalid(path.Child(name), spec[name], "field is immutable")
		}
	}
	if now := spec["volumeClaimTemplates"]; !sameClaims(now, was["volumeClaimTemplates"]) {
		val.Invalid(path.Child("volumeClaimTemplates"), rule.GoForm[[]corev1.PersistentVolumeClaim](now),
			"field is immutable")
	}
}

// sameClaims reports whether two lists of claim templates are equivalent. Their kind is implied.
func sameClaims(a, b any) bool {
	lists := runtime.DeepCopyJSON(object.Object{"a": a, "b": b})
	for _, claims := range lists {
		for _, c := range rule.Objects(claims) {
			delete(c, "apiVersion")
			delete(c, "kind")
		}
	}
	return rule.Equivalent(lists["a"], lists["b"])
}

func progressDeadline(val *rule.Validation, p rule.Value) {
	deadline, ok := object.Int(p.Object(), "progressDeadlineSeconds")
	if ready, _ := object.Int(p.Object(), "minReadySeconds"); ok && deadline <= ready {
		val.Invalid(p.Path.Child("progressDeadlineSeconds"), deadline, "must be greater than minReadySeconds")
	}
}

func ordinals(val *rule.Validation, p rule.Value) {
	if n, _ := object.Int(object.Map(p.Object(), "ordinals"), "start"); n < 0 {
		val.Invalid(p.Path.Child("ordinals.start"), n, "must be greater than or equal to 0")
	}
}

// replicaCounts requires partial counts to be at most the total.
func replicaCounts(val *rule.Validation, p rule.Value) {
	pod.CheckNoMore(val, p, "cannot be greater than readyReplicas", "updatedReplicas", "readyReplicas",
		"availableReplicas")
}

func statefulSetCounts(val *rule.Validation, p rule.Value) {
	pod.CheckNoMore(val, p, "cannot be greater than status.readyReplicas", "readyReplicas", "currentReplicas",
		"updatedReplicas",
		"availableReplicas")
}

func collisionCount(val *rule.Validation, _ rule.Value) {
	now, ok := object.Int(object.Map(val.Obj, "status"), "collisionCount")
	was, had := object.Int(object.Map(val.Old, "status"), "collisionCount")
	if had && (!ok || now < was) {
		val.Invalid(field.NewPath("status", "collisionCount"), now, "cannot be decremented")
	}
}

func revisionData(val *rule.Validation, p rule.Value) {
	switch p.New.(type) {
	case nil:
		val.Required(p.Path, "data is mandatory")
	case object.Object:
	default:
		if _, err := json.Marshal(p.New); err != nil {
			val.Invalid(p.Path, "<value omitted>", fmt.Sprintf("error parsing data: %v", err))
			return
		}
		val.Required(p.Path, "data must be a valid JSON object")
	}
}
