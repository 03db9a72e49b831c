package operators

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A node, with a kubelet in the test, and its pods.
const measured = `apiVersion: v1
kind: Node
metadata: {name: n1}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default, labels: {app: web}}
spec:
  nodeName: n1
  containers: [{name: page, image: page}, {name: proxy, image: proxy}]
---
apiVersion: v1
kind: Pod
metadata: {name: ended, namespace: default}
spec:
  nodeName: n1
  containers: [{name: work, image: work}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: viewers, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: alice}]
`

// kubelet serves /metrics/resource like a kubelet: to clients with permission to get nodes/metrics, by an access review
// of the API server. The timestamps of successive answers are ten seconds apart.
type kubelet struct {
	*httptest.Server
	s       *server
	began   time.Time
	answers atomic.Int64
	refused atomic.Pointer[string]
}

func startKubelet(t *testing.T, s *server) *kubelet {
	k := &kubelet{s: s, began: time.Now().Add(-time.Hour)}
	k.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := k.check(r); err != nil {
			text := err.Error()
			k.refused.Store(&text)
			http.Error(w, text, http.StatusForbidden)
			return
		}
		fmt.Fprint(w, k.metrics(k.answers.Add(1)))
	}))
	t.Cleanup(k.Close)
	return k
}

// check authenticates and authorizes a client by reviews of the API server.
func (k *kubelet) check(r *http.Request) error {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	review, err := k.s.typed.AuthenticationV1().TokenReviews().Create(r.Context(),
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	may, err := k.s.typed.AuthorizationV1().SubjectAccessReviews().Create(r.Context(),
		&authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: review.Status.User.Username, Groups: review.Status.User.Groups,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: "get", Resource: "nodes", Subresource: "metrics", Name: "n1",
			},
		}}, metav1.CreateOptions{})
	if err == nil && (!may.Status.Allowed || r.URL.Path != "/metrics/resource") {
		err = fmt.Errorf("%q may not get %s", review.Status.User.Username, r.URL.Path)
	}
	return err
}

// metrics is the n-th answer: the node uses 500m and 1 GiB, including 125m and 96 MiB of the pod web.
func (k *kubelet) metrics(n int64) string {
	at := k.began.Add(time.Duration(n) * 10 * time.Second)
	var text strings.Builder
	add := func(name, labels string, value float64) {
		fmt.Fprintf(&text, "%s%s %g %d\n", name, labels, value, at.UnixMilli())
	}
	seconds := float64(n * 10)
	add("node_cpu_usage_seconds_total", "", 1000+0.5*seconds)
	add("node_memory_working_set_bytes", "", 1<<30)
	for _, c := range []struct {
		pod, name string
		cpu, mem  float64
	}{{"web", "page", 0.1, 64 << 20}, {"web", "proxy", 0.025, 32 << 20}, {"ended", "work", 0.3, 1 << 20}} {
		labels := fmt.Sprintf("{container=%q,namespace=\"default\",pod=%q}", c.name, c.pod)
		add("container_cpu_usage_seconds_total", labels, 100+c.cpu*seconds)
		add("container_memory_working_set_bytes", labels, c.mem)
		add("container_start_time_seconds", labels, float64(k.began.Add(-time.Hour).Unix()))
	}
	return text.String()
}

// TestMetricsServer registers the metrics server by its own manifests and lets it read a kubelet. kubectl top shows its
// metrics through the API server to the administrator, and to a user with the role that the manifests add to view.
func TestMetricsServer(t *testing.T) {
	t.Parallel()
	ctx, s := bounded(t), start(t)
	base := filepath.Join(moduleDir(t, "metrics", "sigs.k8s.io/metrics-server"), "manifests/base")
	s.apply(ctx, t, base+"/rbac.yaml", base+"/service.yaml", base+"/apiservice.yaml")
	k := startKubelet(t, s)
	s.create(ctx, t, measured)
	s.status(ctx, t, k)
	aggregated{"kube-system", "metrics-server", "metrics-server"}.launch(ctx, t, s, "metrics-server", "--kubeconfig",
		"--kubelet-preferred-address-types=InternalIP", "--kubelet-use-node-status-port", "--metric-resolution=10s",
		"--kubelet-insecure-tls", "--kubelet-request-timeout=5s")
	s.available(ctx, t, "v1beta1.metrics.k8s.io")

	s.prints(ctx, t, `NAME   CPU(cores)   CPU(%)   MEMORY(bytes)   MEMORY(%)   
n1     500m         25%      1024Mi          50%         
`, "top", "nodes")
	if why := k.refused.Load(); why != nil {
		t.Errorf("the kubelet refused it: %s", *why)
	}
	const web = `NAME   CPU(cores)   MEMORY(bytes)   
web    125m         96Mi            
`
	s.prints(ctx, t, web, "top", "pods")
	s.prints(ctx, t, `POD   NAME    CPU(cores)   MEMORY(bytes)   
web   page    100m         64Mi            
web   proxy   25m          32Mi            
`, "top", "pods", "web", "--containers")
	s.prints(ctx, t, web, "top", "pods", "--selector=app=web", "--as=alice")
	s.prints(ctx, t, `Error from server (Forbidden): pods.metrics.k8s.io is forbidden: User "bob" cannot list `+
		`resource "pods" in API group "metrics.k8s.io" in the namespace "default"`+"\n", "top", "pods", "--as=bob")
	s.prints(ctx, t, `NAME    SHORTNAMES   APIVERSION               NAMESPACED   KIND
nodes                metrics.k8s.io/v1beta1   false        NodeMetrics
pods                 metrics.k8s.io/v1beta1   true         PodMetrics
`, "api-resources", "--api-group=metrics.k8s.io")
	doc := s.kubectl(ctx, "explain", "nodemetrics.usage")
	if !strings.Contains(doc, "FIELD: usage <map[string]Quantity>") {
		t.Errorf("explain says:\n%s", doc)
	}
}

// status writes the kubelet's status of its node and its pods: addresses, capacity, and running containers.
func (s *server) status(ctx context.Context, t *testing.T, k *kubelet) {
	t.Helper()
	at, err := url.Parse(k.URL)
	must(t, err)
	resources := `{"cpu":"2","memory":"2Gi"}`
	_, err = s.typed.CoreV1().Nodes().Patch(ctx, "n1", types.MergePatchType, []byte(`{"status":{
		"addresses":[{"type":"InternalIP","address":"`+at.Hostname()+`"}],
		"daemonEndpoints":{"kubeletEndpoint":{"Port":`+at.Port()+`}},
		"capacity":`+resources+`,"allocatable":`+resources+`}}`), metav1.PatchOptions{}, "status")
	must(t, err)
	for pod, phase := range map[string]string{"web": "Running", "ended": "Succeeded"} {
		_, err = s.typed.CoreV1().Pods("default").Patch(ctx, pod, types.MergePatchType,
			[]byte(`{"status":{"phase":"`+phase+`"}}`), metav1.PatchOptions{}, "status")
		must(t, err)
	}
}
