package konnectivity

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/internal/testing/authority"
	"github.com/bowsprit/bowsprit/testserver"
)

// backend is a server in the cluster: a webhook and an aggregated API.
type backend struct {
	ca       []byte
	port     int32
	requests atomic.Int64 // the webhook
	lists    atomic.Int64 // the API
}

func startBackend(t *testing.T) *backend {
	t.Helper()
	a := authority.New(t)
	b := &backend{ca: a.CA}
	mux := http.NewServeMux()
	mux.HandleFunc("/admit", func(w http.ResponseWriter, r *http.Request) {
		b.requests.Add(1)
		var review admissionv1.AdmissionReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		_ = json.NewEncoder(w).Encode(review)
	})
	mux.HandleFunc("/apis/example.com/v1", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"example.com/v1","resources":[
			{"name":"things","singularName":"thing","namespaced":false,"kind":"Thing","verbs":["list"]}]}`)
	})
	mux.HandleFunc("/apis/example.com/v1/things", func(w http.ResponseWriter, _ *http.Request) {
		b.lists.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"kind":"ThingList","apiVersion":"example.com/v1","metadata":{},"items":[]}`)
	})
	s := httptest.NewUnstartedServer(mux)
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{a.Pair(t, "backend.default.svc")}}
	s.StartTLS()
	t.Cleanup(s.Close)
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	n, _ := strconv.Atoi(port)
	b.port = int32(n)
	return b
}

// register creates the webhook and the APIService of the backend, by a service name that only the agent can resolve.
func (b *backend) register(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	ctx := t.Context()
	_, err := client.CoreV1().Services("default").Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "backend"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeExternalName, ExternalName: "localhost",
			Ports: []corev1.ServicePort{{Port: b.port, TargetPort: intstr.FromInt32(b.port)}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	none, path, fail := admissionregistrationv1.SideEffectClassNone, "/admit", admissionregistrationv1.Fail
	_, err = client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx,
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "backend"},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: "backend.example.com", SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
				FailurePolicy: &fail,
				ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: b.ca,
					Service: &admissionregistrationv1.ServiceReference{
						Namespace: "default", Name: "backend", Path: &path, Port: &b.port,
					}},
				NamespaceSelector: &metav1.LabelSelector{
					MatchLabels: map[string]string{"kubernetes.io/metadata.name": "default"},
				},
				Rules: []admissionregistrationv1.RuleWithOperations{{
					Operations: []admissionregistrationv1.OperationType{"CREATE"},
					Rule: admissionregistrationv1.Rule{
						APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"},
					},
				}},
			}},
		}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": "v1.example.com"},
		"spec": map[string]any{
			"group": "example.com", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 10,
			"caBundle": b.ca, "service": map[string]any{"namespace": "default", "name": "backend", "port": b.port},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	err = client.CoreV1().RESTClient().Post().AbsPath("/apis/apiregistration.k8s.io/v1/apiservices").
		SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Error()
	if err != nil {
		t.Fatal(err)
	}
}

// startAPI starts an API server that reaches its cluster through the site. The site's agents authenticate with tokens.
func startAPI(t *testing.T, s *site) *kubernetes.Clientset {
	t.Helper()
	api := testserver.Start(t, func(c *bowsprit.Config) { c.Egress.ConfigFile = s.config })
	config := api.RESTConfig()
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	accounts := client.CoreV1().ServiceAccounts(namespace)
	of := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}
	if _, err := accounts.Create(t.Context(), of, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token, err := accounts.CreateToken(t.Context(), account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.token, s.kubeconfig = filepath.Join(t.TempDir(), "token"), api.Kubeconfig()
	if err := os.WriteFile(s.token, []byte(token.Status.Token), 0o600); err != nil {
		t.Fatal(err)
	}
	return client
}

// TestAPIServer reaches a webhook and an aggregated API through all pairs. Their agents authenticate with tokens of a
// service account, and an agent is replaced while eight clients write.
func TestAPIServer(t *testing.T) {
	for _, pair := range pairs {
		t.Run(pair.name, func(t *testing.T) {
			s := newSite(t)
			client, b := startAPI(t, s), startBackend(t)
			b.register(t, client)
			pair.server(t, s)
			stop := pair.agent(t, s)
			create := func(ctx context.Context) error {
				ctx, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				_, err := client.CoreV1().ConfigMaps("default").Create(ctx,
					&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "c-"}}, metav1.CreateOptions{})
				return err
			}
			list := func() error {
				return client.CoreV1().RESTClient().Get().AbsPath("/apis/example.com/v1/things").Do(t.Context()).Error()
			}
			within(t, func() error { return create(t.Context()) })
			within(t, list)
			if b.requests.Load() == 0 || b.lists.Load() == 0 {
				t.Errorf("the backend was asked %d times, and listed %d times", b.requests.Load(), b.lists.Load())
			}
			var all sync.WaitGroup
			var good, bad atomic.Int64
			ctx, end := context.WithCancel(t.Context())
			for range 8 {
				all.Go(func() {
					for ctx.Err() == nil {
						if err := create(ctx); err == nil {
							good.Add(1)
						} else if ctx.Err() == nil {
							bad.Add(1)
						}
					}
				})
			}
			more := func(n int64) {
				want := good.Load() + n
				within(t, func() error {
					if got := good.Load(); got < want {
						return fmt.Errorf("%d writes of %d", got, want)
					}
					return nil
				})
			}
			more(50)
			stop()
			pair.agent(t, s)
			more(50)
			end()
			all.Wait()
			t.Logf("%d writes, %d errors while the agent was replaced", good.Load(), bad.Load())
		})
	}
}
