package check

import (
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// text1 returns the string in a field, or "".
func text1(obj object, name string) string {
	s, _ := obj[name].(string)
	return s
}

// inner returns the object in a field, nil if there is none.
func inner(obj object, names ...string) object {
	for _, name := range names {
		obj, _ = obj[name].(object)
	}
	return obj
}

// number returns the number in a field, 0 and false if there is none.
func number(obj object, name string) (int64, bool) {
	n, ok := obj[name].(int64)
	return n, ok
}

func truth(obj object, name string) bool { return obj[name] == true }

// objects returns the objects of a list.
func objects(v any) []object {
	list, _ := v.([]any)
	out := make([]object, 0, len(list))
	for _, e := range list {
		o, _ := e.(object)
		out = append(out, o)
	}
	return out
}

// texts returns the strings of a list.
func texts(v any) []string {
	list, _ := v.([]any)
	out := make([]string, 0, len(list))
	for _, e := range list {
		s, _ := e.(string)
		out = append(out, s)
	}
	return out
}

// pairs returns a map of strings.
func pairs(v any) map[string]string {
	m, _ := v.(object)
	if m == nil {
		return nil
	}
	out := make(map[string]string, len(m))
	for key, v := range m {
		out[key], _ = v.(string)
	}
	return out
}

func keys(m object) []string { return slices.Sorted(maps.Keys(m)) }

// quantity returns a quantity; decode has shown that it is one.
func quantity(v any) resource.Quantity {
	switch v := v.(type) {
	case string:
		q, _ := resource.ParseQuantity(v)
		return q
	case int64:
		return *resource.NewQuantity(v, resource.DecimalSI)
	}
	return resource.Quantity{}
}

// labelSelector returns a selector, nil if there is none.
func labelSelector(v any) *metav1.LabelSelector {
	m, ok := v.(object)
	if !ok {
		return nil
	}
	var s metav1.LabelSelector
	if runtime.DefaultUnstructuredConverter.FromUnstructured(m, &s) != nil {
		return nil
	}
	return &s
}

// as reads a value into a Go type; it fits, or into stays as it is.
func as[T any](v any) (into T) {
	data, err := json.Marshal(v)
	if err == nil {
		_ = json.Unmarshal(data, &into)
	}
	return into
}

func or(s, otherwise string) string {
	if s != "" {
		return s
	}
	return otherwise
}
