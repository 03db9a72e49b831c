package main

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestOnlyKubectlLoadsTranslations measures the allocations during the initialization of the first package that reads a
// translated text: 4 MB if the translations are loaded.
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

// TestKubectlLogs makes kubectl log its requests, as users do to find a fault.
func TestKubectlLogs(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"-v=7", "--v=7"} {
		out, err := command(t, "kubectl", "get", "namespaces", "--server=http://127.0.0.1:1", level).CombinedOutput()
		if err == nil {
			t.Errorf("%s: there is a server", level)
		}
		for _, text := range []string{
			`"Request" verb="GET" url="http://127.0.0.1:1/api`, "did you specify the right host",
		} {
			if !strings.Contains(string(out), text) {
				t.Errorf("%s: %s is not in\n%s", level, text, out)
			}
		}
	}
}
