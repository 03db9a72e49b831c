package cel

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
)

// TestKeepCompatible runs itself in a process of its own, for which the oldest release is 1.33: that does not know the
// functions of lists of 1.34 yet, but what is stored may have them.
func TestKeepCompatible(t *testing.T) {
	t.Parallel()
	const mark = "BOWSPRIT_TEST_COMPATIBLE"
	compiles := func(env *environment) bool {
		_, issues := env.check("[1, 2].reverse() == [2, 1]", env.decls)
		return issues.Err() == nil
	}
	if os.Getenv(mark) == "" {
		if !compiles(newExpressions()) {
			t.Error("1.35 does not know reverse")
		}
		//nolint:gosec // this program
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKeepCompatible$", "-test.v")
		child.Env = append(os.Environ(), mark+"=1")
		out, err := child.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: TestKeepCompatible") {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	if !compiles(newExpressions()) {
		t.Error("unknown before")
	}
	KeepCompatible(version.MajorMinor(1, 33))
	KeepCompatible(version.MajorMinor(1, 36))
	if got := CompatibilityVersion(); got.String() != "1.33" {
		t.Errorf("compatible with %s", got)
	}
	if compiles(newExpressions()) {
		t.Error("1.33 knows reverse")
	}
	if !compiles(storedExpressions()) {
		t.Error("a stored expression does not compile")
	}
}
