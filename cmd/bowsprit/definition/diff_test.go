package definition

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
	"github.com/bowsprit/bowsprit/internal/feature/compat"
)

const shipV1 = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ships.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Ship, plural: ships, singular: ship, listKind: ShipList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              port: {type: string}
              crew: {type: integer}
`

// shipV2 lacks the port, and bounds the crew.
var shipV2 = strings.NewReplacer("              port: {type: string}\n", "",
	"crew: {type: integer}", "crew: {type: integer, maximum: 9, default: 1}").Replace(shipV1)

const boat = `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.example.com}
spec: {group: example.com, scope: Cluster, names: {kind: Boat, plural: boats}, versions: [{name: v1, served: true,
  storage: true, schema: {openAPIV3Schema: {type: object}}}]}
`

// write writes the files of a case below a new directory.
func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// runDiff runs the command. It returns the output, without the directory of the files.
func runDiff(t *testing.T, dir, stdin string, args ...string) (out string, err error) {
	t.Helper()
	cmd := diffCommand()
	var stdout, stderr bytes.Buffer
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	for i, arg := range args {
		args[i] = strings.ReplaceAll(arg, "DIR", dir)
	}
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	return strings.ReplaceAll(stdout.String()+stderr.String(), dir, "DIR"), err
}

// TestDiffReadsAnnotation checks that the annotation of the new definition changes levels and exempts findings, and
// that the command line takes precedence.
func TestDiffReadsAnnotation(t *testing.T) {
	t.Parallel()
	annotated := func(policy string) string {
		const annotation = "metadata: {annotations: {bowsprit.dev/crd-change-policy: '%s'}, "
		return strings.Replace(shipV2, "metadata: {", fmt.Sprintf(annotation, policy), 1)
	}
	const own = "{mode: Warn, classes: {maximum: warning, default: off}, exemptions: [{class: existingFieldRemoval, path: " +
		"spec.port, reason: unused}]}"
	for name, tc := range map[string]struct {
		policy string
		args   []string
		want   string
		code   exit.Code
	}{
		"levels":       {own, nil, "1 definitions, 0 errors, 1 warnings, 1 exempted.", 0},
		"a mode":       {"Off", nil, "1 definitions, 2 errors, 1 warnings, 0 exempted.", exit.Negative},
		"command line": {own, []string{"--level=maximum=error"}, "1 definitions, 1 errors, 0 warnings, 1 exempted.", exit.Negative},
		"a mistake":    {"{mode: Maybe}", nil, "", exit.Failure},
	} {
		dir := writeFiles(t, map[string]string{"old.yaml": shipV1, "new.yaml": annotated(tc.policy)})
		out, err := runDiff(t, dir, "", append([]string{"DIR/old.yaml", "DIR/new.yaml"}, tc.args...)...)
		if !strings.Contains(out, tc.want) || exit.Of(err) != tc.code {
			t.Errorf("%s: got %s, %v", name, out, err)
		}
	}
}

// TestDiff checks the output and the exit code for two states in files.
func TestDiff(t *testing.T) {
	t.Parallel()
	dir := writeFiles(t, map[string]string{
		"old.yaml": shipV1 + boat, "new.yaml": shipV2, "broken.yaml": "a: [", "none.yaml": "kind: ConfigMap\n",
		"beta.yaml": strings.Replace(shipV1, "k8s.io/v1", "k8s.io/v1beta1", 1), "twice.yaml": shipV1 + "---\n" + shipV1,
		"policy.yaml": "classes: {default: off}\nexemptions:\n" +
			"- {class: definitionRemoval, definition: boats.example.com, reason: never used}\n" +
			"- {class: existingFieldRemoval, path: spec.port, version: v1, reason: never released}\n" +
			"- {class: scope, reason: stale}\n",
		"bad.yaml": "classes: {defaults: off}\n",
	})
	const (
		removed = "boats.example.com: error: the definition of Boat is removed, with all its objects (definitionRemoval)\n"
		field   = "DIR/new.yaml:18: ships.example.com: error: v1: spec.port: the field is removed (existingFieldRemoval)\n"
		limit   = "DIR/new.yaml:19: ships.example.com: error: v1: spec.crew: maximum 9 is added (maximum)\n"
		value   = "DIR/new.yaml:19: ships.example.com: warning: v1: spec.crew: the default 1 is added (default)\n"
	)
	for _, c := range []struct {
		args string
		code exit.Code
		want string // of the output, or with a code other than 0 and 3 of the error
	}{
		{"DIR/new.yaml DIR/new.yaml", exit.Success, "1 definitions, 0 errors, 0 warnings, 0 exempted.\n"},
		{"DIR/old.yaml DIR/new.yaml", exit.Negative,
			removed + value + limit + field + "2 definitions, 3 errors, 1 warnings, 0 exempted.\n"},
		{"- DIR/new.yaml", exit.Negative, value + limit + field + "1 definitions, 2 errors, 1 warnings, 0 exempted.\n"},
		{"DIR/new.yaml DIR/old.yaml", exit.Success, "DIR/old.yaml:20: ships.example.com: warning: v1: spec.crew: the " +
			"default 1 is removed (default)\n1 definitions, 0 errors, 1 warnings, 0 exempted.\n"},
		{"DIR/old.yaml DIR/new.yaml --policy=DIR/policy.yaml --level=maximum=warning", exit.Success,
			"boats.example.com: exempted, never used: the definition of Boat is removed, with all its objects " +
				"(definitionRemoval)\n" + strings.Replace(limit, "error", "warning", 1) +
				strings.Replace(field, "error", "exempted, never released", 1) +
				"The exemption of scope (stale) matches no finding: remove it.\n" +
				"2 definitions, 0 errors, 1 warnings, 2 exempted.\n"},
		{"DIR/new.yaml DIR/new.yaml --github-annotations -o json", exit.Success, `"errors": 0`},
		{"- DIR/new.yaml --github-annotations", exit.Negative, "::error file=DIR/new.yaml,line=18::ships.example.com: v1: " +
			"spec.port: the field is removed (existingFieldRemoval)\n"},
		{"DIR/broken.yaml DIR/new.yaml", exit.Failure, "broken.yaml:1"},
		{"DIR/new.yaml DIR/none.yaml", exit.Failure, "no CustomResourceDefinition found"},
		{"DIR/beta.yaml DIR/new.yaml", exit.Failure, "diff reads definitions of apiextensions.k8s.io/v1 only"},
		{"DIR/twice.yaml DIR/new.yaml", exit.Failure, "twice.yaml:24: metadata.name: ships.example.com is defined in"},
		{"DIR/new.yaml", exit.Misuse, "name two files"},
		{"- -", exit.Misuse, "only one of OLD and NEW"},
		{"DIR/new.yaml DIR/new.yaml --level=pattern", exit.Misuse, `no level ""`},
		{"DIR/new.yaml DIR/new.yaml --level=patterns=off", exit.Misuse, `no class "patterns"`},
		{"DIR/new.yaml DIR/new.yaml --policy=DIR/bad.yaml", exit.Failure, `no class "defaults"`},
	} {
		out, err := runDiff(t, dir, shipV1, strings.Fields(c.args)...)
		if code := exit.Of(err); code != c.code {
			t.Errorf("%s: code %d, not %d: %v", c.args, code, c.code, err)
		}
		if c.code == exit.Failure || c.code == exit.Misuse {
			if out = err.Error(); !strings.Contains(out, c.want) {
				t.Errorf("%s: %s, not %s", c.args, out, c.want)
			}
			continue
		}
		if !strings.Contains(out, c.want) {
			t.Errorf("%s: got\n%s\nnot\n%s", c.args, out, c.want)
		}
	}
}

// TestSARIF checks the fields that code scanning reads.
func TestSARIF(t *testing.T) {
	t.Parallel()
	dir := writeFiles(t, map[string]string{"new.yaml": shipV2})
	_, err := runDiff(t, dir, shipV1, "-", "DIR/new.yaml", "--sarif=DIR/out.sarif", "--level=default=off")
	if exit.Of(err) != exit.Negative {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "out.sarif"))
	if err != nil {
		t.Fatal(err)
	}
	var log struct {
		Version string
		Runs    []struct {
			Results []struct {
				RuleID, Level string
				Message       struct{ Text string }
				Locations     []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine int }
					}
				}
			}
		}
	}
	if err := json.Unmarshal(text, &log); err != nil {
		t.Fatal(err)
	}
	if log.Version != "2.1.0" || len(log.Runs) != 1 || len(log.Runs[0].Results) != 2 {
		t.Fatalf("%s", text)
	}
	one := log.Runs[0].Results[1]
	at := one.Locations[0].PhysicalLocation
	if one.RuleID != "existingFieldRemoval" || one.Level != "error" || at.Region.StartLine != 18 ||
		at.ArtifactLocation.URI != filepath.Join(dir, "new.yaml") || !strings.Contains(one.Message.Text, "spec.port") {
		t.Errorf("%+v", one)
	}
}

// TestClassesPage checks that docs/crd-changes.md lists every class with its level.
func TestClassesPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/crd-changes.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, class := range compat.Classes() {
		row := fmt.Sprintf("\n| `%s` | %s |", class, compat.DefaultLevel(class))
		if !strings.Contains(string(text), row) {
			t.Errorf("the page has no row %q", row)
		}
	}
	if rows, classes := strings.Count(string(text), "\n| `"), len(compat.Classes()); rows != classes {
		t.Errorf("the page has %d classes, not %d", rows, classes)
	}
}
