// Package scale converts between an object and its autoscaling/v1 Scale, a view of three fields named by the kind's
// definition (catalog.Scale).
//
// The verbs of the scale subresource use it to show the Scale, and to change the object by changing the Scale. Its
// functions are pure.
package scale

import (
	"fmt"
	"math"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/object/objectmeta"
)

// Kind is the kind of the view.
var Kind = schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}

// Of returns the Scale of an object; found is false if the object has no spec replicas.
func Of(obj object.Object, p *catalog.Scale) (scale *autoscalingv1.Scale, found bool, err error) {
	spec, found, err := unstructured.NestedInt64(obj, split(p.SpecReplicasPath)...)
	if err != nil {
		return nil, false, err
	}
	status, _, err := unstructured.NestedInt64(obj, split(p.StatusReplicasPath)...)
	if err != nil {
		return nil, false, err
	}
	if spec > math.MaxInt32 || spec < math.MinInt32 || status > math.MaxInt32 || status < math.MinInt32 {
		return nil, false,
			apierrors.NewInternalError(fmt.Errorf("the replicas of %v do not fit into 32 bits", obj["kind"]))
	}
	var labels string
	if p.Selector != nil {
		labels = p.Selector(obj)
	} else if p.LabelSelectorPath != "" {
		if labels, _, err = unstructured.NestedString(obj, split(p.LabelSelectorPath)...); err != nil {
			return nil, false, err
		}
	}
	meta := objectmeta.Access(obj)
	return &autoscalingv1.Scale{
		TypeMeta: metav1.TypeMeta{Kind: "Scale", APIVersion: "autoscaling/v1"},
		ObjectMeta: metav1.ObjectMeta{
			Name: meta.GetName(), Namespace: meta.GetNamespace(), UID: meta.GetUID(),
			ResourceVersion: meta.GetResourceVersion(), CreationTimestamp: meta.GetCreationTimestamp(),
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: int32(spec)},
		Status: autoscalingv1.ScaleStatus{Replicas: int32(status), Selector: labels},
	}, found, nil
}

// Object is Of as decoded JSON.
func Object(obj object.Object, p *catalog.Scale) (object.Object, error) {
	scale, _, err := Of(obj, p)
	if err != nil {
		return nil, err
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(scale)
}

// Typed decodes a client's Scale.
func Typed(scale object.Object) (*autoscalingv1.Scale, error) {
	typed := &autoscalingv1.Scale{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(codec.AppendJSON(nil, scale), typed); err != nil {
		return nil, codec.Unhandled(scale, err, Kind)
	}
	return typed, nil
}

// HasReplicas reports whether an object has the field SpecReplicasPath.
func HasReplicas(obj object.Object, p *catalog.Scale) bool {
	_, found, _ := unstructured.NestedInt64(obj, split(p.SpecReplicasPath)...)
	return found
}

// Unset stands for missing replicas, which a patch must set. It is Kubernetes' value; a JSON patch can test for it.
const Unset = math.MinInt32

// Put returns old with the replicas and the resourceVersion of a client's Scale.
func Put(old, scale object.Object, p *catalog.Scale) (object.Object, error) {
	replicas, _, err := unstructured.NestedInt64(scale, "spec", "replicas")
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if replicas == Unset {
		return nil, apierrors.NewBadRequest(
			fmt.Sprintf("the spec replicas field %q cannot be empty", p.SpecReplicasPath))
	}
	obj := runtime.DeepCopyJSON(old)
	if err := unstructured.SetNestedField(obj, replicas, split(p.SpecReplicasPath)...); err != nil {
		return nil, err
	}
	if v := object.String(object.Meta(scale), "resourceVersion"); v != "" {
		object.Meta(obj)["resourceVersion"] = v
	}
	return obj, nil
}

func split(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }
