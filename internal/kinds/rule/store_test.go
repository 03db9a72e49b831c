package rule

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

func TestStoreAs(t *testing.T) {
	t.Parallel()
	type object = map[string]any
	for _, c := range []struct {
		name      string
		store     func(object)
		obj, want object
	}{
		{"lists that a reader finds in any case", storeAs[discoveryv1.EndpointSlice](),
			object{"endpoints": []any{}, "ports": []any{}}, object{"endpoints": nil, "ports": nil}},
		{"lists in elements", storeAs[discoveryv1.EndpointSlice](),
			object{"endpoints": []any{object{"addresses": []any{}}}},
			object{"endpoints": []any{object{"addresses": nil}}}},
		{"lists with something in them", storeAs[rbacv1.Role](), object{"rules": []any{object{"verbs": []any{"get"}}}},
			object{"rules": []any{object{"verbs": []any{"get"}}}}},
		{"nothing at all", storeAs[rbacv1.Role](), object{}, object{}},
		{"bytes in maps", storeAs[corev1.ConfigMap](),
			object{"binaryData": object{"a": nil, "b": "YQ=="}, "data": object{"c": "d"}},
			object{"binaryData": object{"a": "", "b": "YQ=="}, "data": object{"c": "d"}}},
		{"a kind without such fields", storeAs[corev1.ServiceAccount](), object{"secrets": []any{}},
			object{"secrets": []any{}}},
		{"below an embedded struct", storeAs[corev1.Pod](),
			object{"spec": object{"volumes": []any{object{"name": "v", "projected": object{"sources": []any{}}}}}},
			object{"spec": object{"volumes": []any{object{"name": "v", "projected": object{"sources": nil}}}}}},
	} {
		if c.store(c.obj); !reflect.DeepEqual(c.obj, c.want) {
			t.Errorf("%s: %v, want %v", c.name, c.obj, c.want)
		}
	}
}
