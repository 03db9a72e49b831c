package schema

import (
	"fmt"
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// explainScale appends the errors of the fields read by the scale subresource; those of the spec only if spec is true.
func (s *Schema) explainScale(errs field.ErrorList, obj map[string]any, spec bool) field.ErrorList {
	if s.scale == nil {
		return errs
	}
	if spec {
		errs = explainReplicas(errs, obj, s.scale.SpecReplicasPath)
	}
	errs = explainReplicas(errs, obj, s.scale.StatusReplicasPath)
	if p := s.scale.LabelSelectorPath; p != nil {
		if value, _, err := unstructured.NestedString(obj, scaleFields(*p)...); err != nil {
			errs = append(errs, field.Invalid(field.NewPath(*p), value, err.Error()))
		}
	}
	return errs
}

func explainReplicas(errs field.ErrorList, obj map[string]any, path string) field.ErrorList {
	replicas, _, err := unstructured.NestedInt64(obj, scaleFields(path)...)
	problem := ""
	switch {
	case err != nil:
		problem = err.Error()
	case replicas < 0:
		problem = "should be a non-negative integer"
	case replicas > math.MaxInt32:
		problem = fmt.Sprintf("should be less than or equal to %v", math.MaxInt32)
	default:
		return errs
	}
	return append(errs, field.Invalid(field.NewPath(path), replicas, problem))
}

// scaleFields splits a path like ".spec.replicas".
func scaleFields(path string) []string {
	return strings.Split(strings.TrimPrefix(path, "."), ".")
}
