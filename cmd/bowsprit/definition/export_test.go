package definition

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
)

// withOwn returns a definition with fields that Kubernetes lacks.
func withOwn(columns, spec string) string {
	return head + "    additionalPrinterColumns: [" + columns + "]\n" +
		"    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {" + spec + "}}}}}\n"
}

// TestExport checks the exported definitions, the losses and the exit codes.
func TestExport(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text, args string
		code       exit.Code
		out        []string // in the definition
		without    string   // not in it
		err        []string // on stderr, or of the error
	}{
		"stored form": {
			withOwn("{name: A, type: string, expression: self.spec.a}", "a: {type: string, x-bowsprit-immutable: true}"), "", 0,
			[]string{`bowsprit.dev/printer-columns: '{"v1":{"A":"self.spec.a"}}'`, `jsonPath: ""`, "rule: self == oldSelf"},
			"x-bowsprit", nil,
		},
		"a path": {
			withOwn("{name: A, type: string, expression: self.spec.a}", "a: {type: string}"), "--ordinary", 0,
			[]string{"jsonPath: .spec.a\n"}, "expression", nil,
		},
		"no path": {
			withOwn("{name: A, type: string, expression: self.spec.a + '!'}", "a: {type: string}"), "--ordinary",
			exit.Negative, nil, "additionalPrinterColumns",
			[]string{"crd.yaml:12: spec.versions[0].additionalPrinterColumns[0]: column A is left out: no path has the value"},
		},
		"sensitive": {
			withOwn("", "a: {type: string, x-kubernetes-sensitive-data: true}"), "--ordinary", exit.Negative, nil, "sensitive",
			[]string{"other clusters show the field to all readers of the object", "have no equivalent"},
		},
		"conversion": {
			withRules("{strategy: Declarative}"), "--ordinary --conversion-service=ops/convert --conversion-ca=ca.crt", 0,
			[]string{"strategy: Webhook", "namespace: ops", "name: convert", "caBundle: YXV0aG9yaXR5", "path: /convert",
				"bowsprit.dev/conversion:"}, "Declarative", nil,
		},
		"conversion as stored": {
			withRules("{strategy: Declarative}"), "", 0, []string{"strategy: Declarative"}, "Webhook", nil,
		},
		"no service": {withRules("{strategy: Declarative}"), "--ordinary --conversion-service=a", exit.Misuse, nil, "",
			[]string{"--conversion-service=a: use NAMESPACE/NAME"}},
		"refused": {withOwn("{name: A, type: string, expression: self.b}", ""), "--ordinary", exit.Failure, nil, "",
			[]string{"crd.yaml:12: spec.versions[0].additionalPrinterColumns[0].expression: a server would refuse it"}},
		"none": {"a: b\n", "", exit.Failure, nil, "", []string{"no CustomResourceDefinition found"}},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "crd.yaml")
		for path, text := range map[string]string{file: tc.text, filepath.Join(dir, "ca.crt"): "authority"} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var out, notes bytes.Buffer
		cmd := Command()
		cmd.SetOut(&out)
		cmd.SetErr(&notes)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(append([]string{"export", file}, strings.Fields(strings.ReplaceAll(tc.args, "=ca.crt",
			"="+filepath.Join(dir, "ca.crt")))...))
		err := cmd.Execute()
		if code := exit.Of(err); code != tc.code {
			t.Errorf("%s: exit code %d, %v", name, code, err)
		}
		if err != nil {
			notes.WriteString(err.Error())
		}
		for text, parts := range map[*bytes.Buffer][]string{&out: tc.out, &notes: tc.err} {
			for _, part := range parts {
				if !strings.Contains(text.String(), part) {
					t.Errorf("%s: %q has no %q", name, text, part)
				}
			}
		}
		if tc.without != "" && strings.Contains(out.String(), tc.without) {
			t.Errorf("%s: %q has %q", name, &out, tc.without)
		}
		if tc.code != 0 && tc.code != exit.Negative {
			continue
		}
		// The result has the same result.
		var again bytes.Buffer
		cmd = Command()
		cmd.SetIn(&out)
		cmd.SetOut(&again)
		cmd.SetArgs([]string{"export", "-"})
		first := out.String()
		if err := cmd.Execute(); err != nil || again.String() != first {
			t.Errorf("%s: exported again: %v\n%s\n%s", name, err, &again, first)
		}
	}
}
