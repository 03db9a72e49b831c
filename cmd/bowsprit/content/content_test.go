package content

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/output"
	"github.com/bowsprit/bowsprit/testserver"
)

const manifests = `
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {team: a}}
---
apiVersion: stable.example.com/v1
kind: CronTab
metadata: {name: nightly, namespace: shop}
spec: {cronSpec: "0 3 * * *", replicas: 2}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.stable.example.com}
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: crontabs, singular: crontab, kind: CronTab}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {cronSpec: {type: string}, replicas: {type: integer}}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: settings, namespace: shop}
  data: {a: "1"}
- apiVersion: v1
  kind: Secret
  metadata: {name: password, namespace: shop}
  stringData: {a: b}
- apiVersion: rbac.authorization.k8s.io/v1
  kind: ClusterRole
  metadata: {name: "shop:reader"}
  rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
`

// cronTab is the exported custom object.
const cronTab = `apiVersion: stable.example.com/v1
kind: CronTab
metadata:
  name: nightly
  namespace: shop
spec:
  cronSpec: 0 3 * * *
  replicas: 2
`

// filesOf returns the files below a directory, by path.
func filesOf(t *testing.T, directory string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(directory, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(directory, path)
		all[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func exported(t *testing.T, server *testserver.Server, directory string, flags exportFlags) string {
	t.Helper()
	var out bytes.Buffer
	flags.directory = directory
	if err := export(context.Background(), server.RESTConfig(), &flags, &out, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func imported(t *testing.T, server *testserver.Server, directory string, flags importFlags) (string, error) {
	t.Helper()
	var out bytes.Buffer
	flags.patience = time.Minute
	all, err := read([]string{directory}, nil)
	if err == nil {
		var result *importResult
		if result, err = all.apply(context.Background(), server.RESTConfig(), &flags); err == nil {
			err = result.show(&out, output.Text)
		}
	}
	return out.String(), err
}

// TestThereAndBack checks that objects stay the same through import, export and import into another server, and that
// the export contains only objects of users.
func TestThereAndBack(t *testing.T) {
	t.Parallel()
	source := t.TempDir()
	if err := os.WriteFile(filepath.Join(source, "all.yaml"), []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	one := testserver.Start(t, func(c *bowsprit.Config) { c.Authentication.BootstrapTokens = true })
	other := testserver.Start(t)
	for _, want := range []string{"6 created, 0 changed", "0 created, 0 changed, 6 unchanged"} {
		if out, err := imported(t, one, source, importFlags{}); err != nil || !strings.Contains(out, want) {
			t.Fatalf("%v %s, not %s", err, out, want)
		}
	}
	first := filepath.Join(t.TempDir(), "first")
	exported(t, one, first, exportFlags{})
	want := filesOf(t, first)
	for _, name := range []string{"cluster/clusterroles.rbac.authorization.k8s.io/shop%3Areader.yaml",
		"cluster/customresourcedefinitions.apiextensions.k8s.io/crontabs.stable.example.com.yaml",
		"cluster/namespaces/shop.yaml", "namespaces/shop/configmaps/settings.yaml",
		"namespaces/shop/crontabs.stable.example.com/nightly.yaml", marker} {
		if want[name] == "" {
			t.Errorf("there is no %s", name)
		}
	}
	if len(want) != 6 {
		t.Errorf("there are %d files: %v", len(want), want)
	}
	if got := want["namespaces/shop/crontabs.stable.example.com/nightly.yaml"]; got != cronTab {
		t.Errorf("it is exported as\n%s", got)
	}
	out, err := imported(t, other, first, importFlags{dryRun: true})
	if err != nil || !strings.Contains(out, "3 created") || !strings.Contains(out, "2 objects") {
		t.Errorf("a dry run: %v %s", err, out)
	}
	if out, err := imported(t, other, first, importFlags{}); err != nil || !strings.Contains(out, "5 created") {
		t.Fatalf("%v %s", err, out)
	}
	second := filepath.Join(t.TempDir(), "second")
	exported(t, other, second, exportFlags{})
	for name, text := range filesOf(t, second) {
		if want[name] != text {
			t.Errorf("%s was\n%s\nand is\n%s", name, want[name], text)
		}
	}
}

// TestExportAgain checks that an export updates a directory, and leaves files of other origin alone.
func TestExportAgain(t *testing.T) {
	t.Parallel()
	server := testserver.Start(t)
	source, directory := t.TempDir(), filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(filepath.Join(source, "all.yaml"), []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := imported(t, server, source, importFlags{}); err != nil {
		t.Fatal(err)
	}
	exported(t, server, directory, exportFlags{secrets: true})
	secret := filepath.Join(directory, "namespaces/shop/secrets/password.yaml")
	if info, err := os.Stat(secret); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the secret's file: %v %v", info, err)
	}
	part := exportFlags{namespaces: []string{"shop"}, kinds: []string{"configmaps"}}
	if out := exported(t, server, directory, part); !strings.Contains(out, "1 objects, 0 files changed, 0 removed") {
		t.Errorf("a part: %s", out)
	}
	if out := exported(t, server, directory, exportFlags{}); !strings.Contains(out, "0 files changed, 1 removed") {
		t.Errorf("without secrets: %s", out)
	}
	if _, err := os.Stat(filepath.Dir(secret)); err == nil {
		t.Error("the empty directory stays")
	}
	var out bytes.Buffer
	err := export(context.Background(), server.RESTConfig(), &exportFlags{directory: source}, &out, &out)
	if err == nil || !strings.Contains(err.Error(), "did not write") {
		t.Errorf("into a directory of others: %v", err)
	}
	part.kinds, part.directory, part.namespaces = nil, directory, []string{"nosuch", "none"}
	err = export(context.Background(), server.RESTConfig(), &part, &out, &out)
	if err == nil || !strings.Contains(err.Error(), `the namespace "nosuch" does not exist`) ||
		!strings.Contains(err.Error(), "nothing was written") {
		t.Errorf("unknown namespaces: %v", err)
	}
	part.namespaces = []string{"shop", "nosuch"}
	out.Reset()
	err = export(context.Background(), server.RESTConfig(), &part, &out, &out)
	if err == nil || strings.Contains(err.Error(), "nothing was written") ||
		!strings.Contains(out.String(), "objects") {
		t.Errorf("one unknown namespace: %v %s", err, &out)
	}
	part.kinds, part.namespaces = []string{"nope"}, []string{"shop"}
	err = export(context.Background(), server.RESTConfig(), &part, &out, &out)
	if err == nil || !strings.Contains(err.Error(), `no resource "nope"`) {
		t.Errorf("an unknown kind: %v", err)
	}
}

// TestImportOfWrongFiles checks that an import names invalid objects with their files, and applies the rest.
func TestImportOfWrongFiles(t *testing.T) {
	t.Parallel()
	server := testserver.Start(t)
	for name, tc := range map[string]struct{ text, want string }{
		"no kind": {"metadata: {name: a}\n", "all.yaml:1: apiVersion: is missing"},
		"no name": {"apiVersion: v1\nkind: ConfigMap\n", "all.yaml:1: metadata.name: is missing"},
		"no YAML": {"a: [\n", "all.yaml:1: this is not YAML: "},
		"nothing": {"", "has no YAML or JSON with objects"},
		"unknown": {"apiVersion: nope.example.com/v1\nkind: Nope\nmetadata: {name: a}\n", `no matches for kind "Nope"`},
		"broken between": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: before, namespace: default}\n---\na: [\n---\n" +
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: B}\n", "all.yaml:7: "},
		"one of both": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: A}\n---\n" +
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: fine, namespace: default}\n", `"A" is invalid`},
	} {
		directory := t.TempDir()
		if err := os.WriteFile(filepath.Join(directory, "all.yaml"), []byte(tc.text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := imported(t, server, directory, importFlags{})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
		if name == "one of both" && !strings.Contains(out, "1 created, 0 changed, 0 unchanged, 1 failed") {
			t.Errorf("%s: %s", name, out)
		}
	}
}
