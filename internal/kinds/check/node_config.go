package check

import (
	"encoding/json"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Annotations that older clients use for what has fields today.
const (
	taintsAnnotation      = "scheduler.alpha.kubernetes.io/taints"
	tolerationsAnnotation = "scheduler.alpha.kubernetes.io/tolerations"
	avoidAnnotation       = corev1.PreferAvoidPodsAnnotationKey
)

// nodeConfig judges where the kubelet's configuration comes from, which no kubelet reads any more.
func (j *judgement) nodeConfig() {
	if source := inner(j.obj, "spec", "configSource"); source != nil {
		j.configSource(source, false, field.NewPath("spec", "configSource"))
	}
	config := inner(j.obj, "status", "config")
	for _, name := range []string{"assigned", "active", "lastKnownGood"} {
		if source := inner(config, name); source != nil {
			j.configSource(source, true, field.NewPath("status", "config", name))
		}
	}
}

func (j *judgement) configSource(source object, inStatus bool, path *field.Path) {
	from := inner(source, "configMap")
	if from == nil {
		j.invalid(path, source, "exactly one reference subfield must be non-nil")
		return
	}
	path = path.Child("configMap")
	for _, name := range []string{"uid", "resourceVersion"} {
		switch set := text1(from, name) != ""; {
		case set && !inStatus:
			j.forbidden(path.Child(name), name+" must not be set in spec")
		case !set && inStatus:
			j.required(path.Child(name), "")
		}
	}
	for _, part := range []struct {
		name  string
		wrong func(string) []string
	}{
		{"namespace", func(s string) []string { return apivalidation.ValidateNamespaceName(s, false) }},
		{"name", validation.IsDNS1123Subdomain},
		{"kubeletConfigKey", validation.IsConfigMapKey},
	} {
		if v := text1(from, part.name); v == "" {
			j.required(path.Child(part.name), "")
		} else {
			j.invalids(path.Child(part.name), v, part.wrong(v))
		}
	}
}

// nodeAnnotations judges the annotations of a node that hold what others act on.
func (j *judgement) nodeAnnotations() {
	annotations, path := pairs(inner(j.obj, "metadata")["annotations"]), field.NewPath("metadata", "annotations")
	if text := annotations[taintsAnnotation]; text != "" {
		var taints []corev1.Taint
		if err := json.Unmarshal([]byte(text), &taints); err != nil {
			j.invalid(path, taintsAnnotation, internalNames(err))
		} else {
			j.taints(objects(as[[]any](taints)), path.Child(taintsAnnotation))
		}
	}
	if text := annotations[avoidAnnotation]; text != "" {
		var avoid corev1.AvoidPods
		if err := json.Unmarshal([]byte(text), &avoid); err != nil {
			j.invalid(path.Child("AvoidPods"), avoidAnnotation, err.Error())
			return
		}
		for i, p := range avoid.PreferAvoidPods {
			at := path.Child(avoidAnnotation).Index(i).Child("PodSignature")
			switch owner := p.PodSignature.PodController; {
			case owner == nil:
				j.required(at, "")
			case owner.Controller == nil || !*owner.Controller:
				j.invalid(at.Child("PodController", "Controller"), false, "must point to a controller")
			}
		}
	}
}

// tolerationsText judges the tolerations that an annotation of a pod holds.
func (j *judgement) tolerationsText(text string, path *field.Path) {
	var tolerations []corev1.Toleration
	if err := json.Unmarshal([]byte(text), &tolerations); err != nil {
		j.invalid(path, tolerationsAnnotation, internalNames(err))
		return
	}
	for i, t := range objects(as[[]any](tolerations)) {
		j.toleration(withWholeNumbers(t), path.Child(tolerationsAnnotation).Index(i))
	}
}

// withWholeNumbers gives the numbers of an object the type that numbers of decoded objects have.
func withWholeNumbers(obj object) object {
	for name, v := range obj {
		if f, ok := v.(float64); ok {
			obj[name] = int64(f)
		}
	}
	return obj
}

// fieldInError is where an error of the decoder names a field.
var fieldInError = regexp.MustCompile(`Go struct field \w+\.\w`)

// internalNames gives the types and fields in an error the names that they have in Kubernetes, which reads into its
// internal types.
func internalNames(err error) string {
	text := strings.ReplaceAll(err.Error(), "v1.", "core.")
	return fieldInError.ReplaceAllStringFunc(text,
		func(s string) string { return s[:len(s)-1] + strings.ToUpper(s[len(s)-1:]) })
}
