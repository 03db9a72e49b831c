package cel

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
)

// TestKeepCompatible runs itself in a separate process with 1.33 as the oldest release: that lacks the list functions
// of 1.34, but stored expressions may use them.
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
