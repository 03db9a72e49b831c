package bowsprit_test

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/testserver"
)

// TestAdmissionConfig starts a server with a file for admission plugins: config maps require a quota in their
// namespace, and webhooks receive the credentials of the file.
func TestAdmissionConfig(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	webhooks := func(kubeconfig string) string {
		return "{apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: " +
			kubeconfig + "}"
	}
	config := file("admission.yaml", `
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: MutatingAdmissionWebhook
  configuration: `+webhooks(file("mutating", `users: [{name: "*", user: {token: mutating}}]`))+`
- name: ValidatingAdmissionWebhook
  configuration: `+webhooks(file("validating", `users: [{name: "*", user: {token: validating}}]`))+`
- name: ResourceQuota
  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: ResourceQuotaConfiguration, limitedResources: [{resource: configmaps, matchContains: [configmaps]}]}
`)
	server := testserver.Start(t, func(c *bowsprit.Config) { c.Admission.ConfigFile = config })
	client, err := kubernetes.NewForConfig(server.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	maps := client.CoreV1().ConfigMaps("default")
	one := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	_, err = maps.Create(t.Context(), one, metav1.CreateOptions{})
	if want := `configmaps "one" is forbidden: insufficient quota to consume: configmaps,count/configmaps`; err == nil || err.Error() != want {
		t.Errorf("without a quota: %v", err)
	}
	covering := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{"configmaps": resource.MustParse("9"), "count/configmaps": resource.MustParse("9")},
	}}
	if _, err := client.CoreV1().ResourceQuotas("default").Create(t.Context(), covering,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	counted, err := client.CoreV1().ResourceQuotas("default").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for event := range counted.ResultChan() { // until the controller has counted
		if q, ok := event.Object.(*corev1.ResourceQuota); ok && len(q.Status.Used) == 2 {
			break
		}
	}
	counted.Stop()
	if _, err = maps.Create(ctx, one, metav1.CreateOptions{}); err != nil {
		t.Errorf("with a quota: %v", err)
	}

	var mutating, validating atomic.Value
	hook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/mutating") {
			mutating.Store(r.Header.Get("Authorization"))
		} else {
			validating.Store(r.Header.Get("Authorization"))
		}
		http.Error(w, "no", http.StatusTeapot)
	}))
	defer hook.Close()
	at := func(path string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{
			URL:      ptr.To(hook.URL + path),
			CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw}),
		}
	}
	rules := []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{"CREATE"},
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets"},
		},
	}}
	registrations := client.AdmissionregistrationV1()
	if _, err := registrations.MutatingWebhookConfigurations().Create(t.Context(),
		&admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "m"}, Webhooks: []admissionregistrationv1.MutatingWebhook{{
				Name: "m.example.com", ClientConfig: at("/mutating"), Rules: rules,
				FailurePolicy:           ptr.To(admissionregistrationv1.Ignore),
				SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
				AdmissionReviewVersions: []string{"v1"},
			}},
		}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := registrations.ValidatingWebhookConfigurations().Create(t.Context(),
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "v"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: "v.example.com", ClientConfig: at("/validating"), Rules: rules,
				FailurePolicy:           ptr.To(admissionregistrationv1.Ignore),
				SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
				AdmissionReviewVersions: []string{"v1"},
			}},
		}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Secrets("default").Create(t.Context(),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if m, v := mutating.Load(), validating.Load(); m != "Bearer mutating" || v != "Bearer validating" {
		t.Errorf("the webhooks saw %v and %v", m, v)
	}
}

// TestNodeRestriction checks that a kubelet may only write its own Node, unless the plugin is off.
func TestNodeRestriction(t *testing.T) {
	for _, disabled := range [][]string{nil, {"NodeRestriction"}} {
		server := testserver.Start(t, func(c *bowsprit.Config) { c.Admission.Disabled = disabled })
		config := server.RESTConfig()
		config.Impersonate.UserName, config.Impersonate.Groups = "system:node:n1", []string{"system:nodes"}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		nodes := client.CoreV1().Nodes()
		if _, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}},
			metav1.CreateOptions{}); err != nil {
			t.Errorf("its own: %v", err)
		}
		_, err = nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}},
			metav1.CreateOptions{})
		want := `nodes "n2" is forbidden: node "n1" is not allowed to modify node "n2"`
		if refused := err != nil && err.Error() == want; refused != (disabled == nil) {
			t.Errorf("without %q, another: %v", disabled, err)
		}
	}
}

// TestAdmissionConfigErrors checks that an invalid file ends the start.
func TestAdmissionConfigErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "admission.yaml")
	text := "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n- name: MutatingAdmissionWebhook\n" +
		"  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: /nowhere/kubeconfig}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		file: "/nowhere/kubeconfig: no such file", file + ".nope": "unable to read admission control configuration",
	} {
		server, err := bowsprit.New(bowsprit.Config{
			Ephemeral: true, Admission: bowsprit.AdmissionConfig{ConfigFile: path},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err = server.Run(t.Context()); err == nil ||
			!strings.Contains(err.Error(), "--admission-control-config-file: ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
