package rule

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/quantity"
)

// Objects returns the objects of a list.
func Objects(v any) []object.Object {
	list, _ := v.([]any)
	out := make([]object.Object, 0, len(list))
	for _, e := range list {
		o, _ := e.(object.Object)
		out = append(out, o)
	}
	return out
}

// Strings returns the strings of a list.
func Strings(v any) []string {
	list, _ := v.([]any)
	out := make([]string, 0, len(list))
	for _, e := range list {
		s, _ := e.(string)
		out = append(out, s)
	}
	return out
}

// StringMap returns a map of strings.
func StringMap(v any) map[string]string {
	m, _ := v.(object.Object)
	if m == nil {
		return nil
	}
	out := make(map[string]string, len(m))
	for key, v := range m {
		out[key], _ = v.(string)
	}
	return out
}

// Quantity returns a quantity, which decode has validated.
func Quantity(v any) resource.Quantity {
	switch v := v.(type) {
	case string:
		q, _ := quantity.Parse(v)
		return q
	case int64:
		return *resource.NewQuantity(v, resource.DecimalSI)
	}
	return resource.Quantity{}
}

// LabelSelector returns a selector, nil if there is none.
func LabelSelector(v any) *metav1.LabelSelector {
	m, ok := v.(object.Object)
	if !ok {
		return nil
	}
	var s metav1.LabelSelector
	if runtime.DefaultUnstructuredConverter.FromUnstructured(m, &s) != nil {
		return nil
	}
	return &s
}

// As decodes a value into a Go type; into is the zero value if it does not fit.
func As[T any](v any) (into T) {
	data, err := json.Marshal(v)
	if err == nil {
		_ = json.Unmarshal(data, &into)
	}
	return into
}

// Or returns s, or otherwise if it is "".
func Or(s, otherwise string) string {
	if s != "" {
		return s
	}
	return otherwise
}
