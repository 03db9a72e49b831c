package read

import (
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb/call"
	"github.com/bowsprit/bowsprit/internal/verb/scale"
)

// Scale returns the scale of an entry in the call's version.
func (r *Reader) Scale(c *call.Call, e *watchcache.Entry) (*autoscalingv1.Scale, error) {
	obj, err := r.Object(c, e)
	if err != nil {
		return nil, err
	}
	view, found, err := scale.Of(obj, c.Version.Scale)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, apierrors.NewInternalError(
			fmt.Errorf("the spec replicas field %q does not exist", c.Version.Scale.SpecReplicasPath))
	}
	return view, nil
}
