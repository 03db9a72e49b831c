package conversion

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestInit compares the proposals for versions of files, and checks that "bowsprit convert test" accepts them.
func TestInit(t *testing.T) {
	t.Parallel()
	const good, bad = "testdata/good.yaml", "testdata/bad.yaml"
	for _, test := range []struct {
		args      []string
		out, fail string // parts of the output and of the error
	}{
		{[]string{good, good}, "steps:\n- from: v1\n  to: v2\n  rules:\n" +
			"  - {\"to\":\"buckets\",\"wrap\":\"bucket\"} # the plural of the name, a value becomes a list\n", ""},
		{[]string{good + ":v2", good + ":v1"}, "{\"to\":\"bucket\",\"unwrap\":\"buckets\"}", ""},
		{[]string{good, good + ":v3"}, "", "good.yaml has no version v3 with a schema"},
		{[]string{good, good + ":v1"}, "", "are the same version, v1"},
		{[]string{bad, bad}, "# Open: generated object {", "some differences need a rule of your own"},
		{[]string{"testdata/none.yaml", good}, "", "testdata/none.yaml: no CustomResourceDefinition found"},
		{[]string{good}, "", "takes an old and a new file, but got 1 arguments"},
	} {
		out, fail := run(t, append([]string{"init"}, test.args...)...)
		if !strings.Contains(out, test.out) || !strings.Contains(fail, test.fail) || (test.fail == "") != (fail == "") {
			t.Errorf("%v prints\n%s%s", test.args, out, fail)
		}
	}
	rules, _ := run(t, "init", good, good)
	text, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	const former = "      steps:\n      - {from: v1, to: v2, rules: [{wrap: bucket, to: buckets}]}\n"
	indented := "      " + strings.ReplaceAll(strings.TrimSpace(rules), "\n", "\n      ") + "\n"
	file := filepath.Join(t.TempDir(), "crd.yaml")
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), former, indented, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, fail := run(t, "test", file, "--objects=10"); fail != "" {
		t.Errorf("%s%s\n%s", out, fail, indented)
	}
}
