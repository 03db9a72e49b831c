package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
	"github.com/bowsprit/bowsprit/testserver"
)

const ships = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ships.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Ship, plural: ships}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {
      port: {type: string}, crew: {type: integer}}}}}}
---
{apiVersion: example.com/v1, kind: Ship, metadata: {name: small, namespace: default}, spec: {crew: 2}}
---
{apiVersion: example.com/v1, kind: Ship, metadata: {name: large, namespace: default}, spec: {crew: 20}}
---
{apiVersion: example.com/v1, kind: Ship, metadata: {name: home, namespace: default}, spec: {crew: 1, port: Kiel}}
`

// TestDiffLive checks the findings of "crd diff --live" about the objects of a server.
func TestDiffLive(t *testing.T) {
	t.Parallel()
	server := testserver.Start(t)
	run := func(text string, args ...string) (string, int) {
		t.Helper()
		cmd := command(t, append(args, "--kubeconfig="+server.Kubeconfig())...)
		cmd.Dir = t.TempDir()
		if err := os.WriteFile(filepath.Join(cmd.Dir, "ships.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	if out, code := run(ships, "import", "ships.yaml"); code != 0 {
		t.Fatal(out)
	}
	if out, code := run(ships, "crd", "diff", "--live", "ships.yaml"); code != 0 ||
		!strings.Contains(out, "1 definitions, 0 errors, 0 warnings") {
		t.Errorf("%d: %s", code, out)
	}
	changed := strings.Replace(ships, "port: {type: string}, crew: {type: integer}", "crew: {type: integer, maximum: 9}", 1)
	out, code := run(changed, "crd", "diff", "--live", "ships.yaml")
	if code != int(exit.Negative) {
		t.Errorf("%d: %s", code, out)
	}
	for _, want := range []string{
		"v1: 1 of 3 stored objects become invalid: default/large: spec.crew: Invalid value: 20",
		"v1: 1 of 3 stored objects lose fields: default/home: loses spec.port (prunedObjects)\n",
		"1 definitions, 4 errors, 0 warnings, 0 exempted.\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%s is not in\n%s", want, out)
		}
	}
}
