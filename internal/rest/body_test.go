package rest_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/request"
)

// TestFieldProblems creates a deployment with repeated and unknown fields. The expected problems and their order come
// from Kubernetes' own test (TestFieldValidation, test/integration/apiserver).
func TestFieldProblems(t *testing.T) {
	t.Parallel()
	s := start(t)
	const (
		path     = "/apis/apps/v1/namespaces/default/deployments"
		template = `"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i","unknownNested":1,"imagePullPolicy":"Always","imagePullPolicy":"Never"}]}}`
		asJSON   = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"x","name":"a","unknownMeta":"y"},"spec":{"unknown1":1,"unknownDupe":1,"unknownDupe":2,"paused":true,"paused":false,` + template + `}}`
		asYAML   = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: x
  name: a
  unknownMeta: y
spec:
  unknown1: 1
  unknownDupe: 1
  unknownDupe: 2
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec:
      containers:
      - name: c
        image: i
        unknownNested: 1
        imagePullPolicy: Always
        imagePullPolicy: Never
`
		repeated = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"paused":true,"paused":false,"selector":{"matchLabels":{"a":"b"}},
"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i","imagePullPolicy":"Always","imagePullPolicy":"Never"}]}}}}`
	)
	inOrder := []string{
		`duplicate field "metadata.name"`, `unknown field "metadata.unknownMeta"`, `unknown field "spec.unknown1"`,
		`unknown field "spec.unknownDupe"`, `duplicate field "spec.paused"`,
		`unknown field "spec.template.spec.containers[0].unknownNested"`,
		`duplicate field "spec.template.spec.containers[0].imagePullPolicy"`,
	}
	for _, tc := range []struct {
		name, method, path, contentType, body string
		warnings                              []string
		strict                                string
	}{
		{"JSON", http.MethodPost, path, "application/json", asJSON, inOrder,
			`Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: ` +
				strings.Join(inOrder, ", ")},
		{"YAML", http.MethodPost, path, "application/yaml", asYAML, []string{
			`line 5: key "name" already set in map`, `line 10: key "unknownDupe" already set in map`,
			`line 20: key "imagePullPolicy" already set in map`,
			`unknown field "metadata.unknownMeta"`, `unknown field "spec.template.spec.containers[0].unknownNested"`,
			`unknown field "spec.unknown1"`, `unknown field "spec.unknownDupe"`,
		},
			"Deployment in version \"v1\" cannot be handled as a Deployment: strict decoding error: yaml: unmarshal errors:\n  line 5: key \"name\" already set in map\n  line 10: key \"unknownDupe\" already set in map\n" +
				"  line 20: key \"imagePullPolicy\" already set in map, unknown field \"metadata.unknownMeta\", unknown field \"spec.template.spec.containers[0].unknownNested\", unknown field \"spec.unknown1\", unknown field \"spec.unknownDupe\""},
		{"apply", http.MethodPatch, path + "/a", "application/apply-patch+yaml", repeated,
			[]string{`line 1: key "paused" already set in map`, `line 2: key "imagePullPolicy" already set in map`},
			"error strict decoding patch: error converting YAML to JSON: yaml: unmarshal errors:\n  line 1: key \"paused\" already set in map\n  line 2: key \"imagePullPolicy\" already set in map"},
	} {
		for _, mode := range []string{"", "Warn", "Ignore", "Strict"} {
			scope := &request.Scope{}
			r := httptest.NewRequestWithContext(request.NewContext(t.Context(), scope), tc.method, tc.path+
				"?dryRun=All&fieldManager=m&fieldValidation="+mode, strings.NewReader(tc.body))
			r.Header.Set("Content-Type", tc.contentType)
			info, err := request.Parse(r)
			if err != nil {
				t.Fatal(err)
			}
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r, info, admin)
			var want []string
			for _, text := range tc.warnings {
				want = append(want, "299 - "+quoted(text))
			}
			switch mode {
			case "Strict":
				var st metav1.Status
				if err := json.Unmarshal(w.Body.Bytes(), &st); err != nil || w.Code != http.StatusBadRequest ||
					st.Message != tc.strict {
					t.Errorf("%s, strict: %d %q\nwant %q", tc.name, w.Code, st.Message, tc.strict)
				}
				continue
			case "Ignore":
				want = nil
			}
			if got := scope.Warnings(); w.Code != http.StatusCreated || !slices.Equal(got, want) {
				t.Errorf("%s, %q: %d %s\n%q\nwant %q", tc.name, mode, w.Code, w.Body, got, want)
			}
		}
	}
}

func quoted(text string) string { return `"` + strings.ReplaceAll(text, `"`, `\"`) + `"` }

// TestCreateWithRevision creates objects with a resourceVersion: a valid revision is refused, any other text is
// ignored.
func TestCreateWithRevision(t *testing.T) {
	t.Parallel()
	s := start(t)
	for revision, code := range map[string]int{"1": 500, "0": 201, "abc": 201, "-1": 201, "": 201} {
		w := ask(t, s, http.MethodPost, "/api/v1/namespaces/default/configmaps",
			`{"metadata":{"generateName":"x","resourceVersion":"`+revision+`"}}`)
		var obj metav1.PartialObjectMetadata
		if err := json.Unmarshal(w.Body.Bytes(), &obj); err != nil || w.Code != code || code == 201 &&
			(obj.ResourceVersion == revision || obj.ResourceVersion == "") {
			t.Errorf("%q: %d %s", revision, w.Code, w.Body)
		}
	}
}
