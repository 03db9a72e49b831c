package pod

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

var fieldsInEnv = []string{"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName",
	"spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"}

var fieldsInVolumes = []string{"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace",
	"metadata.uid"}

var fieldsOfPods = slices.Concat(fieldsInEnv, fieldsInVolumes,
	[]string{"spec.restartPolicy", "spec.schedulerName", "status.phase"})

var resourceFields = []string{"limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu",
	"requests.ephemeral-storage", "requests.memory"}

var byteDivisors = []string{"1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"}

// valueFrom validates the source of a variable's value.
func valueFrom(val *rule.Validation, p rule.Value) {
	from, path := object.Map(p.Object(), "valueFrom"), p.Path.Child("valueFrom")
	if from == nil {
		return
	}
	n := 0
	each := func(name string, check func(ref object.Object, path *field.Path)) {
		if ref := object.Map(from, name); ref != nil {
			n++
			check(ref, path.Child(name))
		}
	}
	each("fieldRef", func(ref object.Object, path *field.Path) { fieldRef(val, ref, fieldsInEnv, path) })
	each("resourceFieldRef", func(ref object.Object, path *field.Path) { resourceRef(val, ref, false, path) })
	each("configMapKeyRef",
		func(ref object.Object, path *field.Path) { val.Block("ConfigMapKeySelector", ref, nil, path) })
	each("secretKeyRef",
		func(ref object.Object, path *field.Path) { val.Block("ConfigMapKeySelector", ref, nil, path) })
	each("fileKeyRef", func(ref object.Object, path *field.Path) { val.Block("FileKeySelector", ref, nil, path) })
	switch {
	case n == 0:
		val.Invalid(path, "",
			"must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`")
	case object.String(p.Object(), "value") != "":
		val.Invalid(path, "", "may not be specified when `value` is not empty")
	case n > 1:
		val.Invalid(path, "", "may not have more than one field specified at a time")
	}
}

// fieldRef validates a reference to a field of the pod, one of allowed.
func fieldRef(val *rule.Validation, ref object.Object, allowed []string, path *field.Path) {
	version, name := object.String(ref, "apiVersion"), object.String(ref, "fieldPath")
	if version == "" {
		val.Required(path.Child("apiVersion"), "")
		return
	}
	if name == "" {
		val.Required(path.Child("fieldPath"), "")
		return
	}
	base, key, hasKey := subscript(name)
	wrong := ""
	switch {
	case version != "v1":
		wrong = "unsupported pod version: " + version
	case hasKey && base != "metadata.annotations" && base != "metadata.labels":
		wrong = "field label does not support subscript: " + name
	case !hasKey && name != "spec.host" && !slices.Contains(fieldsOfPods, name):
		wrong = "field label not supported: " + name
	}
	switch {
	case wrong != "":
		val.Invalid(path.Child("fieldPath"), name, "error converting fieldPath: "+wrong)
	case base == "metadata.annotations" && hasKey:
		key = strings.ToLower(key)
		val.Invalids(path, key, validation.IsQualifiedName(key))
	case hasKey:
		val.Invalids(path, key, validation.IsQualifiedName(key))
	default:
		if name == "spec.host" {
			name = "spec.nodeName"
		}
		if !slices.Contains(allowed, name) {
			val.Unsupported(path.Child("fieldPath"), name, allowed...)
		}
	}
}

// subscript splits metadata.labels['key'].
func subscript(s string) (base, key string, ok bool) {
	s, ok = strings.CutSuffix(s, "']")
	if !ok {
		return "", "", false
	}
	base, key, ok = strings.Cut(s, "['")
	return base, key, ok && base != ""
}

// resourceRef validates a reference to a resource of a container.
func resourceRef(val *rule.Validation, ref object.Object, inVolume bool, path *field.Path) {
	name := object.String(ref, "resource")
	huge := strings.HasPrefix(name, "requests.hugepages-") || strings.HasPrefix(name, "limits.hugepages-")
	switch {
	case inVolume && object.String(ref, "containerName") == "":
		val.Required(path.Child("containerName"), "")
	case name == "":
		val.Required(path.Child("resource"), "")
	case !huge && !slices.Contains(resourceFields, name):
		val.Unsupported(path.Child("resource"), name, resourceFields...)
	}
	q := rule.Quantity(ref["divisor"])
	if q.IsZero() {
		return
	}
	allowed, value := byteDivisors, ""
	switch {
	case strings.HasSuffix(name, "s.cpu"):
		allowed, value = []string{"1m", "1"}, "cpu"
	case strings.HasSuffix(name, "s.memory"):
		value = "memory"
	case strings.HasSuffix(name, "s.ephemeral-storage"):
		value = "local ephemeral storage"
	case huge:
		value = "hugepages"
	}
	if value == "" || slices.Contains(allowed, q.String()) || !huge && !slices.Contains(resourceFields, name) {
		return
	}
	list := strings.Join(allowed, ", ")
	if value == "cpu" {
		list = strings.Join(allowed, " and ")
	}
	val.Invalid(path.Child("divisor"), name,
		fmt.Sprintf("only divisor's values %s are supported with the %s resource", list, value))
}

func envFrom(val *rule.Validation, p rule.Value) {
	for i, from := range rule.Objects(p.New) {
		path := p.Path.Index(i)
		if prefix := object.String(from, "prefix"); prefix != "" {
			val.Invalids(path.Child("prefix"), prefix, validation.IsRelaxedEnvVarName(prefix))
		}
		n := 0
		for _, name := range []string{"configMapRef", "secretRef"} {
			if ref := object.Map(from, name); ref != nil {
				n++
				val.Block("NamedSource", ref, nil, path.Child(name))
			}
		}
		switch n {
		case 0:
			val.Invalid(p.Path, "", "must specify one of: `configMapRef` or `secretRef`")
		case 2:
			val.Invalid(p.Path, "", "may not have more than one field specified at a time")
		}
	}
}
