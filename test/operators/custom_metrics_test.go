package operators

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestCustomMetrics registers a server built with the custom metrics library, by the manifests of its sample. It serves
// three versions of two groups through the API server, and the autoscaler's queries work.
func TestCustomMetrics(t *testing.T) {
	t.Parallel()
	ctx, s := bounded(t), start(t)
	dir := moduleDir(t, "metrics", "sigs.k8s.io/custom-metrics-apiserver")
	s.apply(ctx, t, filepath.Join(dir, "test-adapter-deploy/testing-adapter.yaml"))
	s.create(ctx, t, `apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default, labels: {app: web}}
spec: {containers: [{name: page, image: page}]}
`)
	ready := make(chan struct{})
	out := &watcher{want: "metrics are taken at ", found: ready}
	aggregated{"custom-metrics", "custom-metrics-apiserver", "custom-metrics-apiserver"}.launchTo(ctx, t, s, out,
		[]string{"adapter", "--lister-kubeconfig"})
	select {
	case <-ready:
	case <-time.After(limit):
		t.Fatal("the adapter did not start")
	}
	for _, name := range []string{
		"v1beta1.custom.metrics.k8s.io", "v1beta2.custom.metrics.k8s.io", "v1beta1.external.metrics.k8s.io",
	} {
		s.available(ctx, t, name)
	}
	_, writer, _ := strings.Cut(strings.TrimSpace(out.written.String()), " at ")
	resp, err := http.Post("http://"+writer+"/write-metrics/namespaces/default/pods/web/queue-length",
		"application/json", strings.NewReader(`"300m"`))
	must(t, err)
	must(t, resp.Body.Close())

	const (
		autoscaler = "--as=system:serviceaccount:kube-system:horizontal-pod-autoscaler"
		pods       = "custom.metrics.k8s.io/v1beta2/namespaces/default/pods/"
		external   = "external.metrics.k8s.io/v1beta1/namespaces/default/my-external-metric"
	)
	for _, c := range []struct{ name, path, as, want string }{
		{"one", pods + "web/queue-length", autoscaler, `"value":"300m"`},
		{"an older version", "custom.metrics.k8s.io/v1beta1/namespaces/default/pods/web/queue-length", autoscaler,
			`"metricName":"queue-length"`},
		{"by a selector", pods + "%2A/queue-length?labelSelector=app%3Dweb",
			autoscaler, `"describedObject":{"kind":"Pod","namespace":"default","name":"web","apiVersion":"/v1"}`},
		{"one that is not there", pods + "web/other", autoscaler,
			"Error from server (NotFound): the server could not find the metric other for pods"},
		{"external", external + "?labelSelector=foo%3Dbar", "",
			`"metricLabels":{"foo":"bar"}`},
		{"another user", pods + "web/queue-length", "--as=bob",
			`Error from server (Forbidden): pods.custom.metrics.k8s.io "web" is forbidden: User "bob" cannot get ` +
				`resource "pods/queue-length" in API group "custom.metrics.k8s.io" in the namespace "default"`},
	} {
		args := []string{"get", "--raw=/apis/" + c.path}
		if c.as != "" {
			args = append(args, c.as)
		}
		if got := s.kubectl(ctx, args...); !strings.Contains(got, c.want) {
			t.Errorf("%s: no %s in:\n%s", c.name, c.want, got)
		}
	}
	group := s.kubectl(ctx, "get", "--raw=/apis/custom.metrics.k8s.io")
	if !strings.Contains(group, `"preferredVersion":{"groupVersion":"custom.metrics.k8s.io/v1beta2"`) {
		t.Errorf("the group: %s", group)
	}
}
