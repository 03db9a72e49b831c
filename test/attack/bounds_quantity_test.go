package attack

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ask returns the response to a request.
func (c client) ask(t *testing.T, method, path, contentType, body string) (code int, status metav1.Status) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, c.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	_ = json.Unmarshal(data, &status) // an object has other fields
	return answer.StatusCode, status
}

// TestQuantities sends quantities that the library of Kubernetes computes with for seconds to years, in every form in
// which a quantity enters the server. Each is refused by its field.
func TestQuantities(t *testing.T) {
	t.Parallel()
	admin := as(t, victim(t), "")
	const core = "/api/v1/namespaces/default/"
	const object = "application/json"
	admin.send(t.Context(), http.MethodPost, core+"persistentvolumeclaims", object, claim("target", "1Gi"))
	for _, text := range []string{
		"1e-1000000000", "1e1000000000", "0e1000000000", "-1e-2147483648", strings.Repeat("7", 400_000),
		"1" + strings.Repeat("0", 200_000), "12345678901234567890e1000000",
	} {
		for _, c := range []struct{ method, path, contentType, body, field string }{
			{"POST", core + "persistentvolumeclaims", object, claim("x", text), "spec.resources.requests[storage]"},
			{"POST", core + "persistentvolumeclaims", "application/yaml", claim("x", text),
				"spec.resources.requests[storage]"},
			{"POST", core + "persistentvolumeclaims?fieldValidation=Strict", object,
				strings.Replace(claim("x", text), `"spec"`, `"unknown":1,"spec"`, 1), "spec.resources.requests[storage]"},
			{"PUT", core + "persistentvolumeclaims/target", object, claim("target", text),
				"spec.resources.requests[storage]"},
			{"PATCH", core + "persistentvolumeclaims/target", "application/merge-patch+json",
				`{"spec":{"resources":{"requests":{"storage":"` + text + `"}}}}`, "spec.resources.requests[storage]"},
			{"PATCH", core + "persistentvolumeclaims/target", "application/strategic-merge-patch+json",
				`{"spec":{"resources":{"requests":{"storage":"` + text + `"}}}}`, "spec.resources.requests[storage]"},
			{"PATCH", core + "persistentvolumeclaims/target", "application/json-patch+json",
				`[{"op":"add","path":"/spec/resources/requests/storage","value":"` + text + `"}]`,
				"spec.resources.requests[storage]"},
			{"PATCH", core + "persistentvolumeclaims/target?fieldManager=x&force=true", "application/apply-patch+yaml",
				claim("target", text), "spec.resources.requests[storage]"},
			{"POST", core + "pods", object, `{"metadata":{"name":"x"},"spec":{"containers":[{"name":"a","image":"a",` +
				`"resources":{"limits":{"cpu":"` + text + `"}}}]}}`, "spec.containers[0].resources.limits[cpu]"},
			{"POST", core + "pods", object, `{"metadata":{"name":"x"},"spec":{"containers":[{"name":"a","image":"a"}],` +
				`"volumes":[{"name":"v","emptyDir":{"sizeLimit":"` + text + `"}}]}}`, "spec.volumes[0].emptyDir.sizeLimit"},
			{"POST", core + "pods", object, `{"metadata":{"name":"x"},"spec":{"containers":[{"name":"a","image":"a","env":[` +
				`{"name":"E","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu","divisor":"` + text + `"}}}]}]}}`,
				"spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor"},
			{"POST", core + "limitranges", object, `{"metadata":{"name":"x"},"spec":{"limits":[{"type":"Pod","max":{"cpu":"` +
				text + `"}}]}}`, "spec.limits[0].max[cpu]"},
			{"POST", core + "resourcequotas", object, `{"metadata":{"name":"x"},"spec":{"hard":{"cpu":"` + text + `"}}}`,
				"spec.hard[cpu]"},
			{"POST", "/api/v1/nodes?dryRun=All", object, `{"metadata":{"name":"x"},"status":{"capacity":{"cpu":"` + text +
				`"}}}`, "status.capacity[cpu]"},
			{"POST", "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", object,
				`{"metadata":{"name":"x"},"spec":{"maxReplicas":2,"scaleTargetRef":{"kind":"Deployment","name":"a"},` +
					`"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"AverageValue","averageValue":"` +
					text + `"}}}]}}`, "spec.metrics[0].resource.target.averageValue"},
			{"POST", "/apis/resource.k8s.io/v1/resourceslices", object,
				`{"metadata":{"name":"x"},"spec":{"driver":"a.b","nodeName":"n","pool":{"name":"p","resourceSliceCount":1},` +
					`"devices":[{"name":"d","capacity":{"m":{"value":"` + text + `"}}}]}}`,
				"spec.devices[0].capacity[m].value"},
		} {
			code, status := admin.ask(t, c.method, c.path, c.contentType, c.body)
			if code != http.StatusUnprocessableEntity || status.Details == nil || len(status.Details.Causes) != 1 ||
				status.Details.Causes[0].Field != c.field || len(status.Message) > 1000 {
				t.Errorf("%s %s with %.30s: got %d %.300s, want 422 about %s", c.method, c.path, text, code, status.Message,
					c.field)
			}
		}
	}
}

func claim(name, storage string) string {
	return `{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"` + name + `"},"spec":{"accessModes":[` +
		`"ReadWriteOnce"],"resources":{"requests":{"storage":"` + storage + `"}}}}`
}

// TestHiddenQuantities sends quantities in places that a decoded object no longer shows.
func TestHiddenQuantities(t *testing.T) {
	t.Parallel()
	admin := as(t, victim(t), "")
	const path = "/api/v1/namespaces/default/persistentvolumeclaims?fieldValidation=Strict"
	// Decoding drops the first of two fields, but the check sees both.
	twice := strings.Replace(claim("x", "1Gi"), `"storage":`, `"storage":"1e-1000000000","storage":`, 1)
	if code, status := admin.ask(t, http.MethodPost, path, "application/json", twice); code != http.StatusBadRequest {
		t.Errorf("got %d %s", code, status.Message)
	}
	// JSON decodes the number as 0.
	number := strings.Replace(claim("x", "1Gi"), `"1Gi"`, `1e-1000000000`, 1)
	if code, status := admin.ask(t, http.MethodPost, path, "application/json",
		number); code != http.StatusUnprocessableEntity {
		t.Errorf("got %d %s", code, status.Message)
	}
	// The library prints a quantity with a large exponent in no time.
	pvc := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
	if err := json.Unmarshal([]byte(claim("x", "1e1000000000")), &pvc); err != nil {
		t.Fatal(err)
	}
	message, err := pvc.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"1e1000000001", "1e-100000000"} { // of the same length
		body := "k8s\x00\x0a\x1b\x0a\x02v1\x12\x15PersistentVolumeClaim" + field2(strings.Replace(string(message),
			"10e999999999", text, 1))
		code, status := admin.ask(t, http.MethodPost, path, "application/vnd.kubernetes.protobuf", body)
		if code != http.StatusUnprocessableEntity || status.Details == nil || len(status.Details.Causes) != 1 ||
			status.Details.Causes[0].Field != "spec.resources.requests[storage]" {
			t.Errorf("%s: got %d %s", text, code, status.Message)
		}
	}
}

// field2 is field 2 of a protobuf message, of up to 16 KiB.
func field2(content string) string {
	return "\x12" + string([]byte{byte(len(content)) | 0x80, byte(len(content) >> 7)}) + content
}

// TestAcceptedQuantities stores quantities that kube-apiserver stores within a second, and computes with them.
func TestAcceptedQuantities(t *testing.T) {
	t.Parallel()
	admin := as(t, victim(t), "")
	const claims = "/api/v1/namespaces/default/persistentvolumeclaims"
	admin.send(t.Context(), http.MethodPost, "/api/v1/namespaces/default/resourcequotas", "application/json",
		`{"metadata":{"name":"q"},"spec":{"hard":{"requests.storage":"1e3000000"}}}`)
	for i, text := range []string{"1e-3000000", "1e2999999", "1e1000", "0." + strings.Repeat("7", 300_000), "1500n"} {
		name := "c" + string(rune('a'+i))
		if code, status := admin.ask(t, http.MethodPost, claims, "application/json", claim(name, text)); code != 201 {
			t.Errorf("%.20s: got %d %s", text, code, status.Message)
		}
	}
}
