package check

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Fields of a pod that its containers may see.
var (
	fieldsInEnv = []string{"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName",
		"spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"}
	fieldsInVolumes = []string{"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace",
		"metadata.uid"}
	fieldsOfPods = slices.Concat(fieldsInEnv, fieldsInVolumes,
		[]string{"spec.restartPolicy", "spec.schedulerName", "status.phase"})
	resourceFields = []string{"limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu",
		"requests.ephemeral-storage", "requests.memory"}
	byteDivisors = []string{"1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"}
)

// valueFrom judges where the value of a variable comes from.
func valueFrom(j *judgement, p place) {
	from, path := inner(p.object(), "valueFrom"), p.path.Child("valueFrom")
	if from == nil {
		return
	}
	n := 0
	each := func(name string, check func(ref object, path *field.Path)) {
		if ref := inner(from, name); ref != nil {
			n++
			check(ref, path.Child(name))
		}
	}
	each("fieldRef", func(ref object, path *field.Path) { j.fieldRef(ref, fieldsInEnv, path) })
	each("resourceFieldRef", func(ref object, path *field.Path) { j.resourceRef(ref, false, path) })
	each("configMapKeyRef", func(ref object, path *field.Path) { j.block("ConfigMapKeySelector", ref, nil, path) })
	each("secretKeyRef", func(ref object, path *field.Path) { j.block("ConfigMapKeySelector", ref, nil, path) })
	each("fileKeyRef", func(ref object, path *field.Path) { j.block("FileKeySelector", ref, nil, path) })
	switch {
	case n == 0:
		j.invalid(path, "",
			"must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`")
	case text1(p.object(), "value") != "":
		j.invalid(path, "", "may not be specified when `value` is not empty")
	case n > 1:
		j.invalid(path, "", "may not have more than one field specified at a time")
	}
}

// fieldRef judges a reference to a field of the pod, one of allowed.
func (j *judgement) fieldRef(ref object, allowed []string, path *field.Path) {
	version, name := text1(ref, "apiVersion"), text1(ref, "fieldPath")
	if version == "" {
		j.required(path.Child("apiVersion"), "")
		return
	}
	if name == "" {
		j.required(path.Child("fieldPath"), "")
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
		j.invalid(path.Child("fieldPath"), name, "error converting fieldPath: "+wrong)
	case base == "metadata.annotations" && hasKey:
		key = strings.ToLower(key)
		j.invalids(path, key, validation.IsQualifiedName(key))
	case hasKey:
		j.invalids(path, key, validation.IsQualifiedName(key))
	default:
		if name == "spec.host" {
			name = "spec.nodeName"
		}
		if !slices.Contains(allowed, name) {
			j.unsupported(path.Child("fieldPath"), name, allowed...)
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

// resourceRef judges a reference to what a container asks for.
func (j *judgement) resourceRef(ref object, inVolume bool, path *field.Path) {
	name := text1(ref, "resource")
	huge := strings.HasPrefix(name, "requests.hugepages-") || strings.HasPrefix(name, "limits.hugepages-")
	switch {
	case inVolume && text1(ref, "containerName") == "":
		j.required(path.Child("containerName"), "")
	case name == "":
		j.required(path.Child("resource"), "")
	case !huge && !slices.Contains(resourceFields, name):
		j.unsupported(path.Child("resource"), name, resourceFields...)
	}
	q := quantity(ref["divisor"])
	if q.IsZero() {
		return
	}
	allowed, what := byteDivisors, ""
	switch {
	case strings.HasSuffix(name, "s.cpu"):
		allowed, what = []string{"1m", "1"}, "cpu"
	case strings.HasSuffix(name, "s.memory"):
		what = "memory"
	case strings.HasSuffix(name, "s.ephemeral-storage"):
		what = "local ephemeral storage"
	case huge:
		what = "hugepages"
	}
	if what == "" || slices.Contains(allowed, q.String()) || !huge && !slices.Contains(resourceFields, name) {
		return
	}
	list := strings.Join(allowed, ", ")
	if what == "cpu" {
		list = strings.Join(allowed, " and ")
	}
	j.invalid(path.Child("divisor"), name,
		fmt.Sprintf("only divisor's values %s are supported with the %s resource", list, what))
}

func envFrom(j *judgement, p place) {
	for i, from := range objects(p.value) {
		path := p.path.Index(i)
		if prefix := text1(from, "prefix"); prefix != "" {
			j.invalids(path.Child("prefix"), prefix, validation.IsRelaxedEnvVarName(prefix))
		}
		n := 0
		for _, name := range []string{"configMapRef", "secretRef"} {
			if ref := inner(from, name); ref != nil {
				n++
				j.block("NamedSource", ref, nil, path.Child(name))
			}
		}
		switch n {
		case 0:
			j.invalid(p.path, "", "must specify one of: `configMapRef` or `secretRef`")
		case 2:
			j.invalid(p.path, "", "may not have more than one field specified at a time")
		}
	}
}
