package decode

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/object"
)

// The texts come from a running kube-apiserver 1.36.3.
func TestSameKind(t *testing.T) {
	s := NewKinds(catalog.New(kinds.Resources()...), nil)
	configMap := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	role := schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}
	ingress := schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}
	definition := schema.GroupVersionKind{
		Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
	}
	for _, c := range []struct {
		apiVersion, kind string
		want             schema.GroupVersionKind
		message          string
	}{
		{"v1", "ConfigMap", configMap, ""},
		{"v1", "Secret", configMap,
			`Secret in version "v1" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion`},
		{"v1", "ConfigMapList", configMap,
			`ConfigMapList in version "v1" cannot be handled as a ConfigMap: converting (v1.ConfigMapList) to (core.ConfigMap): unknown conversion`},
		{"v1", "Status", configMap,
			`Status in version "v1" cannot be handled as a ConfigMap: converting (v1.Status) to (core.ConfigMap): unknown conversion`},
		{"v1", "Foo", configMap,
			`Foo in version "v1" cannot be handled as a ConfigMap: no kind "Foo" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"`},
		{"v1", "List", configMap,
			`List in version "v1" cannot be handled as a ConfigMap: converting (v1.List) to (core.ConfigMap): unknown conversion`},
		{"v1", "DeleteOptions", configMap,
			`DeleteOptions in version "v1" cannot be handled as a ConfigMap: converting (v1.DeleteOptions) to (core.ConfigMap): unknown conversion`},
		{"meta.k8s.io/v1", "DeleteOptions", configMap,
			`DeleteOptions in version "v1" cannot be handled as a ConfigMap: no kind "DeleteOptions" is registered for version "meta.k8s.io/v1" in scheme "pkg/runtime/scheme.go:111"`},
		{"rbac.authorization.k8s.io/v1beta1", "Role", role,
			`the API version in the data (rbac.authorization.k8s.io/v1beta1) does not match the expected API version (rbac.authorization.k8s.io/v1)`},
		{"rbac.authorization.k8s.io/v1beta1", "RoleList", role,
			`RoleList in version "v1beta1" cannot be handled as a Role: converting (v1beta1.RoleList) to (rbac.Role): unknown conversion`},
		{"extensions/v1beta1", "Ingress", ingress,
			`the API version in the data (extensions/v1beta1) does not match the expected API version (networking.k8s.io/v1)`},
		{"extensions/v1beta1", "Deployment", ingress,
			`Deployment in version "v1beta1" cannot be handled as a Ingress: converting (v1beta1.Deployment) to (networking.Ingress): unknown conversion`},
		{"v2", "ConfigMap", configMap,
			`ConfigMap in version "v2" cannot be handled as a ConfigMap: no kind "ConfigMap" is registered for version "v2" in scheme "pkg/runtime/scheme.go:111"`},
		{"v1", "ConfigMap", definition,
			`ConfigMap in version "v1" cannot be handled as a CustomResourceDefinition: no kind "ConfigMap" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"`},
	} {
		message := ""
		if err := s.Same(object.Object{"apiVersion": c.apiVersion, "kind": c.kind}, c.want); err != nil {
			message = err.Error()
		}
		if message != c.message {
			t.Errorf("%s %s for %s:\n%s, want\n%s", c.apiVersion, c.kind, c.want.Kind, message, c.message)
		}
	}
}
