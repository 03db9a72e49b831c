package operators

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const monitoring = `apiVersion: monitoring.coreos.com/v1
kind: Prometheus
metadata: {name: main, namespace: default}
spec:
  replicas: 2
  serviceMonitorSelector: {matchLabels: {team: web}}
  resources: {requests: {memory: 400Mi}}
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {name: web, namespace: default, labels: {team: web}}
spec:
  selector: {matchLabels: {app: web}}
  endpoints: [{port: metrics, interval: 17s}]
---
apiVersion: monitoring.coreos.com/v1
kind: Alertmanager
metadata: {name: alerts, namespace: default}
spec: {replicas: 1}
`

// TestPrometheusOperator creates a Prometheus and a ServiceMonitor, from which the operator creates a StatefulSet, a
// Service and a configuration. The test changes them, and deletes everything by the owner. On simulated nodes the pods
// become ready, and the operator reports the Prometheus and the Alertmanager as available.
func TestPrometheusOperator(t *testing.T) {
	t.Parallel()
	ctx, s := bounded(t), start(t, "--simulate=nodes=3")
	dir := moduleDir(t, "prometheus", "github.com/prometheus-operator/prometheus-operator")
	role := filepath.Join(dir, "example/rbac/prometheus-operator/prometheus-operator-")
	s.apply(ctx, t, filepath.Join(dir, "example/prometheus-operator-crd"), role+"cluster-role.yaml", role+
		"cluster-role-binding.yaml", role+"service-account.yaml")
	files := t.TempDir()
	for name, data := range map[string][]byte{
		"ca": s.config.CAData, "cert": s.config.CertData, "key": s.config.KeyData,
	} {
		must(t, os.WriteFile(filepath.Join(files, name), data, 0o600))
	}
	launch(t, nil, "prometheus-operator", "-apiserver="+s.config.Host, "-ca-file="+filepath.Join(files, "ca"),
		"-cert-file="+filepath.Join(files, "cert"),
		"-key-file="+filepath.Join(files, "key"), "-web.listen-address=127.0.0.1:0")
	s.create(ctx, t, monitoring)

	s.configured(ctx, t, "job_name: serviceMonitor/default/web/0", "scrape_interval: 17s")
	s.replicas(ctx, t, "prometheus-main", 2)
	s.replicas(ctx, t, "alertmanager-alerts", 1)
	for _, name := range []string{"prometheus-operated", "alertmanager-operated"} {
		until(ctx, t, "service "+name, func() (bool, error) {
			_, err := s.typed.CoreV1().Services("default").Get(ctx, name, metav1.GetOptions{})
			return err == nil, err
		})
	}

	prometheuses := s.resource(t, "monitoring.coreos.com/v1", "Prometheus", "default")
	_, err := prometheuses.Patch(ctx, "main", types.MergePatchType, []byte(`{"spec":{"replicas":3}}`),
		metav1.PatchOptions{})
	must(t, err)
	s.replicas(ctx, t, "prometheus-main", 3)
	_, err = s.resource(t, "monitoring.coreos.com/v1", "ServiceMonitor", "default").
		Patch(ctx, "web", types.MergePatchType, []byte(`{"spec":{"endpoints":[{"port":"metrics","interval":"23s"}]}}`),
			metav1.PatchOptions{})
	must(t, err)
	s.configured(ctx, t, "scrape_interval: 23s")
	s.allReady(ctx, t, "Prometheus", "main", 3)
	s.allReady(ctx, t, "Alertmanager", "alerts", 1)

	must(t, prometheuses.Delete(ctx, "main", metav1.DeleteOptions{}))
	until(ctx, t, "collection of what the Prometheus owned", func() (bool, error) {
		_, err := s.typed.AppsV1().StatefulSets("default").Get(ctx, "prometheus-main", metav1.GetOptions{})
		return apierrors.IsNotFound(err), err
	})
}

// allReady waits until the operator reports an object as available, with so many ready pods.
func (s *server) allReady(ctx context.Context, t *testing.T, kind, name string, replicas int64) {
	t.Helper()
	objects := s.resource(t, "monitoring.coreos.com/v1", kind, "default")
	until(ctx, t, kind+" "+name+" available", func() (bool, error) {
		obj, err := objects.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		status, _ := obj.Object["status"].(map[string]any)
		conditions, _ := status["conditions"].([]any)
		is := slices.ContainsFunc(conditions, func(c any) bool {
			condition, _ := c.(map[string]any)
			return condition["type"] == "Available" && condition["status"] == "True"
		})
		return is && status["availableReplicas"] == replicas, fmt.Errorf("status: %v", status)
	})
}

// replicas waits until the StatefulSet has so many replicas.
func (s *server) replicas(ctx context.Context, t *testing.T, name string, want int32) {
	t.Helper()
	until(ctx, t, "stateful set "+name, func() (bool, error) {
		set, err := s.typed.AppsV1().StatefulSets("default").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return *set.Spec.Replicas == want, fmt.Errorf("%d replicas", *set.Spec.Replicas)
	})
}

// configured waits until the configuration of the Prometheus contains the texts.
func (s *server) configured(ctx context.Context, t *testing.T, texts ...string) {
	t.Helper()
	until(ctx, t, "configuration", func() (bool, error) {
		secret, err := s.typed.CoreV1().Secrets("default").Get(ctx, "prometheus-main", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		zipped, err := gzip.NewReader(bytes.NewReader(secret.Data["prometheus.yaml.gz"]))
		if err != nil {
			return false, err
		}
		config, err := io.ReadAll(zipped)
		if err != nil {
			return false, err
		}
		for _, text := range texts {
			if !strings.Contains(string(config), text) {
				return false, fmt.Errorf("no %q in %s", text, config)
			}
		}
		return true, nil
	})
}
