package assistant

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/assistant/answer"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
)

// objectInput are the parameters that name an object.
type objectInput struct {
	Kind      string `json:"kind" jsonschema:"the kind, such as pods, deploy or databases.example.com"`
	Name      string `json:"name" jsonschema:"the name of the object"`
	Namespace string `json:"namespace,omitempty" jsonschema:"the namespace (default: that of the context)"`
}

// object returns the kind that the parameters name, and a client for its objects. namespace is "" for a kind without.
func (t *Tools) object(in *objectInput) (
	r *connect.Resource, namespace string, client dynamic.ResourceInterface, err error,
) {
	if r, err = connect.Named(t.discovery, in.Kind); err != nil {
		return nil, "", nil, err
	}
	if !r.Namespaced {
		return r, "", t.objects.Resource(r.GroupVersionResource), nil
	}
	namespace, err = t.namespace(in.Namespace)
	return r, namespace, t.objects.Resource(r.GroupVersionResource).Namespace(namespace), err
}

// nameObject writes the kind, name and namespace of an object.
func nameObject(ans *answer.Answer, r *connect.Resource, namespace, name string) {
	ans.Field("object", "%q %q", title(r), name)
	if namespace != "" {
		ans.Field("namespace", "%q", namespace)
	}
}

// getInput are the parameters of get.
type getInput struct {
	objectInput
	Field string `json:"field,omitempty" jsonschema:"the path of a field, such as status or spec.containers[0].image"`
	Size
}

func (t *Tools) get(ctx context.Context, in *getInput) (*answer.Answer, error) {
	r, namespace, client, err := t.object(&in.objectInput)
	if err != nil {
		return nil, err
	}
	fields, err := t.fields(r)
	if err != nil {
		return nil, err
	}
	obj, err := client.Get(ctx, in.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	ans := &answer.Answer{}
	nameObject(ans, r, namespace, in.Name)
	values := []any{t.shown(obj, fields)}
	if in.Field != "" {
		if values, err = find(values[0], in.Field); err != nil {
			return nil, err
		}
		ans.Field("field", "%q", in.Field)
	}
	for i, value := range values {
		text, err := yaml.Marshal(value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			ans.Text("---")
		}
		ans.Text(string(text))
	}
	return ans, nil
}

// find returns the values at a path of kubectl's -o jsonpath.
func find(obj any, path string) (values []any, err error) {
	p := jsonpath.New("field")
	if err := p.Parse("{." + path + "}"); err != nil {
		return nil, fmt.Errorf("field %q is not a path, such as spec.containers[0].image: %w", path, err)
	}
	results, err := p.FindResults(obj)
	if err != nil {
		return nil, fmt.Errorf("field %q: %w", path, err)
	}
	for _, some := range results {
		for _, one := range some {
			values = append(values, one.Interface())
		}
	}
	return values, nil
}
