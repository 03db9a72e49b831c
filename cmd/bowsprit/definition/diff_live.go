package definition

import (
	"context"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"

	"github.com/bowsprit/bowsprit/internal/api/crd"
	"github.com/bowsprit/bowsprit/internal/feature/compat"
)

// source is a server with definitions and objects.
type source struct{ client dynamic.Interface }

func newSource(config *rest.Config) (*source, error) {
	config.QPS, config.Burst = 200, 400
	client, err := dynamic.NewForConfig(config)
	return &source{client}, err
}

// definition returns a definition, or nil if the server does not have it.
func (s *source) definition(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	obj, err := s.client.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")).
		Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return crd.Decode(obj.Object)
}

// objects checks all objects of a definition, in each served version in which a change can affect them.
func (s *source) objects(
	ctx context.Context, was, is *apiextensionsv1.CustomResourceDefinition,
) (found []compat.Finding, err error) {
	for _, check := range compat.NewObjects(was, is) {
		if err := s.each(ctx, was, check.Version(), check.Check); err != nil {
			return nil, err
		}
		found = append(found, check.Findings()...)
	}
	if check := compat.NewConverted(was, is); check != nil {
		// A server shows objects as they are stored in the storage version only.
		i := slices.IndexFunc(was.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return v.Storage && v.Served
		})
		if i < 0 {
			return found, nil
		}
		if err := s.each(ctx, was, was.Spec.Versions[i].Name, check.Check); err != nil {
			return nil, err
		}
		found = append(found, check.Findings()...)
	}
	return found, nil
}

// each calls check with all objects of a definition in a version.
func (s *source) each(
	ctx context.Context, of *apiextensionsv1.CustomResourceDefinition, version string,
	check func(namespace, name string, obj map[string]any) error,
) error {
	r := s.client.Resource(schema.GroupVersionResource{
		Group: of.Spec.Group, Version: version, Resource: of.Spec.Names.Plural,
	})
	pages := pager.New(pager.SimplePageFunc(func(o metav1.ListOptions) (runtime.Object, error) {
		return r.List(ctx, o)
	}))
	return pages.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		obj, ok := item.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("the list has a %T", item)
		}
		return check(obj.GetNamespace(), obj.GetName(), obj.Object)
	})
}
