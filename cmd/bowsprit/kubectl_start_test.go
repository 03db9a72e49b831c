package main

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
)

// TestOnlyKubectlLoadsTranslations reads what the initialization of the package that asks for the first text allocates:
// 4 MB with the translations.
func TestOnlyKubectlLoadsTranslations(t *testing.T) {
	t.Parallel()
	line := regexp.MustCompile(`(?m)^init k8s\.io/kubectl/pkg/cmd/options .* (\d+) bytes`)
	for name, loads := range map[string]bool{"bowsprit": false, "kubectl": true} {
		cmd := exec.Command(os.Args[0], "-test.run=^$")
		cmd.Args[0], cmd.Env = name, append(os.Environ(), "GODEBUG=inittrace=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		found := line.FindSubmatch(out)
		if found == nil {
			t.Fatalf("%s: no such line in\n%s", name, out)
		}
		if bytes, _ := strconv.Atoi(string(found[1])); bytes > 1_000_000 != loads {
			t.Errorf("%s: %d bytes", name, bytes)
		}
	}
}
