package policy

import (
	"context"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/ptr"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/store/memory"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// rig returns the dependencies of plugins, with a view that holds stored.
func rig(t testing.TB, stored map[string]string) Config {
	t.Helper()
	s, err := store.Open(t.Context(),
		store.Config{Prefix: "/registry", Etcd: memory.New()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	v := watchcache.New(s, watchcache.Options{})
	for key, value := range stored {
		if _, err := s.Create(t.Context(), key, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { _ = v.Run(ctx); close(ended) }()
	t.Cleanup(func() { cancel(); <-ended })
	return Config{
		View: v, Catalog: catalog.New(widgets()), Authz: authz.Union{},
		Read: func(_ context.Context, _ *catalog.Resource, _ *catalog.Version, e *watchcache.Entry) (map[string]any,
			error) {
			v, err := codec.DecodeJSON(e.JSON())
			obj, _ := v.(map[string]any)
			return obj, err
		},
	}
}

func widgets() *catalog.Resource {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	v := &catalog.Version{Name: "v1", Served: true, Status: true,
		Source: func() (*apiextensionsv1.JSONSchemaProps, error) {
			return &apiextensionsv1.JSONSchemaProps{Type: "object",
				Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"replicas": {Type: "integer"},
						"list":     {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &text}},
						"set": {
							Type: "array", XListType: ptr.To("set"),
							Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &text},
						},
					}},
				}}, nil
		}}
	return &catalog.Resource{
		Group: "example.com", Plural: "widgets", Kind: "Widget", Namespaced: true, Versions: []*catalog.Version{v},
		Storage: v,
		Prefix:  "example.com/widgets", Served: true,
	}
}

func write(c Config, obj map[string]any) *admit.Attributes {
	r := c.Catalog.Snapshot().Resource("example.com", "widgets")
	return &admit.Attributes{
		Operation: admit.Create,
		Target: admit.Target{
			Resource: r, Version: r.Storage, Namespace: "default", Name: "w",
			Kind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"},
		},
		Request: admit.Request{
			User: &user.DefaultInfo{Name: "me", Groups: []string{user.SystemPrivilegedGroup}},
			Options: func() admit.Object {
				return admit.Object{"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"}
			},
			Warn: func(string) {},
		},
		Forms:  admit.Forms{Normalize: func(*catalog.Version, admit.Object) error { return nil }},
		Object: obj,
	}
}

func widget() map[string]any {
	return map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"name": "w", "namespace": "default", "labels": map[string]any{"a": "b"}},
		"spec":     map[string]any{"replicas": int64(3), "list": []any{"a", "b", "c"}},
	}
}
