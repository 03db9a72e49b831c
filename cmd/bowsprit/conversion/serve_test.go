package conversion

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/auth/pki"
)

// webhook serves the definitions of a file.
func webhook(t *testing.T, file string) *httptest.Server {
	t.Helper()
	_, all, err := load([]string{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	r, err := newReviewer(all, registry)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(r.handler(registry))
	t.Cleanup(s.Close)
	return s
}

// read returns the status and the body of a response.
func read(t *testing.T, resp *http.Response, err error) (int, string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// request returns a review in the form of kube-apiserver's requests.
func request(version, to, objects string) string {
	return `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/` + version + `","request":{"uid":"u-1",` +
		`"desiredAPIVersion":"` + to + `","objects":[` + objects + `]},` +
		`"response":{"uid":"","convertedObjects":null,"result":{"metadata":{}}}}`
}

// TestReviews sends reviews, and compares the whole response.
func TestReviews(t *testing.T) {
	t.Parallel()
	s := webhook(t, "testdata/good.yaml")
	const (
		thing = `{"apiVersion":"example.com/v1","bucket":"a","kind":"Thing","metadata":{"generation":1,"name":"one","uid":"u"}}`
		more  = `{"apiVersion":"example.com/v2","kind":"Thing","metadata":{"name":"two"},"buckets":["a","b"],"undeclared":1}`
	)
	failure := func(message string) string {
		return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":{"convertedObjects":null,` +
			`"result":{"message":"` + message + `","status":"Failure"},"uid":"u-1"}}`
	}
	for _, test := range []struct {
		name, body string
		status     int
		want       string
	}{
		{"one", request("v1", "example.com/v2", thing), 200, `{"apiVersion":"apiextensions.k8s.io/v1",` +
			`"kind":"ConversionReview","response":{"convertedObjects":[{"apiVersion":"example.com/v2","buckets":["a"],` +
			`"kind":"Thing","metadata":{"generation":1,"name":"one","uid":"u"}}],"result":{"status":"Success"},"uid":"u-1"}}`},
		{"the former version of reviews", request("v1beta1", "example.com/v1", more), 200,
			`{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"ConversionReview","response":{"convertedObjects":[` +
				`{"apiVersion":"example.com/v1","bucket":"a","kind":"Thing","metadata":{"annotations":{` +
				`"bowsprit.dev/conversion-stash":"{\"v2\":{\"buckets\":[[\"a\",\"b\"]]}}"},"name":"two"}}],` +
				`"result":{"status":"Success"},"uid":"u-1"}}`},
		{"mixed", request("v1", "example.com/v1", thing+","+thing), 200, `{"apiVersion":"apiextensions.k8s.io/v1",` +
			`"kind":"ConversionReview","response":{"convertedObjects":[` + thing + "," + thing +
			`],"result":{"status":"Success"},"uid":"u-1"}}`},
		{"none", request("v1", "example.com/v2", ""), 200, `{"apiVersion":"apiextensions.k8s.io/v1",` +
			`"kind":"ConversionReview","response":{"convertedObjects":[],"result":{"status":"Success"},"uid":"u-1"}}`},
		{"another version", request("v1", "example.com/v3", thing), 200,
			failure("things.example.com one: the definition has no conversion from v1 to v3")},
		{"another group", request("v1", "other.com/v2", thing), 200,
			failure("no rules convert Thing of example.com/v1 to other.com/v2")},
		{"another kind", request("v1", "example.com/v2", `{"apiVersion":"example.com/v1","kind":"Other"}`), 200,
			failure("no rules convert Other of example.com/v1 to example.com/v2")},
		{"no object", request("v1", "example.com/v2", `1`), 200, failure("is not an object")},
		{"no review", `{"kind":"Pod"}`, 400, errNoReview.Error() + "\n"},
		{"no request", `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1"}`, 400, errNoReview.Error() + "\n"},
		{"another review", request("v2", "example.com/v2", thing), 400, errNoReview.Error() + "\n"},
	} {
		resp, err := http.Post(s.URL+"/convert", "application/json", strings.NewReader(test.body))
		if status, body := read(t, resp, err); status != test.status || body != test.want {
			t.Errorf("%s: %d\n%s\nwant %d\n%s", test.name, status, body, test.status, test.want)
		}
	}
	for path, want := range map[string]string{
		"/healthz": "ok", "/livez": "ok", "/readyz": "ok",
		"/metrics": `bowsprit_convert_objects_total{crd_name="things.example.com",from_version="v1",succeeded="false",` +
			`to_version="other"} 1`,
	} {
		resp, err := http.Get(s.URL + path)
		if status, body := read(t, resp, err); status != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s, want %s", path, status, body, want)
		}
	}
}

// TestServeRefuses checks the errors before the webhook listens.
func TestServeRefuses(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	if err := os.WriteFile(filepath.Join(empty, "tls.crt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"testdata/none.yaml"}, "no CustomResourceDefinition with the annotation"},
		{[]string{"testdata/good.yaml", "testdata/good.yaml"}, "define the same kind: remove one"},
		{[]string{"testdata/good.yaml", "--cert-dir", empty}, "--cert-dir: "},
		{[]string{"testdata/good.yaml", "--address", "nowhere"}, "--address: "},
		{[]string{"testdata/good.yaml", "--manifests"}, "--image: name an image"},
		{[]string{"testdata/good.yaml", "--manifests", "--image=i", "--name=A"}, "--name: "},
		{[]string{"testdata/good.yaml", "--manifests", "--image=i", "--replicas=0"}, "--replicas: 0 is less than 1"},
	} {
		if _, fail := run(t, append([]string{"serve"}, test.args...)...); !strings.Contains(fail, test.want) {
			t.Errorf("%v: %s, want %s", test.args, fail, test.want)
		}
	}
}

// TestCertificate checks that handshakes use the files as they are, and the former pair while they are unusable.
func TestCertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := &certificate{dir: dir}
	if _, err := c.current(nil); err == nil {
		t.Error("a certificate without files")
	}
	issue := func(at time.Time) {
		t.Helper()
		if err := pki.WriteServing(filepath.Join(dir, "tls"), nil, time.Now()); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Join(dir, "tls.key"), at, at); err != nil {
			t.Fatal(err)
		}
	}
	current := func() *tls.Certificate {
		t.Helper()
		pair, err := c.current(nil)
		if err != nil {
			t.Fatal(err)
		}
		return pair
	}
	now := time.Now()
	issue(now.Add(time.Hour))
	one := current()
	if again := current(); again != one {
		t.Error("unchanged files were read again")
	}
	issue(now.Add(2 * time.Hour))
	two := current()
	if bytes.Equal(one.Certificate[0], two.Certificate[0]) {
		t.Error("the former certificate is in use")
	}
	if err := os.WriteFile(filepath.Join(dir, "tls.crt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(dir, "tls.crt"), now.Add(3*time.Hour), now.Add(3*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if current() != two {
		t.Error("unusable files replace the certificate")
	}
}

// TestManifests decodes the printed objects strictly.
func TestManifests(t *testing.T) {
	t.Parallel()
	out, fail := run(t, "serve", "testdata/good.yaml", "--manifests", "--image", "registry.example.com/bowsprit:1",
		"--namespace", "tools")
	if fail != "" {
		t.Fatal(fail)
	}
	documents := strings.Split(out, "\n---\n")
	if len(documents) != 6 {
		t.Fatalf("%d documents:\n%s", len(documents), out)
	}
	var namespace corev1.Namespace
	var secret corev1.Secret
	var definitions corev1.ConfigMap
	var deployment appsv1.Deployment
	var service corev1.Service
	var def apiextensionsv1.CustomResourceDefinition
	for i, into := range []any{&namespace, &secret, &definitions, &deployment, &service, &def} {
		if err := yaml.UnmarshalStrict([]byte(documents[i]), into); err != nil {
			t.Fatalf("%v\n%s", err, documents[i])
		}
	}
	if _, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"]); err != nil {
		t.Error(err)
	}
	hook := def.Spec.Conversion.Webhook
	authority, _ := pem.Decode(hook.ClientConfig.CABundle)
	if authority == nil || !bytes.Contains(secret.Data["tls.crt"], pem.EncodeToMemory(authority)) {
		t.Errorf("caBundle: %s", hook.ClientConfig.CABundle)
	}
	to := hook.ClientConfig.Service
	if to.Name != service.Name || to.Namespace != service.Namespace || *to.Path != "/convert" {
		t.Errorf("service %v, %s in %s", to, service.Name, service.Namespace)
	}
	if deployment.Spec.Template.Labels["app"] != service.Spec.Selector["app"] {
		t.Error("the service selects other pods")
	}
	file := filepath.Join(t.TempDir(), "definitions.yaml")
	if err := os.WriteFile(file, definitions.BinaryData["definitions.yaml"], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, all, err := load([]string{file}, nil); err != nil || len(all) != 1 || all[0].err != nil {
		t.Errorf("the definitions of the ConfigMap: %v, %v", all, err)
	}
}
