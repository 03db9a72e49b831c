package testserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/bowsprit/bowsprit/testserver"
)

// serveWebhooks serves a webhook that refuses every object, until the test ends.
func serveWebhooks(t testing.TB, hooks *testserver.Webhooks) {
	t.Helper()
	server := &http.Server{
		Addr: net.JoinHostPort(hooks.Host, strconv.Itoa(hooks.Port)),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var review struct {
				Request struct {
					UID string `json:"uid"`
				} `json:"request"`
			}
			if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
				t.Error(err)
			}
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(map[string]any{
				"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": map[string]any{
					"uid": review.Request.UID, "allowed": false,
					"status": map[string]any{"message": "refused at " + r.URL.Path}}})
		}),
	}
	ended := make(chan error, 1)
	go func() {
		ended <- server.ListenAndServeTLS(filepath.Join(hooks.CertDir, "tls.crt"),
			filepath.Join(hooks.CertDir, "tls.key"))
	}()
	t.Cleanup(func() {
		server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}

func TestWebhooks(t *testing.T) {
	t.Parallel()
	server := testserver.Start(t)
	hooks, err := server.Webhooks()
	if err != nil {
		t.Fatal(err)
	}
	if err := hooks.Install(t.Context(), operatorCRDs, operatorWebhooks); err != nil {
		t.Fatal(err)
	}
	serveWebhooks(t, hooks)
	if err := hooks.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(server.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Resource(backups).Namespace("default").Create(t.Context(), backup("nightly"),
		metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "refused at /validate-backups") {
		t.Errorf("the webhook was not called: %v", err)
	}
	if err := server.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(hooks.CertDir); err == nil {
		t.Errorf("the stopped server has left %s", hooks.CertDir)
	}
}

// TestWebhooksOfDefinition checks that the conversion webhook of a definition gets the address, and a URL stays.
func TestWebhooksOfDefinition(t *testing.T) {
	t.Parallel()
	server := testserver.Start(t)
	hooks, err := server.Webhooks()
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(server.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	own := "https://" + net.JoinHostPort(hooks.Host, strconv.Itoa(hooks.Port))
	for given, want := range map[string]string{
		"service: {name: webhook-service, namespace: system, path: /convert}": own + "/convert",
		"service: {name: webhook-service, namespace: system}":                 own,
		"url: https://elsewhere.example.com/convert":                          "https://elsewhere.example.com/convert",
	} {
		text, err := os.ReadFile(filepath.Join(operatorCRDs, "backups.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "crd.yaml")
		text = append(text, "  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {"+
			given+"}}}\n"...)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := hooks.Install(t.Context(), file); err != nil {
			t.Fatal(err)
		}
		crd, err := client.Resource(definitions).Get(t.Context(), "backups.example.com", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got, _, _ := unstructured.NestedString(crd.Object, "spec", "conversion", "webhook", "clientConfig", "url")
		if got != want {
			t.Errorf("%s: url %q, want %q", given, got, want)
		}
	}
}

func TestWebhookErrors(t *testing.T) {
	t.Parallel()
	server := testserver.Start(t)
	hooks, err := server.Webhooks()
	if err != nil {
		t.Fatal(err)
	}
	if err := hooks.Install(t.Context(), operatorObjects); err == nil ||
		!strings.Contains(err.Error(), "no webhook configuration") {
		t.Errorf("files without webhooks: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := hooks.Wait(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "CertDir") {
		t.Errorf("nobody serves, but Wait returns %v", err)
	}
}

func backup(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Backup", "metadata": map[string]any{"name": name},
	}}
}
