package core

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/plugin"
	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object/quantity"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// podResizes checks that the node of a resized pod supports resizing and is large enough.
type podResizes struct{ view *watchcache.View }

// PodResize allows a resize only on a node that supports it and is large enough.
func PodResize(c plugin.Config) []plugin.Rule {
	return []plugin.Rule{{
		Plural: "pods", Subresource: "resize", Operations: plugin.Updates, Validate: podResizes{c.View}.check,
	}}
}

func (p podResizes) check(ctx context.Context, a *admit.Attributes) error {
	if !respecified(a) {
		return nil
	}
	node, err := nodeOf(ctx, p.view, a)
	if err != nil {
		return err
	}
	if system, ok := node.Labels[corev1.LabelOSStable]; ok && system != "linux" {
		return refusedResize(a,
			fmt.Errorf("pod resize is only supported on linux nodes, node %q is %q", node.Name, system),
			"UnsupportedPlatform")
	}
	needs := podTotal(catalog.At(a.Object, "spec"), "requests")
	for name, q := range pod.Overhead(catalog.At(a.Object, "spec")) {
		sum := needs[name].DeepCopy()
		quantity.Add(&sum, q)
		needs[name] = sum
	}
	var short []string
	if need, has := needs["cpu"], node.Status.Allocatable.Cpu(); quantity.Cmp(need, *has) > 0 {
		short = append(short, fmt.Sprintf("cpu, requested: %d, allocatable: %d", need.MilliValue(), has.MilliValue()))
	}
	if need, has := needs["memory"], node.Status.Allocatable.Memory(); quantity.Cmp(need, *has) > 0 {
		short = append(short, fmt.Sprintf("memory, requested: %d, allocatable: %d", need.Value(), has.Value()))
	}
	if len(short) > 0 {
		return refusedResize(a,
			fmt.Errorf("node didn't have enough allocatable resources: %s", strings.Join(short, "; ")), "NodeCapacity")
	}
	return nil
}

// refusedResize adds the reason to the error as a cause, for programs.
func refusedResize(a *admit.Attributes, err error, reason metav1.CauseType) error {
	err = admit.Forbidden(a, err)
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		status.ErrStatus.Details.Causes = append(status.ErrStatus.Details.Causes, metav1.StatusCause{Type: reason})
	}
	return err
}

// respecified reports whether the spec of a pod on a node changes.
func respecified(a *admit.Attributes) bool {
	return catalog.Text(a.Object, "spec", "nodeName") != "" &&
		catalog.At(a.Object, "metadata")["generation"] != catalog.At(a.Old, "metadata")["generation"]
}

// nodeOf returns a pod's node, never nil without an error.
func nodeOf(ctx context.Context, view *watchcache.View, a *admit.Attributes) (*corev1.Node, error) {
	name := catalog.Text(a.Object, "spec", "nodeName")
	node, err := plugin.Lookup[corev1.Node](ctx, view, ref.Nodes.Prefix, "", name)
	if err == nil && node == nil {
		err = admit.Forbidden(a, fmt.Errorf("node %q not found", name))
	}
	return node, err
}
