package check

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unversioned "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// scalingFunctions are about autoscalers and disruption budgets.
func scalingFunctions() map[string]func(*judgement, place) {
	return map[string]func(*judgement, place){
		"budget":       budget,
		"conditions":   conditions,
		"maxReplicas":  maxReplicas,
		"zeroReplicas": zeroReplicas,
		"scaleTarget":  scaleTarget,
		"metric":       metric,
		"metricTarget": func(j *judgement, p place) { j.metricTarget(p.object(), p.path) },
	}
}

func budget(j *judgement, p place) {
	if p.object()["minAvailable"] != nil && p.object()["maxUnavailable"] != nil {
		j.invalid(p.path, p.object(), "minAvailable and maxUnavailable cannot be both set")
	}
}

func conditions(j *judgement, p place) {
	j.errs = append(j.errs, unversioned.ValidateConditions(as[[]metav1.Condition](p.value), p.path)...)
}

func maxReplicas(j *judgement, p place) {
	most, ok := number(p.object(), "maxReplicas")
	least, set := number(p.object(), "minReplicas")
	if ok && most < 0 {
		j.invalid(p.path.Child("maxReplicas"), most, "must be greater than or equal to 1")
	}
	if set && most < least {
		j.invalid(p.path.Child("maxReplicas"), most, "must be greater than or equal to `minReplicas`")
	}
}

// zeroReplicas: what scales to nothing must be told by something outside of it when to come back.
func zeroReplicas(j *judgement, p place) {
	if least, set := number(p.in, "minReplicas"); !set || least != 0 {
		return
	}
	outside := func(m object) bool { return text1(m, "type") == "Object" || text1(m, "type") == "External" }
	if !slices.ContainsFunc(objects(p.value), outside) {
		j.forbidden(p.path, "must specify at least one Object or External metric to support scaling to zero replicas")
	}
}

// scaleTarget judges what is scaled, which has a group unless it is a replication controller.
func scaleTarget(j *judgement, p place) {
	ref, was := p.object(), inner(j.old, "spec", "scaleTargetRef")
	j.reference(ref, p.path)
	if was != nil && text1(was, "apiVersion") == text1(ref, "apiVersion") && text1(was, "kind") == text1(ref, "kind") {
		return
	}
	j.referenceVersion(ref, text1(ref, "kind") == "ReplicationController", p.path)
}

// reference judges a reference to an object of any kind.
func (j *judgement) reference(ref object, path *field.Path) {
	for _, name := range []string{"kind", "name"} {
		if s := text1(ref, name); s == "" {
			j.required(path.Child(name), "")
		} else {
			j.invalids(path.Child(name), s, content.IsPathSegmentName(s))
		}
	}
}

func (j *judgement) referenceVersion(ref object, core bool, path *field.Path) {
	version := text1(ref, "apiVersion")
	switch gv, err := schema.ParseGroupVersion(version); {
	case err != nil:
		j.invalid(path.Child("apiVersion"), version, err.Error())
	case gv.Group == "" && !core:
		j.invalid(path.Child("apiVersion"), version, "apiVersion must specify API group")
	}
}

// sources are the types of metrics and the fields that belong to them.
var sources = [][2]string{{"Object", "object"}, {"External", "external"}, {"Pods", "pods"}, {"Resource", "resource"},
	{"ContainerResource", "containerResource"}}

func metric(j *judgement, p place) {
	kinds := []string{"ContainerResource", "External", "Object", "Pods", "Resource"}
	m, kind := p.object(), text1(p.object(), "type")
	if kind == "" {
		j.required(p.path.Child("type"), "must specify a metric source type")
	}
	if !slices.Contains(kinds, kind) {
		j.unsupported(p.path.Child("type"), kind, kinds...)
		j.unsupported(p.path.Child("type"), kind, kinds...) // Kubernetes says it twice
	}
	var present []string
	expected := ""
	for _, s := range sources {
		src, path := inner(m, s[1]), p.path.Child(s[1])
		if src != nil {
			present = append(present, s[1])
			if len(present) == 1 {
				j.metricSource(s[0], src, path)
			}
		}
		if s[0] == kind {
			expected = s[1]
			if src == nil {
				defer j.required(path, "must populate information for the given metric source")
			}
		}
	}
	if len(present) != 1 {
		for _, name := range present {
			if name != expected {
				j.forbidden(p.path.Child(name), "must populate the given metric source only")
			}
		}
	}
}

func (j *judgement) metricSource(kind string, src object, path *field.Path) {
	target, at := inner(src, "target"), path.Child("target")
	value, average, share := target["value"] != nil, target["averageValue"] != nil, target["averageUtilization"] != nil
	switch kind {
	case "Object":
		j.reference(inner(src, "describedObject"), path.Child("describedObject"))
		j.referenceVersion(inner(src, "describedObject"), true, path.Child("describedObject"))
		j.metricName(src, path)
		j.metricTarget(target, at)
		if !value && !average {
			j.required(at.Child("averageValue"), "must set either a target value or averageValue")
		}
	case "External":
		j.metricName(src, path)
		j.metricTarget(target, at)
		if !value && !average {
			j.required(at.Child("averageValue"), "must set either a target value for metric or a per-pod target")
		}
		if value && average {
			j.forbidden(at.Child("value"), "may not set both a target value for metric and a per-pod target")
		}
	case "Pods":
		j.metricName(src, path)
		j.metricTarget(target, at)
		if !average {
			j.required(at.Child("averageValue"), "must specify a positive target averageValue")
		}
	default:
		name := text1(src, "name")
		if name == "" {
			j.required(path.Child("name"), "must specify a resource name")
		} else if kind == "ContainerResource" {
			j.containerResource(name, path.Child("name"))
		}
		if container := text1(src, "container"); kind == "ContainerResource" && container == "" {
			j.required(path.Child("container"), "must specify a container")
		} else if kind == "ContainerResource" {
			j.invalids(path.Child("container"), container, validation.IsDNS1123Label(container))
		}
		j.metricTarget(target, at)
		if !share && !average {
			j.required(at.Child("averageUtilization"), "must set either a target raw value or a target utilization")
		}
		if share && average {
			j.forbidden(at.Child("averageValue"), "may not set both a target raw value and a target utilization")
		}
	}
}

func (j *judgement) metricName(src object, path *field.Path) {
	name := text1(inner(src, "metric"), "name")
	if name == "" {
		j.required(path.Child("metric", "name"), "must specify a metric name")
	} else {
		j.invalids(path.Child("metric", "name"), name, content.IsPathSegmentName(name))
	}
}

func (j *judgement) metricTarget(t object, path *field.Path) {
	kind := text1(t, "type")
	if kind == "" {
		j.required(path.Child("type"), "must specify a metric target type")
	}
	if kind != "Utilization" && kind != "Value" && kind != "AverageValue" {
		j.invalid(path.Child("type"), kind, "must be either Utilization, Value, or AverageValue")
	}
	for _, name := range []string{"value", "averageValue"} {
		if q := quantity(t[name]); t[name] != nil && q.Sign() != 1 {
			j.invalid(path.Child(name), q.String(), "must be positive")
		}
	}
	if n, ok := number(t, "averageUtilization"); ok && n < 1 {
		j.invalid(path.Child("averageUtilization"), n, "must be greater than 0")
	}
}
