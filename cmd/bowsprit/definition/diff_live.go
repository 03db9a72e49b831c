package definition

import (
	"context"
	"fmt"

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

// objects checks all objects of a definition in the version in which the server stores them, or else in a served
// version that both states have. Without such a version there is no check.
func (s *source) objects(
	ctx context.Context, was, is *apiextensionsv1.CustomResourceDefinition,
) ([]compat.Finding, error) {
	version := readable(was, is)
	if version == "" {
		return nil, nil
	}
	check, err := compat.NewObjects(was, is, version)
	if err != nil {
		return nil, err
	}
	r := s.client.Resource(schema.GroupVersionResource{
		Group: was.Spec.Group, Version: version, Resource: was.Spec.Names.Plural,
	})
	pages := pager.New(pager.SimplePageFunc(func(o metav1.ListOptions) (runtime.Object, error) {
		return r.List(ctx, o)
	}))
	err = pages.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		obj, ok := item.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("the list has a %T", item)
		}
		check.Check(obj.GetNamespace(), obj.GetName(), obj.Object)
		return nil
	})
	return check.Findings(), err
}

// readable returns the version in which objects are checked.
func readable(was, is *apiextensionsv1.CustomResourceDefinition) (name string) {
	has := map[string]bool{}
	for i := range is.Spec.Versions {
		has[is.Spec.Versions[i].Name] = true
	}
	for i := range was.Spec.Versions {
		v := &was.Spec.Versions[i]
		if v.Served && has[v.Name] && (name == "" || v.Storage) {
			name = v.Name
		}
	}
	return name
}
