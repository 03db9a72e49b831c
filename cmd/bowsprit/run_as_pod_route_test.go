//go:build linux

package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/internal/testing/authority"
	"github.com/bowsprit/bowsprit/internal/workload/localpod/callback"
)

var mayBePod = namedRule("create", "apps", "deployments/localpod", "manager")

func allowLocalPods(c *bowsprit.Config) { c.Workloads.AllowLocalPods = true }

// operator is the server of an operator's webhook, which a test runs in place of the program.
type operator struct {
	ca    []byte
	port  int
	ready atomic.Bool
}

// startOperator starts a webhook that refuses the ConfigMap "bad".
func startOperator(t *testing.T) *operator {
	t.Helper()
	a := authority.New(t)
	cert, key := a.PEM(t, "hook.team.svc")
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	o := &operator{ca: a.CA}
	mux := http.NewServeMux()
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !o.ready.Load() {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("/validate", func(w http.ResponseWriter, r *http.Request) {
		review := &admissionv1.AdmissionReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil {
			t.Error(err)
		}
		review.Response = &admissionv1.AdmissionResponse{
			UID: review.Request.UID, Allowed: review.Request.Name != "bad",
			Result: &metav1.Status{Message: "the operator refuses it"},
		}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review)
	})
	server := httptest.NewUnstartedServer(mux)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.StartTLS()
	t.Cleanup(server.Close)
	o.port = server.Listener.Addr().(*net.TCPAddr).Port
	return o
}

// installHook creates the Service and the webhook configuration of the operator, as its manifest has them.
func (s *podServer) installHook(ca []byte) {
	s.Helper()
	_, err := s.client.CoreV1().Services("team").Create(s.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "hook"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "manager"}, ClusterIP: corev1.ClusterIPNone,
			Ports: []corev1.ServicePort{{Port: 443, TargetPort: intstr.FromString("hooks")}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
	path, none, fail := "/validate", admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Fail
	_, err = s.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(s.Context(),
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "hook"},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: "hook.team.example.com", SideEffects: &none, FailurePolicy: &fail,
				AdmissionReviewVersions: []string{"v1"},
				ClientConfig: admissionregistrationv1.WebhookClientConfig{
					CABundle: ca,
					Service:  &admissionregistrationv1.ServiceReference{Namespace: "team", Name: "hook", Path: &path},
				},
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{
					corev1.LabelMetadataName: "default",
				}},
				Rules: []admissionregistrationv1.RuleWithOperations{{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule: admissionregistrationv1.Rule{
						APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"},
					},
				}},
			}},
		}, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
}

// create creates a ConfigMap in namespace default, where the webhook applies.
func (s *podServer) create(name string) error {
	_, err := s.client.CoreV1().ConfigMaps("default").Create(s.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	return err
}

// local starts "bowsprit run" with a program that prints a line and waits, and returns once the program runs.
func (s *podServer) local(kubeconfig string, args ...string) *exec.Cmd {
	s.Helper()
	all := slices.Concat([]string{"run", "--as-pod=deployment/manager", "--namespace=team"},
		[]string{"--kubeconfig=" + kubeconfig}, args, []string{"--", "sh", "-c", "echo started; echo problem >&2; exec sleep 1000"})
	cmd := command(s.T, all...)
	var log strings.Builder
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "started\n" {
		_ = cmd.Wait()
		s.Fatalf("the program printed %q (%v): %s", line, err, log.String())
	}
	return cmd
}

const localPod = "manager-as-pod"

// until waits until the pod of the program exists and fulfils a condition, or is deleted if holds is nil.
func (s *podServer) until(holds func(*corev1.Pod) bool) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	pods := s.client.CoreV1().Pods("team")
	only := fields.OneTermEqualSelector("metadata.name", localPod).String()
	list, err := pods.List(ctx, metav1.ListOptions{FieldSelector: only})
	if err != nil {
		s.Fatal(err)
	}
	if holds == nil && len(list.Items) == 0 || holds != nil && len(list.Items) == 1 && holds(&list.Items[0]) {
		return
	}
	changes, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, podWatcher{s, only})
	if err != nil {
		s.Fatal(err)
	}
	defer changes.Stop()
	for ev := range changes.ResultChan() {
		pod, ok := ev.Object.(*corev1.Pod)
		if ok && (holds == nil && ev.Type == watch.Deleted || holds != nil && ev.Type != watch.Deleted && holds(pod)) {
			return
		}
	}
	s.Fatal("the pod does not reach the state")
}

// podWatcher watches pods for a RetryWatcher.
type podWatcher struct {
	s    *podServer
	only string
}

// WatchWithContext implements cache.WatcherWithContext.
func (w podWatcher) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.FieldSelector = w.only
	return w.s.client.CoreV1().Pods("team").Watch(ctx, o)
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// hasEndpoint waits until the Service has a ready endpoint, or has none.
func (s *podServer) hasEndpoint(want bool) {
	s.Helper()
	retry := time.NewTicker(20 * time.Millisecond)
	defer retry.Stop()
	for range retry.C {
		all, err := s.client.DiscoveryV1().EndpointSlices("team").List(s.Context(), metav1.ListOptions{
			LabelSelector: "kubernetes.io/service-name=hook",
		})
		if err != nil {
			s.Fatal(err)
		}
		ready := false
		for _, slice := range all.Items {
			for _, e := range slice.Endpoints {
				ready = ready || e.Conditions.Ready != nil && *e.Conditions.Ready
			}
		}
		if ready == want {
			return
		}
	}
}

// TestRunRoute runs a program to which a Service leads: its readiness, a webhook and the service proxy by the manifest,
// its log, and the end of the route with SIGKILL.
func TestRunRoute(t *testing.T) {
	t.Parallel()
	s, hook := newPodServer(t, allowLocalPods), startOperator(t)
	s.installHook(hook.ca)
	alice := s.user("alice", mayReadWorkload, mayReadSecret, mayGetToken, mayBePod)
	cmd := s.local(alice, "--port=9443="+strconv.Itoa(hook.port))
	s.until(func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning && !isReady(pod) })
	if err := s.create("before"); !apierrors.IsInternalError(err) {
		t.Errorf("a webhook that is not ready: %v", err)
	}
	hook.ready.Store(true)
	s.until(isReady)
	s.hasEndpoint(true)
	if err := s.create("good"); err != nil {
		t.Errorf("an object that the webhook accepts: %v", err)
	}
	if err := s.create("bad"); err == nil || !strings.Contains(err.Error(), "the operator refuses it") {
		t.Errorf("an object that the webhook refuses: %v", err)
	}
	got, err := s.client.CoreV1().Services("team").ProxyGet("https", "hook", "443", "readyz", nil).DoRaw(t.Context())
	if err != nil || len(got) > 0 {
		t.Errorf("service proxy: %q, %v", got, err)
	}
	s.logs()
	s.refusesOthers()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.until(nil)
	s.hasEndpoint(false)
	if err := s.create("after"); !apierrors.IsInternalError(err) {
		t.Errorf("the route outlives its program: %v", err)
	}
	s.local(alice, "--port=9443="+strconv.Itoa(hook.port))
	s.until(isReady)
}

// logs checks the options of kubectl logs.
func (s *podServer) logs() {
	s.Helper()
	one, all := int64(1), int64(100)
	for name, test := range map[string]struct {
		options corev1.PodLogOptions
		want    string
	}{
		"tail":   {corev1.PodLogOptions{TailLines: &one, Container: "manager"}, "\n"},
		"all":    {corev1.PodLogOptions{TailLines: &all}, "started\n"},
		"bytes":  {corev1.PodLogOptions{LimitBytes: &one}, ""},
		"stamp":  {corev1.PodLogOptions{Timestamps: true}, "Z started\n"},
		"future": {corev1.PodLogOptions{SinceTime: &metav1.Time{Time: time.Now().Add(time.Hour)}}, ""},
	} {
		got, err := s.client.CoreV1().Pods("team").GetLogs(localPod, &test.options).DoRaw(s.Context())
		if err != nil || !strings.Contains(string(got), test.want) || test.want == "" && len(got) > 1 {
			s.Errorf("%s: %q, %v, want %q", name, got, err, test.want)
		}
	}
	follow, err := s.client.CoreV1().Pods("team").
		GetLogs(localPod, &corev1.PodLogOptions{Follow: true}).Stream(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	defer follow.Close()
	lines := bufio.NewScanner(follow) // the order of two streams is open
	for range 2 {
		if !lines.Scan() {
			s.Errorf("followed: %q, %v", lines.Text(), lines.Err())
		}
	}
}

// refusesOthers checks that the server reaches no other port and runs no command, and that a second program cannot take
// the route over.
func (s *podServer) refusesOthers() {
	s.Helper()
	core := s.client.CoreV1()
	for _, port := range []string{"22", "6443", strconv.Itoa(s.port())} {
		got, err := core.Pods("team").ProxyGet("http", localPod, port, "", nil).DoRaw(s.Context())
		if err == nil || !strings.Contains(string(got), "connection refused") {
			s.Errorf("port %s: %s, %v", port, got, err)
		}
	}
	err := core.RESTClient().Post().Namespace("team").Resource("pods").Name(localPod).SubResource("exec").
		Param("command", "id").Param("stdout", "true").Do(s.Context()).Error()
	if err == nil || !strings.Contains(err.Error(), "runs no commands for the server") {
		s.Errorf("exec: %v", err)
	}
	bob := s.user("bob", mayReadWorkload, mayReadSecret, mayGetToken, mayBePod)
	out, err := command(s.T, "run", "--as-pod=deployment/manager", "--namespace=team", "--kubeconfig="+bob,
		"--mounts=paths", "--", "sh", "-c", "echo started").CombinedOutput()
	if err == nil || strings.Contains(string(out), "started") ||
		!strings.Contains(string(out), "a program of user alice is this pod already") {
		s.Errorf("a second program: %v, %s", err, out)
	}
}

// port returns the port of the server.
func (s *podServer) port() int {
	u, err := url.Parse(s.URL())
	if err != nil {
		s.Fatal(err)
	}
	n, err := strconv.Atoi(u.Port())
	if err != nil {
		s.Fatal(err)
	}
	return n
}

// upgrade sends the request for a route, and returns the refusal, "" if there is none.
func (s *podServer) upgrade(kubeconfig, path, query string) string {
	s.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		s.Fatal(err)
	}
	config.NextProtos = []string{"http/1.1"}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		s.Fatal(err)
	}
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.URL()+path+"?"+query, nil)
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", callback.Protocol)
	response, err := client.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusSwitchingProtocols {
		return ""
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		s.Fatal(err)
	}
	return fmt.Sprintf("%d %s", response.StatusCode, body)
}

// TestRunRouteAttacks tries to get a route without the right, for other workloads, with hostile parameters, and by
// writing objects.
func TestRunRouteAttacks(t *testing.T) {
	t.Parallel()
	s := newPodServer(t, allowLocalPods)
	alice := s.user("alice", mayReadWorkload, mayReadSecret, mayGetToken)
	bob := s.user("bob", namedRule("create", "apps", "deployments/localpod", "manager"))
	const workload = "/apis/apps/v1/namespaces/team/deployments/manager/localpod"
	var many strings.Builder
	for i := range callback.MaxPorts + 1 {
		fmt.Fprintf(&many, "&port=%d", i+1)
	}
	for _, test := range []struct{ name, kubeconfig, path, query, want string }{
		{"no right", alice, workload, "container=manager", `cannot create resource \"deployments/localpod\"`},
		{"another workload", bob, strings.Replace(workload, "manager", "other", 1), "", "403"},
		{"another namespace", bob, strings.Replace(workload, "team", "default", 1), "", "403"},
		{"another kind", bob, strings.Replace(workload, "deployments", "statefulsets", 1), "", "403"},
		{"a kind without it", s.Kubeconfig(), strings.Replace(workload, "deployments", "daemonsets", 1), "", "404"},
		{"a missing workload", s.Kubeconfig(), strings.Replace(workload, "manager", "nosuch", 1), "", "404"},
		{"no container", bob, workload, "", `has no container \"\"`},
		{"another container", bob, workload, "container=nosuch", `has no container \"nosuch\"`},
		{"port 0", bob, workload, "container=manager&port=0", "is not a port"},
		{"port 65536", bob, workload, "container=manager&port=65536", "is not a port"},
		{"port of text", bob, workload, "container=manager&port=127.0.0.1:22", "is not a port"},
		{"many ports", bob, workload, "container=manager" + many.String(), "101 ports are more than 100"},
	} {
		if got := s.upgrade(test.kubeconfig, test.path, test.query); !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
	for route, want := range map[string]string{"auto": "started", "always": "no route to the program: deployments"} {
		out, err := command(t, "run", "--as-pod=deployment/manager", "--namespace=team", "--kubeconfig="+alice,
			"--mounts=paths", "--route="+route, "--", "sh", "-c", "echo started").CombinedOutput()
		if !strings.Contains(string(out), want) || (err == nil) != (route == "auto") {
			t.Errorf("--route=%s without the right: %v, %s", route, err, out)
		}
	}
	s.forge()
}

// forge writes the objects of a route by hand. The server connects to nothing: neither to its own machine nor to
// another program.
func (s *podServer) forge() {
	s.Helper()
	pods := s.client.CoreV1().Pods("team")
	victim, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	defer victim.Close()
	port := victim.Addr().(*net.TCPAddr).Port
	for ip, want := range map[string]string{"198.18.0.1": "connection refused", "127.0.0.1": "not allowed"} {
		name := "forged-" + strings.ReplaceAll(ip, ".", "-")
		pod, err := pods.Create(s.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "manager"},
				Annotations: map[string]string{
					"bowsprit.dev/simulate-ports": fmt.Sprintf("[{port: 9443, local: %d}]", port),
				}},
			Spec: corev1.PodSpec{SchedulerName: "bowsprit-local-pods", Containers: []corev1.Container{{
				Name: "manager", Image: "i", Ports: []corev1.ContainerPort{{ContainerPort: int32(port)}},
			}}},
		}, metav1.CreateOptions{})
		if err != nil {
			s.Fatal(err)
		}
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}}
		if _, err := pods.UpdateStatus(s.Context(), pod, metav1.UpdateOptions{}); err != nil {
			s.Fatal(err)
		}
		for _, to := range []int{9443, port, s.port()} {
			got, err := pods.ProxyGet("http", name, strconv.Itoa(to), "", nil).DoRaw(s.Context())
			if err == nil || !strings.Contains(string(got), want) {
				s.Errorf("%s:%d: %q, %v", ip, to, got, err)
			}
		}
		if got, err := pods.GetLogs(name, &corev1.PodLogOptions{}).DoRaw(s.Context()); err == nil ||
			!strings.Contains(string(got), "has no program at this server") {
			s.Errorf("log of a forged pod: %s, %v", got, err)
		}
	}
}

// TestRunRouteOff checks that a server without the flag has no subresource, so a program runs without a route.
func TestRunRouteOff(t *testing.T) {
	t.Parallel()
	s := newPodServer(t)
	const workload = "/apis/apps/v1/namespaces/team/deployments/manager/localpod"
	if got := s.upgrade(s.Kubeconfig(), workload, "container=manager"); !strings.HasPrefix(got, "404 ") {
		t.Errorf("without the flag: %q", got)
	}
	out, err := command(t, "run", "--as-pod=deployment/manager", "--namespace=team", "--kubeconfig="+s.Kubeconfig(),
		"--mounts=paths", "--", "sh", "-c", "echo started").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "started") || !strings.Contains(string(out), "--allow-local-pods") {
		t.Errorf("%v: %s", err, out)
	}
}

// documented checks that discovery and the OpenAPI documents have the subresource.
func (s *podServer) documented() {
	s.Helper()
	list, err := s.client.Discovery().ServerResourcesForGroupVersion("apps/v1")
	if err != nil {
		s.Fatal(err)
	}
	found := false
	for _, r := range list.APIResources {
		found = found || r.Name == "deployments/localpod" && r.Kind == "Pod" && r.Group == "" && r.Version == "v1" &&
			len(r.Verbs) == 1 && r.Verbs[0] == "create"
	}
	if !found {
		s.Errorf("discovery: %+v", list.APIResources)
	}
	got, err := s.client.Discovery().RESTClient().Get().AbsPath("/openapi/v3/apis/apps/v1").DoRaw(s.Context())
	if err != nil || !strings.Contains(string(got), "deployments/{name}/localpod") {
		s.Errorf("OpenAPI: %v, %d bytes", err, len(got))
	}
	if _, err := s.client.Discovery().OpenAPISchema(); err != nil {
		s.Errorf("OpenAPI v2: %v", err)
	}
}

// TestRunRouteEnds checks that a route ends with its workload: a workload of the same name does not get it.
func TestRunRouteEnds(t *testing.T) {
	t.Parallel()
	s := newPodServer(t, allowLocalPods)
	s.documented()
	bob := s.user("bob", mayReadWorkload, mayReadSecret, mayGetToken, mayBePod)
	s.local(bob)
	s.until(func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning })
	apps := s.client.AppsV1().Deployments("team")
	if err := apps.Delete(s.Context(), "manager", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.until(nil)
	var status runtime.Object
	status, err := s.client.CoreV1().Pods("team").Get(s.Context(), localPod, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("%v, %v", status, err)
	}
}
