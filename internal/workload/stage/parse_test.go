package stage

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// stageOf returns a Stage with a spec, given as YAML.
func stageOf(t *testing.T, spec string) (*Stage, error) {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(document1(spec)))
	if err != nil {
		t.Fatal(err)
	}
	return Parse(data)
}

func document1(spec string) string {
	return "apiVersion: kwok.x-k8s.io/v1alpha1\nkind: Stage\nmetadata: {name: s, resourceVersion: '1'}\nspec:\n  " +
		strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ") + "\n"
}

// TestParse checks that reading a Stage reports its errors with their location.
func TestParse(t *testing.T) {
	t.Parallel()
	const pod = "resourceRef: {apiGroup: v1, kind: Pod}\n"
	for spec, want := range map[string]string{
		pod: "",
		"resourceRef: {kind: Pod}\nselector: {matchLabels: {a: b}}\nnext: {delete: true}": "",
		"selector: {}": "spec.resourceRef.kind: missing",
		"resourceRef: {apiGroup: apps/v1/x, kind: Pod}":      "spec.resourceRef.apiGroup: unexpected GroupVersion",
		pod + "selektor: {}":                                 `unknown field "spec.selektor"`,
		pod + "next: {patches: [{templat: x}]}":              `unknown field "spec.next.patches[0].templat"`,
		pod + "selector: {matchExpressions: [{key: '.a['}]}": `spec.selector.matchExpressions[0]: operator "" is unknown`,
		pod + "selector: {matchExpressions: [{key: '.a[', operator: Exists}]}": `spec.selector.matchExpressions[0]: jq ".a[": ` +
			"unexpected EOF",
		pod + "selector: {matchExpressions: [{jq: {key: nope, operator: Exists}}]}":      "function not defined: nope/0",
		pod + "selector: {matchExpressions: [{key: .a, operator: In}]}":                  "operator In needs values",
		pod + "selector: {matchExpressions: [{key: .a, operator: Exists, values: [b]}]}": "operator Exists takes no values",
		pod + "selector: {matchExpressions: [{}]}":                                       "has none of key, jq and cel",
		pod + "selector: {matchExpressions: [{cel: {expression: 'self.a +'}}]}":          "Syntax error",
		pod + "selector: {matchExpressions: [{cel: {expression: 'nobody.a'}}]}":          "undeclared reference to 'nobody'",
		pod + "weight: -1":                                                                      "spec.weight: must not be negative",
		pod + "weightFrom: {jq: {expression: '|'}}":                                             `spec.weightFrom: jq "|"`,
		pod + "delay: {durationMilliseconds: -1}":                                               "spec.delay.durationMilliseconds: must not be negative",
		pod + "delay: {durationFrom: {expressionFrom: '.['}}":                                   "spec.delay.durationFrom: jq",
		pod + "delay: {jitterDurationFrom: {expressionFrom: '['}}":                              "spec.delay.jitterDurationFrom: jq",
		pod + "next: {statusTemplate: '{{ nobody }}'}":                                          `spec.next, action 0: patch.template: template:1: function "nobody" not defined`,
		pod + "next: {statusTemplate: '{{ env \"HOME\" }}'}":                                    `function "env" not defined`,
		pod + "next: {statusTemplate: '{{ getHostByName \"a\" }}'}":                             `function "getHostByName" not defined`,
		pod + "next: {statusTemplate: '{{ if }}'}":                                              "missing value for if",
		pod + "steps: [{event: {type: Bad}}]":                                                   `spec.steps[0]: event.type: "Bad" is neither`,
		pod + "steps: [{delete: true}, {patch: {type: apply}}]":                                 `spec.steps[1]: patch.type: "apply" is unknown`,
		pod + "steps: [{apply: {type: json}}]":                                                  `spec.steps[0]: apply.type: "json" is unknown`,
		pod + "steps: [{apply: {root: spec}}]":                                                  "apply.root: a template of apply writes a whole",
		pod + "steps: [{patch: {impersonation: {username: ''}}}]":                               "patch.impersonation.username: missing",
		"resourceRef: {apiGroup: example.com/v1, kind: A}\nsteps: [{patch: {type: strategic}}]": "patch.type: strategic is for",
	} {
		_, err := stageOf(t, spec)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s\n%v", spec, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s\ngot  %v\nwant %s", spec, err, want)
		}
	}
	if _, err := Parse([]byte(`{"apiVersion":"v1","kind":"Pod"}`)); err == nil ||
		err.Error() != "it is a Pod of v1, not a Stage of kwok.x-k8s.io/v1alpha1" {
		t.Errorf("a pod: %v", err)
	}
}

// TestRead checks that folders may contain other files, and that errors name the file.
func TestRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	one := document1("resourceRef: {kind: Pod}\nselector: {}")
	two := strings.Replace(one, "name: s", "name: r", 1)
	both := file("good/both.yaml", one+"---\n# nothing\n---\n"+two)
	file("good/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n")
	file("good/README.md", "no Stage")
	file("good/testdata/in.yaml", "kind: [")
	wrong := file("wrong.yaml", document1("resourceRef: {kind: Pod}\nx: 1"))
	twice := both + string(os.PathListSeparator) + both
	for paths, want := range map[string]string{
		filepath.Join(dir, "good"):              "r s",
		both:                                    "r s",
		"":                                      "",
		filepath.Join(dir, "good", "README.md"): "README.md, document 1: error unmarshaling JSON",
		filepath.Join(dir, "none"):              "no such file or directory",
		file("pod.yaml", "apiVersion: v1\nkind: Pod\n"):                                `pod.yaml, document 1: stage "": it is a Pod of v1`,
		file("empty/kustomization.yaml", "a: b") + string(os.PathListSeparator) + both: "it is a  of",
		filepath.Join(dir, "empty"):                                                    "empty: no Stage is there",
		twice:                                                                          "both.yaml too",
		wrong:                                                                          `wrong.yaml, document 1: stage "s": unknown field "spec.x"`,
		file("twice.yaml", "kind: Stage\nkind: Stage\n"):                          "already set in map",
		file("event.yaml", document1("resourceRef: {kind: Event}\nselector: {}")): "event.yaml: stage s: no Stage can apply to",
		both + string(os.PathListSeparator) + file("v2.yaml",
			strings.Replace(document1("resourceRef: {kind: Pod, apiGroup: v2}\nselector: {}"), "name: s", "name: z", 1)): "v2.yaml: stage z: it is about version v2 of Pod, and stage r about v1",
	} {
		stages, err := Read(paths)
		var names []string
		for _, s := range stages {
			names = append(names, s.Name)
		}
		got := strings.Join(names, " ")
		if err != nil {
			got = err.Error()
		}
		if got != want && (err == nil || !strings.Contains(got, want)) {
			t.Errorf("%s\ngot  %s\nwant %s", paths, got, want)
		}
	}
}
