package server

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/server/config"
)

// manifestFolders returns the configuration of a server with a folder of manifests for each plugin, and the folders
// by plugin.
func manifestFolders(t *testing.T) (c config.Config, folders map[string]string) {
	t.Helper()
	dir, folders := t.TempDir(), map[string]string{}
	text := "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n"
	for plugin, kind := range map[string]string{
		"MutatingAdmissionWebhook":   "WebhookAdmissionConfiguration",
		"ValidatingAdmissionWebhook": "WebhookAdmissionConfiguration",
		"MutatingAdmissionPolicy":    "MutatingAdmissionPolicyConfiguration",
		"ValidatingAdmissionPolicy":  "ValidatingAdmissionPolicyConfiguration",
	} {
		folders[plugin] = filepath.Join(dir, plugin)
		if err := os.Mkdir(folders[plugin], 0o700); err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf("- {name: %s, configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: %s, "+
			"staticManifestsDir: %q}}\n", plugin, kind, folders[plugin])
	}
	c = config.Config{Ephemeral: true}
	c.Admission.ConfigFile = filepath.Join(dir, "admission.yaml")
	c.API.Features = map[string]bool{"ManifestBasedAdmissionControlConfig": true}
	if err := os.WriteFile(c.Admission.ConfigFile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return c, folders
}

// refuser is a webhook that refuses objects with "refuse" in their names, except in paths that begin with /change. They
// add their path to the annotation "order".
func refuser(t *testing.T) (clientConfig func(path string) string) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
			return
		}
		var obj metav1.PartialObjectMetadata
		if err := json.Unmarshal(review.Request.Object.Raw, &obj); err != nil {
			t.Error(err)
		}
		answer := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		if strings.HasPrefix(r.URL.Path, "/change") {
			patchType := admissionv1.PatchTypeJSONPatch
			answer.PatchType = &patchType
			answer.Patch = fmt.Appendf(nil, `[{"op":"add","path":"/metadata/annotations","value":{"order":"%s%s"}}]`,
				obj.Annotations["order"], r.URL.Path)
		} else if strings.Contains(obj.Name, "refuse") {
			answer.Allowed, answer.Result = false, &metav1.Status{Message: r.URL.Path}
		}
		review.Request, review.Response = nil, answer
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(s.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return func(path string) string {
		text, _ := json.Marshal(map[string]any{"url": s.URL + path, "caBundle": authority})
		return string(text)
	}
}

func webhookManifest(kind, name, clientConfig string) string {
	return fmt.Sprintf(`{"apiVersion": "admissionregistration.k8s.io/v1", "kind": %q, "metadata": {"name": %q},
		"webhooks": [{"name": "one.example.com", "clientConfig": %s, "admissionReviewVersions": ["v1"], "sideEffects": "None",
			"rules": [{"operations": ["CREATE"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["configmaps",
				"validatingwebhookconfigurations", "mutatingwebhookconfigurations"]}]}]}`,
		kind, name, clientConfig)
}

// policyManifests returns a policy with its binding. spec is the middle of the policy's.
func policyManifests(kind, name, spec, action string) (policy, binding string) {
	policy = fmt.Sprintf(`{"apiVersion": "admissionregistration.k8s.io/v1", "kind": %q, "metadata": {"name": %q}, "spec": {
		"matchConstraints": {"resourceRules": [{"operations": ["CREATE"], "apiGroups": ["*"], "apiVersions": ["*"],
			"resources": ["*"]}]}, %s}}`, kind, name, spec)
	binding = fmt.Sprintf(`{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "%sBinding", "metadata": {"name": %q},
		"spec": {"policyName": %q %s}}`, kind, name, name, action)
	return policy, binding
}

func validatingPolicy(name string) (policy, binding string) {
	return policyManifests("ValidatingAdmissionPolicy", name,
		`"validations": [{"expression": "!object.metadata.name.contains('deny')"}]`, `, "validationActions": ["Deny"]`)
}

func mutatingPolicy(name, text string) (policy, binding string) {
	return policyManifests("MutatingAdmissionPolicy", name, `"reinvocationPolicy": "Never",
		"matchConditions": [{"name": "maps", "expression": "request.resource.resource == 'configmaps'"}],
		"mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression":
			"Object{metadata: Object.metadata{annotations: {'order': object.metadata.?annotations['order'].orValue('') + '`+text+`'}}}"}}]`,
		"")
}

// TestManifests checks the order of webhooks and policies in files and in the API, and the kinds to which only the ones
// in files apply.
func TestManifests(t *testing.T) {
	c, folders := manifestFolders(t)
	at := refuser(t)
	put := func(plugin string, objects ...string) {
		t.Helper()
		for i, text := range objects {
			file := filepath.Join(folders[plugin], fmt.Sprintf("%d.json", i))
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	pair := func(policy, binding string) []string { return []string{policy, binding} }
	put("MutatingAdmissionWebhook",
		webhookManifest("MutatingWebhookConfiguration", "z.static.k8s.io", at("/change/file")))
	put("ValidatingAdmissionWebhook",
		webhookManifest("ValidatingWebhookConfiguration", "z.static.k8s.io", at("/file")))
	put("ValidatingAdmissionPolicy", pair(validatingPolicy("z.static.k8s.io"))...)
	put("MutatingAdmissionPolicy", pair(mutatingPolicy("z.static.k8s.io", "file"))...)
	client, _ := runServer(t, c)

	const group = "/apis/admissionregistration.k8s.io/v1/"
	for plural, objects := range map[string][]string{
		"mutatingwebhookconfigurations": {webhookManifest("MutatingWebhookConfiguration", "a", at("/change/api"))},
		"validatingwebhookconfigurations": {
			webhookManifest("ValidatingWebhookConfiguration", "a", at("/api")),
		},
		"validatingadmissionpolicies": pair(validatingPolicy("a")),
		"mutatingadmissionpolicies":   pair(mutatingPolicy("a", ",api")),
	} {
		client.do("POST", group+plural, objects[0], http.StatusCreated)
		if len(objects) > 1 {
			bindings := strings.Replace(plural, "policies", "policybindings", 1)
			client.do("POST", group+bindings, objects[1], http.StatusCreated)
		}
	}
	create := func(path, name string, want int) map[string]any {
		t.Helper()
		return client.do("POST", path, fmt.Sprintf(`{"metadata": {"name": %q}}`, name), want)
	}
	const maps = "/api/v1/namespaces/default/configmaps"
	annotations := create(maps, "one", http.StatusCreated)["metadata"].(map[string]any)["annotations"].(map[string]any)
	if order := annotations["order"]; order != "file,api/change/file/change/api" {
		t.Errorf("changed in the order %s", order)
	}
	for _, test := range []struct {
		path, name string
		want       string // "" if the write succeeds
	}{
		{maps, "refuse", `admission webhook "one.example.com" denied the request: /file`},
		{maps, "deny", "ValidatingAdmissionPolicy 'z.static.k8s.io' with binding 'z.static.k8s.io' denied request"},
		{group + "validatingwebhookconfigurations", "refuse", "denied the request: /file"},
		{group + "mutatingwebhookconfigurations", "deny", "ValidatingAdmissionPolicy 'z.static.k8s.io'"},
	} {
		code := http.StatusUnprocessableEntity
		if test.name == "refuse" {
			code = http.StatusBadRequest
		}
		if text, _ := create(test.path, test.name, code)["message"].(string); !strings.Contains(text, test.want) {
			t.Errorf("%s %s: %s", test.path, test.name, text)
		}
	}
	deny, _ := validatingPolicy("deny")
	answer := client.do("POST", group+"validatingadmissionpolicies", deny, http.StatusUnprocessableEntity)
	if text, _ := answer["message"].(string); !strings.Contains(text, "'z.static.k8s.io' with binding") {
		t.Errorf("a policy: %s", text)
	}
	client.do("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews",
		`{"spec": {"user": "a", "nonResourceAttributes": {"path": "/", "verb": "get"}}}`,
		http.StatusCreated)
	metrics := client.text("/metrics")
	for plugin := range folders {
		if !strings.Contains(metrics, `plugin="`+plugin+`",status="success"} 1`) {
			t.Errorf("no metrics of %s", plugin)
		}
	}
}

// TestReservedNames checks that no client can create an object with the name of a manifest.
func TestReservedNames(t *testing.T) {
	c, _ := manifestFolders(t)
	client, _ := runServer(t, c)
	policy, _ := validatingPolicy("a.static.k8s.io")
	const path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
	answer := client.do("POST", path, policy, http.StatusUnprocessableEntity)
	want := `ValidatingAdmissionPolicy.admissionregistration.k8s.io "a.static.k8s.io" is invalid: metadata.name: Invalid value: "a.static.k8s.io": names ending with ".static.k8s.io" are reserved for static manifest-based configurations and cannot be managed via the API`
	if answer["message"] != want {
		t.Errorf("%v", answer["message"])
	}
}

// TestManifestsRefused checks that a server with invalid manifests does not start.
func TestManifestsRefused(t *testing.T) {
	start := func(c config.Config) string {
		t.Helper()
		server, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		if err = server.Run(t.Context()); err == nil {
			t.Fatal("the server has started")
		}
		return err.Error()
	}
	c, folders := manifestFolders(t)
	file := filepath.Join(folders["ValidatingAdmissionPolicy"], "a.yaml")
	if err := os.WriteFile(file, []byte("kind: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("--admission-control-config-file: failed to load static policy manifests from %q: "+
		"error loading %s: ", folders["ValidatingAdmissionPolicy"], file)
	if text := start(c); !strings.HasPrefix(text, want) {
		t.Errorf("an invalid file: %s", text)
	}
	c.API.Features["ManifestBasedAdmissionControlConfig"] = false
	if text := start(c); !strings.Contains(text, "staticManifestsDir: Forbidden: ") {
		t.Errorf("without the feature: %s", text)
	}
}
