package registration

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the results into testdata")

// registered is a case: an object as received, and its errors after defaulting. The texts are kube-apiserver's:
// test/oracle-builtins compares many more with Kubernetes' own validation.
type registered struct {
	Name   string         `json:"name"`
	Object map[string]any `json:"object"`
	Old    map[string]any `json:"old,omitempty"`
	Wrong  []string       `json:"wrong,omitempty"`
}

// TestChecks has each file of testdata checked as the kind in its objects.
func TestChecks(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no cases", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var cases []registered
			if err := yaml.UnmarshalStrict(data, &cases); err != nil {
				t.Fatal(err)
			}
			for i := range cases {
				c := &cases[i]
				var got []string
				for _, e := range check(t, c) {
					got = append(got, e.Error())
				}
				if *update {
					c.Wrong = got
				} else if !slices.Equal(got, c.Wrong) {
					t.Errorf("%s\ngot  %q\nwant %q", c.Name, got, c.Wrong)
				}
			}
			if !*update {
				return
			}
			if data, err = yaml.Marshal(cases); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, data, 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func check(t *testing.T, c *registered) field.ErrorList {
	t.Helper()
	switch c.Object["kind"] {
	case "ValidatingAdmissionPolicy":
		return checked(t, c, DefaultPolicy, CheckValidatingPolicy)
	case "MutatingAdmissionPolicy":
		return checked(t, c, DefaultPolicy, CheckMutatingPolicy)
	case "ValidatingAdmissionPolicyBinding":
		return checked(t, c, DefaultBinding, alone(CheckValidatingBinding))
	case "MutatingAdmissionPolicyBinding":
		return checked(t, c, DefaultBinding, alone(CheckMutatingBinding))
	case "ValidatingWebhookConfiguration":
		return checked(t, c, func(obj map[string]any) { DefaultWebhooks(obj, false) }, CheckValidatingWebhooks)
	case "MutatingWebhookConfiguration":
		return checked(t, c, func(obj map[string]any) { DefaultWebhooks(obj, true) }, CheckMutatingWebhooks)
	}
	t.Fatalf("%s: kind %v", c.Name, c.Object["kind"])
	return nil
}

func alone[T any](f func(*T) field.ErrorList) func(obj, old *T, ended func() bool) field.ErrorList {
	return func(obj, _ *T, _ func() bool) field.ErrorList { return f(obj) }
}

func checked[T any](
	t *testing.T, c *registered, defaults func(map[string]any), f func(obj, old *T, ended func() bool) field.ErrorList,
) field.ErrorList {
	t.Helper()
	typed := func(obj map[string]any) *T {
		if obj == nil {
			return nil
		}
		data, err := json.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		own := map[string]any{} // without the defaults, to keep them out of testdata
		if err := json.Unmarshal(data, &own); err != nil {
			t.Fatal(err)
		}
		defaults(own)
		if data, err = json.Marshal(own); err != nil {
			t.Fatal(err)
		}
		out := new(T)
		if err := json.Unmarshal(data, out); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		return out
	}
	return f(typed(c.Object), typed(c.Old), nil)
}

// TestDefaults checks that the server sets defaults and keeps existing values.
func TestDefaults(t *testing.T) {
	t.Parallel()
	config := map[string]any{"webhooks": []any{map[string]any{"name": "a.example.com", "timeoutSeconds": int64(3)}}}
	DefaultWebhooks(config, true)
	data, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	var typed admissionregistrationv1.MutatingWebhookConfiguration
	if err := json.Unmarshal(data, &typed); err != nil {
		t.Fatal(err)
	}
	h := typed.Webhooks[0]
	if *h.TimeoutSeconds != 3 || *h.FailurePolicy != admissionregistrationv1.Fail ||
		*h.MatchPolicy != admissionregistrationv1.Equivalent ||
		*h.ReinvocationPolicy != admissionregistrationv1.NeverReinvocationPolicy ||
		h.NamespaceSelector == nil || h.ObjectSelector == nil {
		t.Errorf("%s", data)
	}
}
