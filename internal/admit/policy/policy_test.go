package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bowsprit/bowsprit/internal/admit"
)

// policyObject returns the JSON of a policy with that name; more is the rest of its spec, after the common rules.
func policyObject(name, more string) string {
	return fmt.Sprintf(
		`{"metadata":{"name":%q},"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":["*"],"apiVersions":["*"],"operations":["*"],"resources":["*"]}]},%s}}`, name, more)
}

func bindingObject(name, policy, more string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"policyName":%q%s}}`, name, policy, more)
}

const deny = `,"validationActions":["Deny"]`

func TestValidating(t *testing.T) {
	const p, b = "validatingadmissionpolicies/", "validatingadmissionpolicybindings/"
	for _, test := range []struct {
		name        string
		stored      map[string]string
		want        string // message, "" if it passes
		reason      string
		warned      []string
		annotations map[string]string
	}{
		{
			name:   "no binding",
			stored: map[string]string{p + "p": policyObject("p", `"validations":[{"expression":"false"}]`)},
		},
		{name: "passes", stored: map[string]string{
			p +
				"p": policyObject("p",
				`"validations":[{"expression":"object.spec.replicas == 3 && oldObject == null && request.operation == 'CREATE'"}]`),
			b + "b": bindingObject("b", "p", deny),
		}},
		{name: "message and reason", stored: map[string]string{
			p +
				"p": policyObject("p",
				`"validations":[{"expression":"true"},{"expression":"object.spec.replicas > 5","message":" few ","reason":"Forbidden"}]`),
			b + "b": bindingObject("b", "p", deny),
		},
			want: `widgets.example.com "w" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: few`, reason: "Forbidden"},
		{name: "messageExpression", stored: map[string]string{
			p +
				"p": policyObject("p",
				`"variables":[{"name":"n","expression":"object.spec.replicas"},{"name":"twice","expression":"variables.n * 2"}],"validations":[{"expression":"variables.twice > 100","message":"no","messageExpression":"'only ' + string(variables.twice)"}]`),
			b + "b": bindingObject("b", "p", deny),
		},
			want: `widgets.example.com "w" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: only 6`, reason: "Invalid"},
		{name: "a message of two lines does not count", stored: map[string]string{
			p + "p": policyObject("p", `"validations":[{"expression":"false","messageExpression":"'a\\nb'"}]`),
			b + "b": bindingObject("b", "p", deny),
		},
			want: `widgets.example.com "w" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: failed expression: false`, reason: "Invalid"},
		{name: "runtime error", stored: map[string]string{
			p + "p": policyObject("p", `"validations":[{"expression":"object.spec.nothing == 1"}]`),
			b + "b": bindingObject("b", "p", deny),
		},
			want: `widgets.example.com "w" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: expression 'object.spec.nothing == 1' resulted in error: no such key: nothing`, reason: "Invalid"},
		{name: "runtime error, ignored", stored: map[string]string{
			p +
				"p": policyObject("p",
				`"failurePolicy":"Ignore","validations":[{"expression":"object.spec.nothing == 1"}]`),
			b + "b": bindingObject("b", "p", deny),
		}},
		{name: "the cost of one expression", stored: map[string]string{
			p +
				"p": policyObject("p",
				`"validations":[{"expression":"[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, [1,2,3,4,5,6,7,8,9,10].all(g, true)))))))"}]`),
			b + "b": bindingObject("b", "p", deny),
		},
			want: `widgets.example.com "w" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: expression '[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, [1,2,3,4,5,6,7,8,9,10].all(g, true)))))))' resulted in error: operation cancelled: actual cost limit exceeded`, reason: "Invalid"},
		{name: "conditions", stored: map[string]string{
			p +
				"p": policyObject("p",
				`"matchConditions":[{"name":"no","expression":"object.metadata.name == 'other'"}],"validations":[{"expression":"false"}]`),
			b + "b": bindingObject("b", "p", deny),
		}},
		{name: "a broken condition", stored: map[string]string{
			p +
				"p": policyObject("p",
				`"matchConditions":[{"name":"x","expression":"object.nothing == 1"}],"validations":[{"expression":"true"}]`),
			b + "b": bindingObject("b", "p", deny),
		},
			want: `widgets.example.com "w" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: expression 'object.nothing == 1' resulted in error: no such key: nothing`, reason: "Invalid"},
		{name: "warn and audit", stored: map[string]string{
			p +
				"p": policyObject("p",
				`"validations":[{"expression":"false","message":"hm"}],"auditAnnotations":[{"key":"k","valueExpression":"'v' + string(object.spec.replicas)"},{"key":"none","valueExpression":"null"}]`),
			b + "b": bindingObject("b", "p", `,"validationActions":["Warn","Audit"]`),
		}, warned: []string{"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': hm"},
			annotations: map[string]string{
				"p/k": "v3",
				"validation.policy.admission.k8s.io/validation_failure": `[{"message":"hm","policy":"p","binding":"b","expressionIndex":0,"validationActions":["Warn","Audit"]}]`,
			}},
		{name: "audit of several failures", stored: map[string]string{
			p +
				"p": policyObject("p",
				`"validations":[{"expression":"false","message":"hm"},{"expression":"true"},{"expression":"false","message":"oh"}]`),
			p + "q": policyObject("q", `"validations":[{"expression":"false","message":"no"}]`),
			b + "b": bindingObject("b", "p", `,"validationActions":["Audit"]`),
			b + "c": bindingObject("c", "q", `,"validationActions":["Audit"]`),
		}, annotations: map[string]string{
			"validation.policy.admission.k8s.io/validation_failure": `[{"message":"hm","policy":"p","binding":"b","expressionIndex":0,"validationActions":["Audit"]},` +
				`{"message":"oh","policy":"p","binding":"b","expressionIndex":2,"validationActions":["Audit"]},` +
				`{"message":"no","policy":"q","binding":"c","expressionIndex":0,"validationActions":["Audit"]}]`,
		}},
		{name: "authorizer and namespace", stored: map[string]string{
			p +
				"p": policyObject("p",
				`"validations":[{"expression":"authorizer.group('').resource('pods').check('get').allowed() && authorizer.requestResource.check('create').allowed() && namespaceObject.metadata.labels.team == 'a'"}]`),
			b + "b": bindingObject("b", "p", deny),
		}},
		{name: "parameters", stored: map[string]string{
			p +
				"p": policyObject("p",
				`"paramKind":{"apiVersion":"example.com/v1","kind":"Widget"},"validations":[{"expression":"params.spec.replicas >= object.spec.replicas","messageExpression":"'at most ' + string(params.spec.replicas)"}]`),
			b +
				"b": bindingObject("b", "p", deny+
				`,"paramRef":{"selector":{"matchLabels":{"limit":"yes"}},"parameterNotFoundAction":"Deny"}`),
			"example.com/widgets/default/l1": `{"metadata":{"name":"l1","namespace":"default","labels":{"limit":"yes"}},"spec":{"replicas":10}}`,
			"example.com/widgets/default/l2": `{"metadata":{"name":"l2","namespace":"default","labels":{"limit":"yes"}},"spec":{"replicas":2}}`,
			"example.com/widgets/other/l3":   `{"metadata":{"name":"l3","namespace":"other","labels":{"limit":"yes"}},"spec":{"replicas":1}}`,
		},
			want: `widgets.example.com "w" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: at most 2`, reason: "Invalid"},
		{name: "no parameters", stored: map[string]string{
			p +
				"p": policyObject("p",
				`"paramKind":{"apiVersion":"example.com/v1","kind":"Widget"},"validations":[{"expression":"false"}]`),
			b + "b": bindingObject("b", "p", deny+`,"paramRef":{"name":"x","parameterNotFoundAction":"Allow"}`),
		}},
		{name: "an unknown kind of parameters", stored: map[string]string{
			p +
				"p": policyObject("p",
				`"paramKind":{"apiVersion":"example.com/v2","kind":"Widget"},"validations":[{"expression":"true"}]`),
			b + "b": bindingObject("b", "p", deny),
		},
			want: `widgets.example.com "w" is forbidden: ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: failed to find resource referenced by paramKind: 'example.com/v2, Kind=Widget'`, reason: "Invalid"},
		{name: "the first in the order of names denies", stored: map[string]string{
			p + "z": policyObject("z", `"validations":[{"expression":"false"}]`), b +
				"a": bindingObject("a", "z", deny),
			p + "y": policyObject("y", `"validations":[{"expression":"false"}]`), b +
				"b": bindingObject("b", "y", deny),
		},
			want: `widgets.example.com "w" is forbidden: ValidatingAdmissionPolicy 'y' with binding 'b' denied request: failed expression: false`, reason: "Invalid"},
		{name: "the binding excludes it", stored: map[string]string{
			p + "p": policyObject("p", `"validations":[{"expression":"false"}]`),
			b +
				"b": bindingObject("b", "p", deny+
				`,"matchResources":{"excludeResourceRules":[{"apiGroups":["example.com"],"apiVersions":["v1"],"operations":["CREATE"],"resources":["widgets"],"resourceNames":["w"]}]}`),
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.stored["namespaces/default"] = `{"metadata":{"name":"default","labels":{"team":"a"}}}`
			c := rig(t, test.stored)
			a := write(c, widget())
			var warned []string
			a.Warn = func(text string) { warned = append(warned, text) }
			check(t, NewValidating(c, nil).Validate(t.Context(), a), test.want, test.reason)
			if !reflect.DeepEqual(warned, test.warned) {
				t.Errorf("warnings %q, want %q", warned, test.warned)
			}
			if annotations := a.Annotations(); !reflect.DeepEqual(annotations, test.annotations) {
				t.Errorf("annotations %v, want %v", annotations, test.annotations)
			}
		})
	}
}

func check(t *testing.T, err error, want, reason string) {
	t.Helper()
	var status *apierrors.StatusError
	switch {
	case err == nil:
		if want != "" {
			t.Errorf("passes, want %s", want)
		}
	case !errors.As(err, &status):
		t.Errorf("error %v", err)
	case status.ErrStatus.Message != want || string(status.ErrStatus.Reason) != reason:
		t.Errorf("got %s: %s\nwant %s: %s", status.ErrStatus.Reason, status.ErrStatus.Message, reason, want)
	}
}

func TestMutating(t *testing.T) {
	const p, b = "mutatingadmissionpolicies/", "mutatingadmissionpolicybindings/"
	applied := func(expression string) string {
		return fmt.Sprintf(
			`"reinvocationPolicy":"Never","mutations":[{"patchType":"ApplyConfiguration","applyConfiguration":{"expression":%q}}]`, expression)
	}
	patched := func(policy, expression string) string {
		return fmt.Sprintf(
			`"reinvocationPolicy":%q,"mutations":[{"patchType":"JSONPatch","jsonPatch":{"expression":%q}}]`, policy,
			expression)
	}
	for _, test := range []struct {
		name   string
		stored map[string]string
		spec   string // of the object afterwards
		labels string
		want   string
		reason string
	}{
		{name: "apply configuration", stored: map[string]string{
			p +
				"p": policyObject("p",
				applied(
					`Object{metadata: Object.metadata{labels: {"c": "d"}}, spec: Object.spec{replicas: object.spec.replicas + 1, set: ["x"]}}`)),
			b + "b": bindingObject("b", "p", ""),
		}, spec: `{"list":["a","b","c"],"replicas":4,"set":["x"]}`, labels: `{"a":"b","c":"d"}`},
		{name: "an atomic list", stored: map[string]string{
			p + "p": policyObject("p", applied(`Object{spec: Object.spec{list: ["x"]}}`)),
			b + "b": bindingObject("b", "p", ""),
		},
			want: "policy 'p' with binding 'b' denied request: error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.list", reason: "Invalid"},
		{name: "an unknown field", stored: map[string]string{
			p + "p": policyObject("p", applied(`Object{spec: Object.spec{nothing: 1}}`)),
			b + "b": bindingObject("b", "p", ""),
		},
			want: "policy 'p' with binding 'b' denied request: error applying patch: failed to convert patch object to typed object: .spec.nothing: field not declared in schema", reason: "Invalid"},
		{name: "the wrong type", stored: map[string]string{
			p + "p": policyObject("p", applied(`Object{spec: Object.status{replicas: 1}}`)),
			b + "b": bindingObject("b", "p", ""),
		},
			want: "policy 'p' with binding 'b' denied request: type mismatch: unexpected type name \"Object.status\", expected \"Object.spec\", which matches field name path from root Object type", reason: "Invalid"},
		{name: "JSON patch", stored: map[string]string{
			p +
				"p": policyObject("p",
				patched("Never",
					`[JSONPatch{op: "test", path: "/spec/replicas", value: 3}, JSONPatch{op: "replace", path: "/spec/replicas", value: 7}, JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("x/y"), value: "z"}]`)),
			b + "b": bindingObject("b", "p", ""),
		}, spec: `{"list":["a","b","c"],"replicas":7}`, labels: `{"a":"b","x/y":"z"}`},
		{name: "a JSON patch that does not fit", stored: map[string]string{
			p +
				"p": policyObject("p",
				patched("Never",
					`[JSONPatch{op: "test", path: "/spec/replicas", value: 8}, JSONPatch{op: "remove", path: "/spec"}]`)),
			b + "b": bindingObject("b", "p", ""),
		}, spec: `{"list":["a","b","c"],"replicas":3}`, labels: `{"a":"b"}`},
		{name: "a failing JSON patch", stored: map[string]string{
			p + "p": policyObject("p", patched("Never", `[JSONPatch{op: "remove", path: "/spec/nothing"}]`)),
			b + "b": bindingObject("b", "p", ""),
		},
			want: "policy 'p' with binding 'b' denied request: JSON Patch: error in remove for path: '/spec/nothing': Unable to remove nonexistent key: nothing: missing value", reason: "Invalid"},
		{name: "reinvocation", stored: map[string]string{
			p +
				"a": policyObject("a",
				patched("IfNeeded",
					`[JSONPatch{op: "add", path: "/metadata/labels/a", value: string(object.spec.replicas)}]`)), b +
				"a": bindingObject("a", "a", ""),
			p +
				"b": policyObject("b",
				patched("Never",
					`[JSONPatch{op: "replace", path: "/spec/replicas", value: object.spec.replicas + 1}]`)), b +
				"b": bindingObject("b", "b", ""),
		}, spec: `{"list":["a","b","c"],"replicas":4}`, labels: `{"a":"4"}`},
		{name: "failures ignored", stored: map[string]string{
			p +
				"p": policyObject("p", `"failurePolicy":"Ignore",`+
				applied(`Object{spec: Object.spec{replicas: object.spec.nothing}}`)),
			b + "b": bindingObject("b", "p", ""),
		}, spec: `{"list":["a","b","c"],"replicas":3}`, labels: `{"a":"b"}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := rig(t, test.stored)
			a := write(c, widget())
			before := widget()
			old := a.Object
			err := admit.Chain{Plugins: []admit.Plugin{NewMutating(c, nil)}}.Mutate(t.Context(), a)
			check(t, err, test.want, test.reason)
			if !reflect.DeepEqual(old, before) {
				t.Errorf("the object that a request brought has been changed: %v", old)
			}
			if err != nil {
				return
			}
			if got := asJSON(a.Object["spec"]); got != test.spec {
				t.Errorf("spec %s, want %s", got, test.spec)
			}
			if got := asJSON(a.Object["metadata"].(map[string]any)["labels"]); got != test.labels {
				t.Errorf("labels %s, want %s", got, test.labels)
			}
		})
	}
}

func asJSON(v any) string {
	raw, _ := json.Marshal(v)
	return string(raw)
}
