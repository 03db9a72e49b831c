package subresource

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/kinds/core/podcondition"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// bindingAction binds a pod to a node, on a scheduler's request: POST pods/x/binding, or POST bindings from older ones.
// A pod is bound once.
func bindingAction() verb.Action {
	return verb.Action{
		Kind: corev1.SchemeGroupVersion.WithKind("Binding"),
		New:  func() any { return &corev1.Binding{} },
		Check: func(c *verb.Call, body any) error {
			b := body.(*corev1.Binding)
			if !c.Resource.Virtual && b.Name != c.Name {
				return apierrors.NewBadRequest("name in URL does not match name in Binding object")
			}
			return checkBinding(b).ToAggregate()
		},
		Run: func(ctx context.Context, v *verb.Verbs, c *verb.Call, body any, o metav1.CreateOptions) error {
			b := body.(*corev1.Binding)
			if b.Name == "" {
				return apierrors.NewBadRequest("Name parameter required.")
			}
			if c.Resource.Virtual { // POST bindings
				pods := c.Snapshot.Resource("", "pods")
				c = c.Of(pods).Named(c.Namespace, b.Name).Under("binding")
			}
			return bind(ctx, v, c, b, o)
		},
	}
}

func checkBinding(b *corev1.Binding) (errs field.ErrorList) {
	if b.Target.Kind != "" && b.Target.Kind != "Node" {
		errs = append(errs,
			field.NotSupported(field.NewPath("target", "kind"), b.Target.Kind, []string{"Node", "<empty>"}))
	}
	if b.Target.Name == "" {
		errs = append(errs, field.Required(field.NewPath("target", "name"), ""))
	}
	return errs
}

// bind assigns the pod. It is an ordinary update except for its authorization.
func bind(ctx context.Context, v *verb.Verbs, c *verb.Call, b *corev1.Binding, o metav1.CreateOptions) error {
	_, err := v.Edit(ctx, c, metav1.UpdateOptions{DryRun: o.DryRun, FieldManager: o.FieldManager},
		func(_ *watchcache.Entry, old object.Object) (object.Object, error) {
			obj := runtime.DeepCopyJSON(old)
			if err := assign(obj, b, v.Now()); err != nil {
				return nil, apierrors.NewConflict(schema.GroupResource{Resource: "pods/binding"}, c.Name, err)
			}
			meta := object.Meta(obj)
			for key, v := range map[string]string{"uid": string(b.UID), "resourceVersion": b.ResourceVersion} {
				if v != "" {
					meta[key] = v
				}
			}
			return obj, nil
		})
	return err
}

// assign puts the node, annotations and labels of a binding on a pod.
func assign(pod object.Object, b *corev1.Binding, now time.Time) error {
	name, meta := object.String(object.Meta(pod), "name"), object.Meta(pod)
	spec, _ := pod["spec"].(object.Object)
	if spec == nil {
		spec = object.Object{}
		pod["spec"] = spec
	}
	if object.String(meta, "deletionTimestamp") != "" {
		return fmt.Errorf("pod %s is being deleted, cannot be assigned to a host", name)
	}
	if node := object.String(spec, "nodeName"); node != "" {
		return fmt.Errorf("pod %v is already assigned to node %q", name, node)
	}
	if gates, _ := spec["schedulingGates"].([]any); len(gates) > 0 {
		return fmt.Errorf("pod %v has non-empty .spec.schedulingGates", name)
	}
	spec["nodeName"] = b.Target.Name
	for key, add := range map[string]map[string]string{"annotations": b.Annotations, "labels": b.Labels} {
		if len(add) == 0 {
			continue
		}
		have, _ := meta[key].(object.Object)
		have = maps.Clone(have)
		if have == nil {
			have = object.Object{}
		}
		for k, v := range add {
			have[k] = v
		}
		meta[key] = have
	}
	delete(object.Child(pod, "status"), "nominatedNodeName")
	podcondition.Set(pod, object.Object{"type": string(corev1.PodScheduled), "status": string(corev1.ConditionTrue)},
		now)
	return nil
}
