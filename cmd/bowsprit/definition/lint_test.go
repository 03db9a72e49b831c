package definition

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const head = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.stable.example.com}
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: crontabs, singular: crontab, kind: CronTab}
  versions:
  - name: v1
    served: true
    storage: true
`

// withRules returns a definition with two versions, rules and a value of spec.conversion.
func withRules(conversion string) string {
	const version = "    schema: {openAPIV3Schema: {type: object, properties: {%s: {type: string}}}}\n"
	return strings.Replace(head, "metadata: {name:", "metadata: {annotations: {bowsprit.dev/conversion: "+
		"'steps: [{from: v1, to: v2, rules: [{move: a, to: b}]}]'}, name:", 1) + fmt.Sprintf(version, "a") +
		"  - name: v2\n    served: true\n    storage: false\n" + fmt.Sprintf(version, "b") + "  conversion: " + conversion +
		"\n"
}

// TestLint checks that definitions that a server would refuse get its error texts, and that other documents are
// skipped.
func TestLint(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text             string
		errors, warnings []string
	}{
		"right": {head + "    schema: {openAPIV3Schema: {type: object}}\n", nil, nil},
		"without a schema": {head, []string{"spec.versions[0].schema.openAPIV3Schema: Required value"},
			nil},
		"name": {strings.Replace(head, "{name: crontabs.", "{name: cronjobs.", 1) +
			"    schema: {openAPIV3Schema: {type: object}}\n", []string{`must be spec.names.plural+"."+spec.group`}, nil},
		"not structural": {head + "    schema: {openAPIV3Schema: {properties: {a: {type: string}}}}\n",
			[]string{"openAPIV3Schema.type: Required value: must not be empty at the root"}, nil},
		"rule": {head + "    schema: {openAPIV3Schema: {type: object, x-kubernetes-validations: [{rule: self.nope}]}}\n",
			[]string{"undefined field 'nope'"}, nil},
		"unknown field": {head + "    schemas: {}\n    schema: {openAPIV3Schema: {type: object}}\n", nil,
			[]string{`unknown field "spec.versions[0].schemas"`}},
		"format": {head + "    schema: {openAPIV3Schema: {type: object, properties: {a: {type: string, format: odd}}}}\n",
			nil, []string{`unrecognized format "odd"`}},
		"version":    {strings.Replace(head, "/v1\n", "/v2\n", 1), []string{"is not apiextensions.k8s.io/v1"}, nil},
		"wrong type": {strings.Replace(head, "scope: Namespaced", "scope: [a]", 1), []string{"spec.scope: is an array, and must be a value of type ResourceScope"}, nil},
		"beta": {strings.Replace(head, "/v1\n", "/v1beta1\n", 1) +
			"    schema: {openAPIV3Schema: {type: object}}\n", nil, []string{"no longer served"}},
		"rules": {withRules("{strategy: Declarative}"), nil,
			[]string{"spec.conversion.strategy: other clusters do not know this value: crd export --ordinary writes"}},
		"fields that other clusters do not know": {withOwn("{name: A, type: string, expression: self.spec.a}",
			"a: {type: string, x-bowsprit-immutable: true}, b: {type: string, x-kubernetes-sensitive-data: true}"), nil,
			[]string{"spec.versions[0].additionalPrinterColumns[0].expression: other clusters do not know this field: crd export",
				"properties[a].x-bowsprit-immutable: other clusters do not know this field: crd export --ordinary writes validation",
				"properties[b].x-kubernetes-sensitive-data: other clusters do not know this field: they show the field"}},
		"immutable at the root": {head + "    schema: {openAPIV3Schema: {type: object, x-bowsprit-immutable: true}}\n",
			[]string{"openAPIV3Schema.x-bowsprit-immutable: Forbidden: must not be used at the root"},
			[]string{"other clusters do not know this field"}},
		"immutable in a list": {withOwn("", "a: {type: array, maxItems: 5, items: {type: string, maxLength: 5, x-bowsprit-immutable: true}}"),
			[]string{"oldSelf cannot be used on the uncorrelatable portion of the schema"},
			[]string{"other clusters do not know this field"}},
		"rules for strategy None": {withRules("{strategy: None}"),
			[]string{"must not be set with spec.conversion.strategy None"}, nil},
		"rules without a strategy": {strings.Replace(withRules(""), "  conversion: \n", "", 1),
			[]string{"must not be set with spec.conversion.strategy None"}, nil},
		"no rules for strategy Declarative": {head + "    schema: {openAPIV3Schema: {type: object}}\n" +
			"  conversion: {strategy: Declarative}\n", []string{"strategy Declarative needs the rules"},
			[]string{"other clusters do not know this value"}},
	} {
		file := filepath.Join(t.TempDir(), "crd.yaml")
		text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n---\n" + tc.text + "---\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := lint([]string{filepath.Dir(file)}, nil)
		if err != nil || len(all) != 1 {
			t.Errorf("%s: %v %v", name, err, all)
			continue
		}
		same(t, name+": errors", all[0].Errors, tc.errors)
		same(t, name+": warnings", all[0].Warnings, tc.warnings)
		var out bytes.Buffer
		if err := report(&out, all, "text"); errors.Is(err, errRefused) != (tc.errors != nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// same checks that each text contains the wanted part at its index.
func same(t *testing.T, name string, notes []note, want []string) {
	t.Helper()
	var got []string
	for _, n := range notes {
		got = append(got, n.Path+": "+n.Text)
	}
	if len(got) != len(want) {
		t.Errorf("%s: %q, want %q", name, got, want)
		return
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("%s: %q has no %q", name, got[i], want[i])
		}
	}
}

// TestLintForms checks that lint reads lists and stdin, prints JSON on request, and refuses files without definitions.
func TestLintForms(t *testing.T) {
	t.Parallel()
	all, err := lint([]string{"-"}, strings.NewReader(
		`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",`+
			`"metadata":{"name":"a.b"}}]}`))
	if err != nil || len(all) != 1 || all[0].Name != "a.b" || all[0].File != "stdin" {
		t.Fatalf("%v %v", err, all)
	}
	var out bytes.Buffer
	if err := report(&out, all, "json"); !errors.Is(err, errRefused) {
		t.Error(err)
	}
	var again []finding
	if err := json.Unmarshal(out.Bytes(), &again); err != nil || len(again) != 1 || len(again[0].Errors) == 0 {
		t.Errorf("%v %s", err, &out)
	}
	for text, want := range map[string]string{"": "no CustomResourceDefinition", "a: b": "no Custom"} {
		if _, err := lint([]string{"-"}, strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}

	if _, err := lint([]string{filepath.Join(t.TempDir(), "none")}, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

// TestLintReportsAll checks that lint reports every problem of every file, with its line and path.
func TestLintReportsAll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.yaml": "a: [\n---\n" + strings.Replace(head, "scope: Namespaced", "scope: [a]", 1) +
			"    schemas: {}\n   odd: 1\n",
		"b.yaml": head + "    schema:\n      openAPIV3Schema:\n        properties: {a: {type: string}}\n",
		"c.yaml": head + "  - {name: 7, served: maybe, storage: false}\n  - name: v3\n    served: 1\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := lint([]string{dir}, nil)
	var out bytes.Buffer
	if err != nil || !errors.Is(report(&out, all, "text"), errRefused) {
		t.Fatal(err)
	}
	got := strings.ReplaceAll(out.String(), dir+string(filepath.Separator), "")
	for _, want := range []string{
		"a.yaml:1: this is not YAML: did not find expected node content\n", "a.yaml:14: this is not YAML: ",
		"b.yaml:13: crontabs.stable.example.com: spec.validation.openAPIV3Schema.type: Required value",
		"c.yaml:12: crontabs.stable.example.com: spec.versions[1].name: is a number, and must be a string\n",
		"c.yaml:12: crontabs.stable.example.com: spec.versions[1].served: is a string, and must be a bool\n",
		"c.yaml:14: crontabs.stable.example.com: spec.versions[2].served: is a number, and must be a bool\n",
		" would be refused.\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q:\n%s", want, got)
		}
	}
}
