package core

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/plugin"
	"github.com/bowsprit/bowsprit/internal/object/quantity"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// declaredFeatures checks changes of a running pod's spec against the features that its node declares
// (status.declaredFeatures). Source: KEP-5328.
type declaredFeatures struct{ view *watchcache.View }

// DeclaredFeature rejects updates of pods that need a feature which their node does not declare.
func DeclaredFeature(c plugin.Config) []plugin.Rule {
	check := declaredFeatures{c.View}.check
	return []plugin.Rule{
		{Plural: "pods", Operations: plugin.Updates, Validate: check},
		{Plural: "pods", Subresource: "resize", Operations: plugin.Updates, Validate: check},
	}
}

func (d declaredFeatures) check(ctx context.Context, a *admit.Attributes) error {
	if !respecified(a) {
		return nil
	}
	var old, now corev1.PodSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(catalog.At(a.Old, "spec"), &old); err != nil {
		return err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(catalog.At(a.Object, "spec"), &now); err != nil {
		return err
	}
	needed := featuresToUpdate(&old, &now)
	if len(needed) == 0 {
		return nil
	}
	node, err := nodeOf(ctx, d.view, a)
	if err != nil {
		return err
	}
	missing := slices.DeleteFunc(needed,
		func(feature string) bool { return slices.Contains(node.Status.DeclaredFeatures, feature) })
	if len(missing) > 0 {
		return admit.Forbidden(a,
			fmt.Errorf("pod update requires features %s which are not available on node %q",
				strings.Join(missing, ", "), node.Name))
	}
	return nil
}

// featuresToUpdate returns the sorted features that a kubelet needs to apply the change.
func featuresToUpdate(old, now *corev1.PodSpec) (features []string) {
	if !quantity.Semantic.DeepEqual(old.Resources, now.Resources) {
		features = append(features, "InPlacePodLevelResourcesVerticalScaling")
	}
	for i := range min(len(old.InitContainers), len(now.InitContainers)) {
		c := &old.InitContainers[i]
		sidecar := c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		if !sidecar && !quantity.Semantic.DeepEqual(c.Resources, now.InitContainers[i].Resources) {
			return append(features, "InPlacePodVerticalScalingInitContainers")
		}
	}
	return features
}
