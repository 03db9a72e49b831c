package cluster

import (
	"context"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/verb"
	"github.com/bowsprit/bowsprit/internal/verb/scale"
)

// Scalable names an object of any kind that may have a scale.
type Scalable struct{ APIVersion, Kind, Namespace, Name string }

// Scale returns the scale of an object as the view has it, and nil if the object is not there. A kind that is not
// served, or has no scale, is an error.
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
	found, _, err := scale.Of(obj, call.Version.Scale)
	return found, err
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
	if call.Version = v; v.Scale == nil {
		return nil, fmt.Errorf("%s does not implement the scale subresource", call.GroupResource())
	}
	return call, nil
}
