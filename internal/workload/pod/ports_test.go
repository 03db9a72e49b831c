package pod_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/httpstream" //lint:ignore SA1019 client-go's portforward takes its Dialer
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/internal/testing/authority"
	"github.com/bowsprit/bowsprit/internal/testing/controltest"
	"github.com/bowsprit/bowsprit/testserver"
)

var (
	services  = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	endpoints = schema.GroupVersionResource{Version: "v1", Resource: "endpoints"}
)

// site is a server with one simulated node and a client for proxies.
type site struct {
	*controltest.Cluster
	rest rest.Interface
	http *http.Client
}

func start(t *testing.T, localPorts ...string) *site {
	t.Helper()
	c := controltest.Start(t, testserver.WithWorkloads("nodes=1"), func(c *bowsprit.Config) {
		c.Workloads.LocalPorts = localPorts
	})
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	direct, err := rest.HTTPClientFor(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	return &site{c, client.CoreV1().RESTClient(), direct}
}

// pod creates a pod with the annotation, and waits until it runs.
func (s *site) pod(name, annotation string) {
	s.Helper()
	pod := controltest.Object("v1", "Pod", "default", name)
	pod.SetLabels(map[string]string{"app": name})
	if annotation != "" {
		pod.SetAnnotations(map[string]string{"bowsprit.dev/simulate-ports": annotation})
	}
	pod.Object["spec"] = map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i", "ports": []any{
		map[string]any{"name": "http", "containerPort": int64(8080)},
	}}}}
	s.Create(controltest.Pods, pod)
	s.When(controltest.Pods, "default", "the pod runs", func(all map[string]*unstructured.Unstructured) bool {
		if all[name] == nil {
			return false
		}
		phase, _, _ := unstructured.NestedString(all[name].Object, "status", "phase")
		return phase == "Running"
	})
}

// service creates a service of a pod, and waits until its endpoints are ready.
func (s *site) service(name, targetPort string) {
	s.Helper()
	service := controltest.Object("v1", "Service", "default", name)
	service.Object["spec"] = map[string]any{"selector": map[string]any{"app": name}, "ports": []any{
		map[string]any{"port": int64(443), "targetPort": targetPort},
	}}
	s.Create(services, service)
	s.When(endpoints, "default", "the pod behind it", func(all map[string]*unstructured.Unstructured) bool {
		if all[name] == nil {
			return false
		}
		subsets, _, _ := unstructured.NestedSlice(all[name].Object, "subsets")
		return len(subsets) == 1 && subsets[0].(map[string]any)["addresses"] != nil
	})
}

// get returns the status and the body of a proxied request.
func (s *site) get(path string) string {
	s.Helper()
	resp, err := s.http.Get(s.Config.Host + "/api/v1/namespaces/default/" + path)
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.Fatal(err)
	}
	return fmt.Sprintf("%d %s", resp.StatusCode, bytes.TrimSpace(body))
}

const responses = `
- port: http
  responses:
  - path: /api/version
    contentType: application/json
    body: '{"version": "4"}'
  - path: /jobs/...
    status: 202
    body: accepted
- port: 9090
`

// TestResponses reads fixed responses through proxies to the pod and its service.
func TestResponses(t *testing.T) {
	s := start(t)
	s.pod("web", responses)
	s.service("web", "http")
	for path, want := range map[string]string{
		"pods/web:8080/proxy/api/version": `200 {"version": "4"}`,
		"pods/web/proxy/api/version?a=b":  `200 {"version": "4"}`,
		"services/web:443/proxy/jobs/a/b": "202 accepted",
		"pods/web:9090/proxy/any":         "200 ",
		"pods/web:8080/proxy/nothing": "404 GET /nothing is not among the simulated responses of port 8080 " +
			"(annotation bowsprit.dev/simulate-ports of pod web)",
	} {
		if got := s.get(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	if got := s.get("pods/web:81/proxy/"); !strings.Contains(got, "connection refused") {
		t.Errorf("a port without an entry: %s", got)
	}
}

// TestResponsesFollow checks that a kept connection follows the annotation, and ends with the pod.
func TestResponsesFollow(t *testing.T) {
	s := start(t)
	s.pod("web", "[{port: 80, responses: [{body: first}]}]")
	if got := s.get("pods/web:80/proxy/"); got != "200 first" {
		t.Fatal(got)
	}
	pod, err := s.In(controltest.Pods, "default").Patch(t.Context(), "web", "application/merge-patch+json",
		[]byte(`{"metadata":{"annotations":{"bowsprit.dev/simulate-ports":`+
			`"[{port: 80, responses: [{body: second}]}]"}}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.get("pods/web:80/proxy/"); got != "200 second" {
		t.Error(got)
	}
	s.Delete(controltest.Pods, pod, "")
	s.When(controltest.Pods, "default", "the pod is gone", func(all map[string]*unstructured.Unstructured) bool {
		return all["web"] == nil
	})
	if got := s.get("pods/web:80/proxy/"); !strings.Contains(got, "not found") {
		t.Error(got)
	}
}

// TestMalformed checks the error of a malformed annotation.
func TestMalformed(t *testing.T) {
	s := start(t)
	s.pod("web", "[{port: 80, file: /etc/passwd}]")
	got := s.get("pods/web:80/proxy/")
	if !strings.Contains(got, `annotation bowsprit.dev/simulate-ports of pod web: is no list of ports with port, local `+
		`and responses: json: unknown field \"file\"`) {
		t.Error(got)
	}
}

// forward starts a port-forward to a pod, and returns the local address of its port.
func (s *site) forward(pod string, port int, dialer func(*url.URL) httpstream.Dialer) (address string) {
	s.Helper()
	at := s.rest.Post().Resource("pods").Namespace("default").Name(pod).SubResource("portforward").URL()
	ready := make(chan struct{})
	ctx, cancel := context.WithCancel(s.Context())
	f, err := portforward.NewOnAddresses(dialer(at), []string{"127.0.0.1"}, []string{"0:" + strconv.Itoa(port)},
		ctx.Done(), ready, io.Discard, io.Discard)
	if err != nil {
		s.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- f.ForwardPorts() }()
	s.Cleanup(func() { cancel(); <-ended })
	select {
	case <-ready:
	case err := <-ended:
		ended <- err
		s.Fatal(err)
	}
	ports, err := f.GetPorts()
	if err != nil {
		s.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(ports[0].Local)))
}

// dialers returns the ways of client libraries.
func (s *site) dialers() map[string]func(*url.URL) httpstream.Dialer {
	return map[string]func(*url.URL) httpstream.Dialer{
		"SPDY": func(at *url.URL) httpstream.Dialer {
			transport, upgrader, err := spdy.RoundTripperFor(s.Config)
			if err != nil {
				s.Fatal(err)
			}
			return spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, at)
		},
		"WebSocket": func(at *url.URL) httpstream.Dialer {
			d, err := portforward.NewSPDYOverWebsocketDialer(at, s.Config)
			if err != nil {
				s.Fatal(err)
			}
			return d
		},
	}
}

// TestForward forwards a port with many connections, and one that nothing stands for.
func TestForward(t *testing.T) {
	s := start(t)
	s.pod("web", responses)
	for name, dialer := range s.dialers() {
		address := s.forward("web", 8080, dialer)
		for range 20 {
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			resp, err := client.Get("http://" + address + "/api/version")
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || string(body) != `{"version": "4"}` {
				t.Errorf("%s: %q %v", name, body, err)
			}
		}
	}
	address := s.forward("web", 81, s.dialers()["SPDY"])
	if resp, err := http.Get("http://" + address + "/"); err == nil {
		resp.Body.Close()
		t.Errorf("a port that nothing stands for: %s", resp.Status)
	}
}

// port returns the port of a server.
func port(s *httptest.Server) string {
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	return port
}

// TestLocal checks that a listed local port stands for the port of a pod, and that no other does.
func TestLocal(t *testing.T) {
	local := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "local %s", r.URL.Path)
	}))
	defer local.Close()
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	s := start(t, port(local))
	s.pod("listed", fmt.Sprintf("[{port: http, local: %s}]", port(local)))
	s.pod("other", fmt.Sprintf("[{port: http, local: %s}]", port(other)))
	server, err := url.Parse(s.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	s.pod("server", fmt.Sprintf("[{port: http, local: %s}]", server.Port()))
	if got := s.get("pods/listed/proxy/a/b"); got != "200 local /a/b" {
		t.Error(got)
	}
	address := s.forward("listed", 8080, s.dialers()["WebSocket"])
	resp, err := http.Get("http://" + address + "/c")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if string(body) != "local /c" {
		t.Errorf("forwarded: %q", body)
	}
	for pod, want := range map[string]string{
		"other": "port 8080 of pod other: local port " + port(other) + " is not allowed: the administrator lists such " +
			"ports with --simulate-local-ports",
		"server": "port 8080 of pod server: local port " + server.Port() + " is the port of this server",
	} {
		if got := s.get("pods/" + pod + "/proxy/"); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", pod, got, want)
		}
	}
	local.Close()
	got := s.get("pods/listed/proxy/")
	if !strings.Contains(got, "port 8080 of pod listed stands for a local port: dial tcp") {
		t.Errorf("no program listens: %s", got)
	}
}

// TestWebhook calls a webhook at the service of a simulated pod, which a local port stands for: the manifest has the
// service, the selector and the port that it has in a cluster.
func TestWebhook(t *testing.T) {
	ca := authority.New(t)
	hook := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review struct {
			Request struct {
				UID string `json:"uid"`
			} `json:"request"`
		}
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		fmt.Fprintf(w, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%q,`+
			`"allowed":false,"status":{"message":"not today"}}}`, review.Request.UID)
	}))
	hook.TLS = &tls.Config{Certificates: []tls.Certificate{ca.Pair(t, "hook.default.svc")}}
	hook.StartTLS()
	defer hook.Close()
	s := start(t, port(hook))
	s.pod("hook", fmt.Sprintf("[{port: http, local: %s}]", port(hook)))
	s.service("hook", "http")
	configuration := controltest.Object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "hook")
	configuration.Object["webhooks"] = []any{map[string]any{
		"name": "hook.example.com", "sideEffects": "None", "admissionReviewVersions": []any{"v1"},
		"clientConfig": map[string]any{
			"caBundle": base64.StdEncoding.EncodeToString(ca.CA),
			"service":  map[string]any{"namespace": "default", "name": "hook", "path": "/validate"},
		},
		"rules": []any{map[string]any{
			"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"CREATE"},
			"resources": []any{"secrets"},
		}},
	}}
	s.Create(configurations, configuration)
	_, err := s.In(controltest.Secrets, "default").
		Create(t.Context(), controltest.Object("v1", "Secret", "default", "a"), metav1.CreateOptions{})
	want := `admission webhook "hook.example.com" denied the request: not today`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
}

var configurations = schema.GroupVersionResource{
	Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations",
}
