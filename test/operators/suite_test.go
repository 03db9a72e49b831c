package operators

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// jobDurations makes the pods of Jobs run as long as the sleep command of their first container, and exit with its
// code: simulated nodes run nothing, and would complete them at once. A startup probe delays the start of its pod in
// the same way.
const jobDurations = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: asked}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}]
  reinvocationPolicy: Never
  failurePolicy: Fail
  variables:
  - name: first
    expression: object.spec.containers[0]
  - name: command
    expression: (variables.first.?command.orValue([]) + variables.first.?args.orValue([])).join(" ")
  - name: sleep
    expression: variables.command.find("sleep [0-9]+s?( && exit [0-9]+)?$").find("[0-9]+")
  - name: exit
    expression: variables.command.find("exit [0-9]+$").find("[0-9]+")
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: >-
        Object{metadata: Object.metadata{annotations: {
          "bowsprit.dev/simulate-run-time": (variables.sleep == "" ? "0" : variables.sleep) + "s",
          "bowsprit.dev/simulate-exit-code": variables.exit == "" ? "0" : variables.exit,
          "bowsprit.dev/simulate-start-delay":
            string(variables.first.?startupProbe.initialDelaySeconds.orValue(0)) + "s"}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: asked}
spec:
  policyName: asked
  matchResources:
    objectSelector: {matchExpressions: [{key: batch.kubernetes.io/job-name, operator: Exists}]}
`

// suite runs an operator's own suite in a directory to its end, with the built-in kubectl as kubectl.
func (s *server) suite(t *testing.T, name, dir string, args ...string) {
	t.Helper()
	bin := t.TempDir()
	script := "#!/bin/sh\nexec " + filepath.Join(binaries, "bowsprit") + " kubectl \"$@\"\n"
	must(t, os.WriteFile(filepath.Join(bin, "kubectl"), []byte(script), 0o700))
	cmd := exec.CommandContext(t.Context(), filepath.Join(binaries, name), append([]string{"-test.v"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig, "PATH="+bin+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	for line := range strings.Lines(string(out)) { // the tests by name, and Ginkgo's sum
		if strings.Contains(line, "--- ") || strings.HasPrefix(line, "Ran ") || strings.Contains(line, " Passed | ") {
			t.Log(strings.TrimSuffix(line, "\n"))
		}
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, tail(string(out)))
	}
}
