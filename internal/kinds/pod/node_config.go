package pod

import (
	"encoding/json"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

// Annotations from older clients that have been replaced by fields.
const (
	TaintsAnnotation      = "scheduler.alpha.kubernetes.io/taints"
	tolerationsAnnotation = "scheduler.alpha.kubernetes.io/tolerations"
	AvoidAnnotation       = corev1.PreferAvoidPodsAnnotationKey
)

// tolerationsText validates the tolerations that an annotation of a pod holds.
func tolerationsText(val *rule.Validation, text string, path *field.Path) {
	var tolerations []corev1.Toleration
	if err := json.Unmarshal([]byte(text), &tolerations); err != nil {
		val.Invalid(path, tolerationsAnnotation, InternalNames(err))
		return
	}
	for i, t := range rule.Objects(rule.As[[]any](tolerations)) {
		CheckToleration(val, withWholeNumbers(t), path.Child(tolerationsAnnotation).Index(i))
	}
}

// withWholeNumbers converts the numbers of an object to the type in decoded objects.
func withWholeNumbers(obj object.Object) object.Object {
	for name, v := range obj {
		if f, ok := v.(float64); ok {
			obj[name] = int64(f)
		}
	}
	return obj
}

// fieldInError is where an error of the decoder names a field.
var fieldInError = regexp.MustCompile(`Go struct field \w+\.\w`)

// InternalNames replaces the types and fields in an error by Kubernetes' internal names, which its decoder shows.
func InternalNames(err error) string {
	text := strings.ReplaceAll(err.Error(), "v1.", "core.")
	return fieldInError.ReplaceAllStringFunc(text,
		func(s string) string { return s[:len(s)-1] + strings.ToUpper(s[len(s)-1:]) })
}
