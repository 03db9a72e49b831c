package operators

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

const rollout = `apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: web, namespace: default}
spec:
  replicas: 4
  progressDeadlineSeconds: 120
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}
  strategy:
    canary:
      steps:
      - setWeight: 25
      - pause: {}
      - setWeight: 50
      - pause: {duration: 1}
`

// TestArgoRollouts rolls pods out on simulated nodes step by step with the controller of Argo Rollouts, which waits for
// its pods to be ready: a canary that is promoted, and one with a missing image that is aborted.
func TestArgoRollouts(t *testing.T) {
	t.Parallel()
	ctx, s := bounded(t), start(t, "--simulate=nodes=3")
	manifests := filepath.Join(moduleDir(t, "rollouts", "github.com/argoproj/argo-rollouts"), "manifests")
	for _, name := range []string{
		"rollout", "analysis-run", "analysis-template", "cluster-analysis-template", "experiment",
	} {
		s.apply(ctx, t, filepath.Join(manifests, "crds", name+"-crd.yaml"))
	}
	launch(t, nil, "rollouts-controller", "--kubeconfig="+s.kubeconfig, "--namespace=default", "--leader-elect=false",
		"--metricsPort=0", "--healthzPort=0", "--loglevel=warn")
	s.create(ctx, t, rollout)
	s.rolledOut(ctx, t, "Healthy", 4, 4)

	rollouts := s.resource(t, "argoproj.io/v1alpha1", "Rollout", "default")
	change := func(patch, subresource string) {
		t.Helper()
		var at []string
		if subresource != "" {
			at = append(at, subresource)
		}
		_, err := rollouts.Patch(ctx, "web", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, at...)
		must(t, err)
	}
	image := func(name, annotations string) {
		t.Helper()
		change(`{"spec":{"template":{"metadata":{"annotations":`+annotations+`},"spec":{"containers":[{"name":"web","image":"`+
			name+`"}]}}}}`, "")
	}
	image("web:2", "null")
	s.rolledOut(ctx, t, "Paused", 1, 4)
	change(`{"status":{"pauseConditions":null}}`, "status") // like kubectl argo rollouts promote
	s.rolledOut(ctx, t, "Healthy", 4, 4)

	image("web:3", `{"bowsprit.dev/simulate-pull-failure":"true"}`)
	s.rolledOut(ctx, t, "Progressing", 1, 3)
	change(`{"status":{"abort":true}}`, "status")
	s.rolledOut(ctx, t, "Degraded", 0, 4)
}

// rolledOut waits until the Rollout is in a phase, with so many pods of its newest template, and so many available. It
// touches the Rollout repeatedly, because the controller may miss a promotion: it writes the responses to its own
// writes into its cache, over newer objects from the watch.
func (s *server) rolledOut(ctx context.Context, t *testing.T, phase string, updated, available int64) {
	t.Helper()
	looks := 0
	until(ctx, t, fmt.Sprintf("Rollout %s, %d updated, %d available", phase, updated, available), func() (bool, error) {
		looks++
		obj, err := s.resource(t, "argoproj.io/v1alpha1", "Rollout", "default").Patch(ctx, "web", types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"annotations":{"look":"%d"}}}`, looks), metav1.PatchOptions{})
		if err != nil {
			return false, err
		}
		status, _, _ := unstructured.NestedMap(obj.Object, "status")
		now, _, _ := unstructured.NestedString(status, "phase")
		n, _, _ := unstructured.NestedInt64(status, "updatedReplicas")
		ready, _, _ := unstructured.NestedInt64(status, "availableReplicas")
		return now == phase && n == updated && ready == available, fmt.Errorf("status: %v", status)
	})
}
