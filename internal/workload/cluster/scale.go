package cluster

import (
	"context"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/verb"
	"github.com/bowsprit/bowsprit/internal/verb/decode"
	"github.com/bowsprit/bowsprit/internal/verb/scale"
)

// Scalable names an object of any kind that may have a scale.
type Scalable struct {
	APIVersion, Kind, Namespace, Name string
	// Resource is that of the kind, set by Cluster.Scalable.
	Resource schema.GroupResource
}

// Scalable finds an object of a kind in any served version that has a scale subresource. A kind that is not served is a
// NoKindMatchError; a kind without a scale has the error of an unknown path.
func (c *Cluster) Scalable(kind schema.GroupKind, namespace, name string) (Scalable, error) {
	of := Scalable{Kind: kind.Kind, Namespace: namespace, Name: name}
	r := c.Catalog.Snapshot().ByKind(kind.Group, kind.Kind)
	if r == nil || !r.Served {
		return of, &meta.NoKindMatchError{GroupKind: kind}
	}
	of.Resource = schema.GroupResource{Group: r.Group, Resource: r.Plural}
	for _, v := range r.Versions {
		if v.Served && v.Scale != nil && r.Namespaced {
			of.APIVersion = r.APIVersion(v)
			return of, nil
		}
	}
	return of, verb.NotServed()
}

// Scale returns the scale of an object in the view, or nil if the object does not exist. A kind that is not served, or
// that has no scale, is an error.
func (c *Cluster) Scale(ctx context.Context, of Scalable) (*autoscalingv1.Scale, error) {
	call, err := c.scaleCall(of)
	if err != nil {
		return nil, err
	}
	e := c.View.Collection(call.Resource.Prefix).Snapshot().Get(of.Namespace, of.Name)
	if e == nil {
		return nil, nil
	}
	obj, err := c.Verbs.Read(ctx, call.Resource, call.Version, e)
	if err != nil {
		return nil, err
	}
	shown, found, err := scale.Of(obj, call.Version.Scale)
	if err == nil && !found {
		err = apierrors.NewInternalError(
			fmt.Errorf("the spec replicas field %q does not exist", call.Version.Scale.SpecReplicasPath))
	}
	return shown, err
}

// Rescale sets the replicas of an object through its scale subresource.
func (c *Cluster) Rescale(ctx context.Context, of Scalable, replicas int32) error {
	call, err := c.scaleCall(of)
	if err != nil {
		return err
	}
	call = call.Under("scale")
	patch := decode.Patch{
		Type: types.MergePatchType, Data: fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas),
	}
	_, err = c.Verbs.PatchScale(ctx, call, patch, metav1.PatchOptions{FieldManager: c.Manager})
	return err
}

func (c *Cluster) scaleCall(of Scalable) (*verb.Call, error) {
	gv, err := schema.ParseGroupVersion(of.APIVersion)
	if err != nil {
		return nil, err
	}
	r := c.Catalog.Snapshot().ByKind(gv.Group, of.Kind)
	var v *catalog.Version
	if r != nil {
		v = r.Version(gv.Version)
	}
	if v == nil {
		return nil, &meta.NoKindMatchError{
			GroupKind: schema.GroupKind{Group: gv.Group, Kind: of.Kind}, SearchedVersions: []string{gv.Version},
		}
	}
	call, err := c.Verbs.Call(catalog.GroupResource{Group: r.Group, Resource: r.Plural}, of.Namespace, of.Name, c.User)
	if err != nil {
		return nil, err
	}
	if v.Scale == nil {
		return nil, fmt.Errorf("%s does not implement the scale subresource", call.GroupResource())
	}
	return call.In(v), nil
}
