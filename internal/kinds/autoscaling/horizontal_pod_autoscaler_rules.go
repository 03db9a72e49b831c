package autoscaling

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func maxReplicas(val *rule.Validation, p rule.Value) {
	most, ok := object.Int(p.Object(), "maxReplicas")
	least, set := object.Int(p.Object(), "minReplicas")
	if ok && most < 0 {
		val.Invalid(p.Path.Child("maxReplicas"), most, "must be greater than or equal to 1")
	}
	if set && most < least {
		val.Invalid(p.Path.Child("maxReplicas"), most, "must be greater than or equal to `minReplicas`")
	}
}

// scaleToZero is the feature for targets without pods.
const scaleToZero = "HPAScaleToZero"

// minReplicas requires at least one pod without scaleToZero, unless the stored autoscaler already has none.
func minReplicas(val *rule.Validation, p rule.Value) {
	was, had := object.Int(object.Map(val.Old, "spec"), "minReplicas")
	least := int64(0)
	if val.Lacks(scaleToZero) && (!had || was != 0) {
		least = 1
	}
	if n, ok := p.New.(int64); ok && n < least {
		val.Invalid(p.Path, n, fmt.Sprintf("must be greater than or equal to %d", least))
	}
}

// zeroReplicas requires an object or external metric if a target may scale to zero, since its pods cannot trigger the
// scale-up.
func zeroReplicas(val *rule.Validation, p rule.Value) {
	if least, set := object.Int(p.In, "minReplicas"); !set || least != 0 {
		return
	}
	outside := func(m object.Object) bool {
		return object.String(m, "type") == "Object" || object.String(m, "type") == "External"
	}
	if !slices.ContainsFunc(rule.Objects(p.New), outside) {
		val.Forbidden(p.Path, "must specify at least one Object or External metric to support scaling to zero replicas")
	}
}

// scaleTarget validates the reference to the target, which has a group unless it is a replication controller.
func scaleTarget(val *rule.Validation, p rule.Value) {
	ref, was := p.Object(), object.Map(val.Old, "spec", "scaleTargetRef")
	reference(val, ref, p.Path)
	if was != nil && object.String(was, "apiVersion") == object.String(ref, "apiVersion") &&
		object.String(was, "kind") == object.String(ref, "kind") {
		return
	}
	referenceVersion(val, ref, object.String(ref, "kind") == "ReplicationController", p.Path)
}

// reference validates a reference to an object of any kind.
func reference(val *rule.Validation, ref object.Object, path *field.Path) {
	for _, name := range []string{"kind", "name"} {
		if s := object.String(ref, name); s == "" {
			val.Required(path.Child(name), "")
		} else {
			val.Invalids(path.Child(name), s, content.IsPathSegmentName(s))
		}
	}
}

func referenceVersion(val *rule.Validation, ref object.Object, core bool, path *field.Path) {
	version := object.String(ref, "apiVersion")
	switch gv, err := schema.ParseGroupVersion(version); {
	case err != nil:
		val.Invalid(path.Child("apiVersion"), version, err.Error())
	case gv.Group == "" && !core:
		val.Invalid(path.Child("apiVersion"), version, "apiVersion must specify API group")
	}
}

// sources are the types of metrics with their fields.
var sources = [][2]string{{"Object", "object"}, {"External", "external"}, {"Pods", "pods"}, {"Resource", "resource"},
	{"ContainerResource", "containerResource"}}

func metric(val *rule.Validation, p rule.Value) {
	kinds := []string{"ContainerResource", "External", "Object", "Pods", "Resource"}
	m, kind := p.Object(), object.String(p.Object(), "type")
	if kind == "" {
		val.Required(p.Path.Child("type"), "must specify a metric source type")
	}
	if !slices.Contains(kinds, kind) {
		val.Unsupported(p.Path.Child("type"), kind, kinds...)
		val.Unsupported(p.Path.Child("type"), kind, kinds...) // Kubernetes reports it twice
	}
	var present []string
	expected := ""
	for _, s := range sources {
		src, path := object.Map(m, s[1]), p.Path.Child(s[1])
		if src != nil {
			present = append(present, s[1])
			if len(present) == 1 {
				metricSource(val, s[0], src, path)
			}
		}
		if s[0] == kind {
			expected = s[1]
			if src == nil {
				defer val.Required(path, "must populate information for the given metric source")
			}
		}
	}
	if len(present) != 1 {
		for _, name := range present {
			if name != expected {
				val.Forbidden(p.Path.Child(name), "must populate the given metric source only")
			}
		}
	}
}

func metricSource(val *rule.Validation, kind string, src object.Object, path *field.Path) {
	target, at := object.Map(src, "target"), path.Child("target")
	value, average, share := target["value"] != nil, target["averageValue"] != nil, target["averageUtilization"] != nil
	switch kind {
	case "Object":
		reference(val, object.Map(src, "describedObject"), path.Child("describedObject"))
		referenceVersion(val, object.Map(src, "describedObject"), true, path.Child("describedObject"))
		metricName(val, src, path)
		metricTarget(val, target, at)
		if !value && !average {
			val.Required(at.Child("averageValue"), "must set either a target value or averageValue")
		}
	case "External":
		metricName(val, src, path)
		metricTarget(val, target, at)
		if !value && !average {
			val.Required(at.Child("averageValue"), "must set either a target value for metric or a per-pod target")
		}
		if value && average {
			val.Forbidden(at.Child("value"), "may not set both a target value for metric and a per-pod target")
		}
	case "Pods":
		metricName(val, src, path)
		metricTarget(val, target, at)
		if !average {
			val.Required(at.Child("averageValue"), "must specify a positive target averageValue")
		}
	default:
		name := object.String(src, "name")
		if name == "" {
			val.Required(path.Child("name"), "must specify a resource name")
		} else if kind == "ContainerResource" {
			pod.CheckContainerResource(val, name, path.Child("name"))
		}
		if container := object.String(src, "container"); kind == "ContainerResource" && container == "" {
			val.Required(path.Child("container"), "must specify a container")
		} else if kind == "ContainerResource" {
			val.Invalids(path.Child("container"), container, validation.IsDNS1123Label(container))
		}
		metricTarget(val, target, at)
		if !share && !average {
			val.Required(at.Child("averageUtilization"), "must set either a target raw value or a target utilization")
		}
		if share && average {
			val.Forbidden(at.Child("averageValue"), "may not set both a target raw value and a target utilization")
		}
	}
}

func metricName(val *rule.Validation, src object.Object, path *field.Path) {
	name := object.String(object.Map(src, "metric"), "name")
	if name == "" {
		val.Required(path.Child("metric", "name"), "must specify a metric name")
	} else {
		val.Invalids(path.Child("metric", "name"), name, content.IsPathSegmentName(name))
	}
}

func metricTarget(val *rule.Validation, t object.Object, path *field.Path) {
	kind := object.String(t, "type")
	if kind == "" {
		val.Required(path.Child("type"), "must specify a metric target type")
	}
	if kind != "Utilization" && kind != "Value" && kind != "AverageValue" {
		val.Invalid(path.Child("type"), kind, "must be either Utilization, Value, or AverageValue")
	}
	for _, name := range []string{"value", "averageValue"} {
		if q := rule.Quantity(t[name]); t[name] != nil && q.Sign() != 1 {
			val.Invalid(path.Child(name), q.String(), "must be positive")
		}
	}
	if n, ok := object.Int(t, "averageUtilization"); ok && n < 1 {
		val.Invalid(path.Child("averageUtilization"), n, "must be greater than 0")
	}
}
