package clients

import (
	"context"
	"fmt"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/release"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// waiting is a chart with everything that Helm waits for: a hook that is a Job, a Deployment, a test. It also looks up
// a value.
var waiting = []*loader.BufferedFile{
	{Name: "Chart.yaml", Data: []byte("apiVersion: v2\nname: waiting\nversion: 1.0.0\n")},
	{Name: "values.yaml", Data: []byte("image: good:1\n")},
	{Name: "templates/all.yaml", Data: []byte(`
apiVersion: batch/v1
kind: Job
metadata: {name: before, annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-delete-policy: "before-hook-creation,hook-succeeded"}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: c}]}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: checked, annotations: {helm.sh/hook: test}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: {{ .Values.image }}
        env: [{name: FOUND, value: {{ (lookup "v1" "ConfigMap" .Release.Namespace "given").data.key | quote }}}]
`)},
}

// cluster imitates the controllers of Kubernetes: Jobs succeed, and Deployments get a ready ReplicaSet, unless their
// image is bad.
func cluster(ctx context.Context, t *testing.T, client kubernetes.Interface) {
	t.Helper()
	factory := informers.NewSharedInformerFactory(client, 0)
	look := func(obj any) {
		switch o := obj.(type) {
		case *batchv1.Job:
			if o.Status.Succeeded > 0 || o.DeletionTimestamp != nil {
				return
			}
			now := time.Now().UTC().Format(time.RFC3339)
			_, _ = client.BatchV1().Jobs("default").Patch(ctx, o.Name, types.MergePatchType,
				[]byte(`{"status":{"startTime":"`+now+`","completionTime":"`+now+`","succeeded":1,"conditions":[
				{"type":"SuccessCriteriaMet","status":"True","lastTransitionTime":"`+now+`","lastProbeTime":"`+now+`"},
				{"type":"Complete","status":"True","lastTransitionTime":"`+now+`","lastProbeTime":"`+now+`"}]}}`), metav1.PatchOptions{}, "status")
		case *appsv1.Deployment:
			image := o.Spec.Template.Spec.Containers[0].Image
			if image == "bad" || o.Status.ObservedGeneration == o.Generation {
				return
			}
			name := fmt.Sprint("web-", o.Generation)
			_, err := client.AppsV1().ReplicaSets("default").Create(ctx, &appsv1.ReplicaSet{
				ObjectMeta: metav1.ObjectMeta{
					Name: name, Labels: o.Spec.Template.Labels,
					OwnerReferences: []metav1.OwnerReference{
						{APIVersion: "apps/v1", Kind: "Deployment", Name: o.Name, UID: o.UID, Controller: ptr.To(true)},
					},
				},
				Spec: appsv1.ReplicaSetSpec{
					Replicas: o.Spec.Replicas, Selector: o.Spec.Selector, Template: o.Spec.Template,
				},
			}, metav1.CreateOptions{})
			if err == nil {
				_, _ = client.AppsV1().ReplicaSets("default").Patch(ctx, name, types.MergePatchType,
					[]byte(`{"status":{"observedGeneration":1,"replicas":1,"readyReplicas":1,"availableReplicas":1}}`),
					metav1.PatchOptions{}, "status")
			}
			_, _ = client.AppsV1().Deployments("default").Patch(ctx, o.Name, types.MergePatchType,
				fmt.Appendf(nil, `{"status":{"observedGeneration":%d}}`, o.Generation), metav1.PatchOptions{}, "status")
		}
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, now any) { look(now) }}
	for _, informer := range []cache.SharedIndexInformer{factory.Batch().V1().Jobs().Informer(),
		factory.Apps().V1().Deployments().Informer()} {
		_, err := informer.AddEventHandler(handler)
		must(t, err)
	}
	running, stop := context.WithCancel(ctx)
	factory.Start(running.Done())
	factory.WaitForCacheSync(running.Done())
	t.Cleanup(func() { stop(); factory.Shutdown() })
}

// TestHelmWaits checks that Helm waits for hooks and Deployments, keeps changes by others, and rolls back when an
// upgrade does not become ready.
func TestHelmWaits(t *testing.T) {
	t.Parallel()
	ctx, config := bounded(t), start(t)
	h := newHelm(t, config)
	cluster(ctx, t, h.typed)
	_, err := h.typed.CoreV1().ConfigMaps("default").Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "given"}, Data: map[string]string{"key": "looked up"}},
		metav1.CreateOptions{})
	must(t, err)
	chart, err := loader.LoadFiles(waiting)
	must(t, err)

	install := action.NewInstall(h.Configuration)
	install.ReleaseName, install.Namespace, install.Wait, install.Atomic, install.Timeout = releaseName, "default",
		true, true, limit
	_, err = install.RunWithContext(ctx, chart, nil)
	must(t, err)
	web := func() *appsv1.Deployment {
		t.Helper()
		d, err := h.typed.AppsV1().Deployments("default").Get(ctx, "web", metav1.GetOptions{})
		must(t, err)
		return d
	}
	if c := web().Spec.Template.Spec.Containers[0]; c.Image != "good:1" || c.Env[0].Value != "looked up" {
		t.Errorf("%+v", c)
	}

	// A user adds a variable and a sidecar. Helm's patch, made of the installed, the wanted and the current object,
	// keeps them.
	_, err = h.typed.AppsV1().Deployments("default").Patch(ctx, "web", types.StrategicMergePatchType, []byte(
		`{"spec":{"template":{"spec":{"containers":[{"name":"web","env":[{"name":"MORE","value":"x"}]},{"name":"sidecar","image":"s"}]}}}}`), metav1.PatchOptions{})
	must(t, err)
	upgrade := func(image string, timeout time.Duration) error {
		u := action.NewUpgrade(h.Configuration)
		u.Namespace, u.Wait, u.Atomic, u.Timeout = "default", true, true, timeout
		_, err := u.RunWithContext(ctx, releaseName, chart, map[string]any{"image": image})
		return err
	}
	must(t, upgrade("good:2", limit))
	containers := web().Spec.Template.Spec.Containers
	if len(containers) != 2 {
		t.Fatalf("%+v", containers)
	}
	for _, c := range containers {
		if c.Name == "web" && (c.Image != "good:2" || len(c.Env) != 2) {
			t.Errorf("%+v", c)
		}
	}

	// The rollback has the same timeout, so it is not short.
	if err := upgrade("bad", 10*time.Second); err == nil {
		t.Error("a Deployment that does not get ready, and no error")
	}
	for _, c := range web().Spec.Template.Spec.Containers {
		if c.Name == "web" && c.Image != "good:2" {
			t.Errorf("after going back: %+v", c)
		}
	}
	tested, err := action.NewReleaseTesting(h.Configuration).Run(releaseName)
	must(t, err)
	if tested.Hooks[0].LastRun.Phase == release.HookPhaseFailed {
		t.Errorf("%+v", tested.Hooks[0].LastRun)
	}
	all, err := action.NewList(h.Configuration).Run()
	must(t, err)
	if len(all) != 1 || all[0].Version != 4 || all[0].Info.Status != release.StatusDeployed {
		t.Errorf("list: %d, %+v", len(all), all[0].Info)
	}
	uninstall := action.NewUninstall(h.Configuration)
	uninstall.Wait, uninstall.Timeout = true, limit
	_, err = uninstall.Run(releaseName)
	must(t, err)
}
