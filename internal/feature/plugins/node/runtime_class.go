package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/plugin"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object/quantity"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// runtimeClasses copies the overhead and the scheduling constraints of a RuntimeClass to its pods.
type runtimeClasses struct{ view *watchcache.View }

// RuntimeClass sets the overhead, node selector and tolerations of pods from their RuntimeClass.
func RuntimeClass(c plugin.Config) []plugin.Rule {
	r := runtimeClasses{c.View}
	return []plugin.Rule{{Plural: "pods", Operations: plugin.Creates, Mutate: r.set, Validate: r.check}}
}

func (r runtimeClasses) of(ctx context.Context, a *admit.Attributes) (*nodev1.RuntimeClass, error) {
	name, named := catalog.At(a.Object, "spec")["runtimeClassName"].(string)
	if !named {
		return nil, nil
	}
	class, err := plugin.Lookup[nodev1.RuntimeClass](ctx, r.view, ref.RuntimeClasses.Prefix, "", name)
	if err == nil && class == nil {
		err = admit.Forbidden(a, fmt.Errorf("pod rejected: RuntimeClass %q not found", name))
	}
	return class, err
}

func (r runtimeClasses) set(ctx context.Context, a *admit.Attributes) error {
	class, err := r.of(ctx, a)
	if class == nil || err != nil {
		return err
	}
	var pod corev1.PodSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(catalog.At(a.Object, "spec"), &pod); err != nil {
		return err
	}
	if class.Overhead != nil {
		if have := pod.Overhead; len(have) > 0 && !quantity.Semantic.DeepEqual(class.Overhead.PodFixed, have) {
			return admit.Forbidden(a, errMismatch)
		}
		amounts := object{}
		for name, q := range class.Overhead.PodFixed {
			amounts[string(name)] = q.String()
		}
		setOrDrop(a.Edit("spec"), "overhead", amounts, len(amounts) > 0)
	}
	if class.Scheduling != nil {
		return schedule(a, &pod, class.Scheduling)
	}
	return nil
}

// schedule adds the scheduling constraints of the runtime class to a pod.
func schedule(a *admit.Attributes, pod *corev1.PodSpec, s *nodev1.Scheduling) error {
	selector := object{}
	for key, value := range pod.NodeSelector {
		selector[key] = value
	}
	for _, key := range slices.Sorted(maps.Keys(s.NodeSelector)) {
		value := s.NodeSelector[key]
		if have, ok := pod.NodeSelector[key]; ok && have != value {
			return admit.Forbidden(a,
				fmt.Errorf("conflict: runtimeClass.scheduling.nodeSelector[%s] = %s; pod.spec.nodeSelector[%s] = %s",
					key, value, key, have))
		}
		selector[key] = value
	}
	var tolerations []any
	for _, t := range mergeTolerations(append(slices.Clip(pod.Tolerations), s.Tolerations...)) {
		obj, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&t)
		if err != nil {
			return err
		}
		tolerations = append(tolerations, obj)
	}
	spec := a.Edit("spec")
	setOrDrop(spec, "nodeSelector", selector, len(selector) > 0)
	setOrDrop(spec, "tolerations", tolerations, len(tolerations) > 0)
	return nil
}

func setOrDrop(obj object, name string, value any, has bool) {
	if has {
		obj[name] = value
		return
	}
	delete(obj, name)
}

var errMismatch = errors.New("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")

// check validates pods against their class, after webhooks may have changed them.
func (r runtimeClasses) check(ctx context.Context, a *admit.Attributes) error {
	class, err := r.of(ctx, a)
	if err != nil {
		return err
	}
	overhead, has := catalog.At(a.Object, "spec")["overhead"]
	if class == nil || class.Overhead == nil {
		if has && overhead != nil {
			return admit.Forbidden(a,
				errors.New("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"))
		}
		return nil
	}
	var pod corev1.PodSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object{"overhead": overhead}, &pod); err != nil {
		return err
	}
	if !quantity.Semantic.DeepEqual(class.Overhead.PodFixed, pod.Overhead) {
		return admit.Forbidden(a, errMismatch)
	}
	return nil
}
