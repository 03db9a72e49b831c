package clients

import (
	"context"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/release"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const releaseName = "demo"

// helm is Helm with a server, and clients for the test.
type helm struct {
	*action.Configuration
	typed   *kubernetes.Clientset
	dynamic dynamic.Interface
}

func newHelm(t *testing.T, config *rest.Config) *helm {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(false)
	flags.WithWrapConfigFn(func(*rest.Config) *rest.Config { return rest.CopyConfig(config) })
	namespace := "default"
	flags.Namespace, flags.APIServer = &namespace, &config.Host
	h := &helm{Configuration: new(action.Configuration)}
	must(t, h.Init(flags, namespace, "secret", t.Logf))
	var err error
	h.typed, err = kubernetes.NewForConfig(config)
	must(t, err)
	h.dynamic, err = dynamic.NewForConfig(config)
	must(t, err)
	return h
}

// see compares the release's objects with its values.
func (h *helm) see(ctx context.Context, t *testing.T, image string, replicas int32, revision string) {
	t.Helper()
	deployment, err := h.typed.AppsV1().Deployments("default").Get(ctx, releaseName+"-operator", metav1.GetOptions{})
	must(t, err)
	if deployment.Spec.Template.Spec.Containers[0].Image != image || *deployment.Spec.Replicas != replicas ||
		deployment.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType {
		t.Errorf("deployment: %+v", deployment.Spec)
	}
	service, err := h.typed.CoreV1().Services("default").Get(ctx, releaseName+"-operator", metav1.GetOptions{})
	must(t, err)
	if service.Spec.Type != corev1.ServiceTypeClusterIP {
		t.Errorf("service: %+v", service.Spec)
	}
	cron, err := h.dynamic.Resource(schema.GroupVersionResource{
		Group: "charts.example.com", Version: "v1", Resource: "crontabs",
	}).Namespace("default").Get(ctx, releaseName, metav1.GetOptions{})
	must(t, err)
	if spec := cron.Object["spec"].(map[string]any); spec["replicas"] != int64(replicas) {
		t.Errorf("cron tab: %v", spec)
	}
	hook, err := h.typed.CoreV1().ConfigMaps("default").Get(ctx, releaseName+"-hook", metav1.GetOptions{})
	must(t, err)
	if revision != "" && hook.Data["image"] != revision {
		t.Errorf("the hook ran for %v", hook.Data)
	}
}

// TestHelm installs, upgrades, rolls back and removes a chart with a definition, hooks and a Deployment.
func TestHelm(t *testing.T) {
	t.Parallel()
	ctx, config := bounded(t), start(t)
	h := newHelm(t, config)
	chart, err := loader.Load("chart")
	must(t, err)

	install := action.NewInstall(h.Configuration)
	install.ReleaseName, install.Namespace = releaseName, "default"
	made, err := install.RunWithContext(ctx, chart, nil)
	must(t, err)
	if made.Info.Status != release.StatusDeployed {
		t.Fatalf("status %s", made.Info.Status)
	}
	h.see(ctx, t, "operator:1", 2, "operator:1")

	upgrade := action.NewUpgrade(h.Configuration)
	upgrade.Namespace = "default"
	_, err = upgrade.RunWithContext(ctx, releaseName, chart, map[string]any{"image": "operator:2", "replicas": 3})
	must(t, err)
	h.see(ctx, t, "operator:2", 3, "operator:2")

	rollback := action.NewRollback(h.Configuration)
	rollback.Version = 1
	must(t, rollback.Run(releaseName))
	h.see(ctx, t, "operator:1", 2, "")

	history, err := action.NewHistory(h.Configuration).Run(releaseName)
	must(t, err)
	if len(history) != 3 || history[2].Version != 3 || history[2].Info.Status != release.StatusDeployed {
		t.Errorf("history: %d releases", len(history))
	}
	_, err = action.NewUninstall(h.Configuration).Run(releaseName)
	must(t, err)
	if _, err := h.typed.AppsV1().Deployments("default").Get(ctx, releaseName+"-operator",
		metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the deployment after removal: %v", err)
	}
	_, err = h.typed.CoreV1().ConfigMaps("default").Get(ctx, releaseName+"-gone", metav1.GetOptions{})
	must(t, err) // Helm keeps the objects of hooks
}
