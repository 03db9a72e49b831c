package wire

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/conversion"
	"github.com/bowsprit/bowsprit/testserver"
)

const ruledFile = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: things.hooked.example.com
  annotations:
    bowsprit.dev/conversion: |
      steps: [{from: v1, to: v2, rules: [{wrap: bucket, to: buckets}]}]
spec:
  group: hooked.example.com
  scope: Cluster
  names: {plural: things, kind: Thing}
  conversion: {strategy: Declarative}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {bucket: {type: string}}}}}
  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {buckets: {type: array,
      items: {type: string}}}}}}
`

// TestConvertServe runs "bowsprit convert serve" for a server that does not know the rules: its definition has only the
// webhook, as in an ordinary cluster.
func TestConvertServe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "crd.yaml")
	if err := os.WriteFile(file, []byte(ruledFile), 0o600); err != nil {
		t.Fatal(err)
	}
	address := startWebhook(t, file, "--cert-dir", dir)
	authority, err := os.ReadFile(filepath.Join(dir, "tls.crt"))
	if err != nil {
		t.Fatal(err)
	}
	client := definitionsClient(t, testserver.Start(t).RESTConfig(), "application/json")
	do(t, client.Post().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").Body(fmt.Appendf(nil,
		`{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": {"name": "things.hooked.example.com"}, "spec": {"group": "hooked.example.com", "scope": "Cluster",
		"names": {"plural": "things", "kind": "Thing"}, "conversion": {"strategy": "Webhook", "webhook": {
			"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://%s/convert", "caBundle": "%s"}}},
		"versions": [
			{"name": "v1", "served": true, "storage": true,
				"schema": {"openAPIV3Schema": {"type": "object", "properties": {"bucket": {"type": "string"}}}}},
			{"name": "v2", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "object",
				"properties": {"buckets": {"type": "array", "items": {"type": "string"}}}}}}]}}`,
		address, base64.StdEncoding.EncodeToString(authority))))
	const things = "/apis/hooked.example.com/%s/things"
	send := func(version, body string) {
		t.Helper()
		do(t, client.Post().AbsPath(fmt.Sprintf(things, version)).Body([]byte(body)))
	}
	send("v1", `{"apiVersion": "hooked.example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "bucket": "x"}`)
	send("v2", `{"apiVersion": "hooked.example.com/v2", "kind": "Thing", "metadata": {"name": "b"}, "buckets": ["x", "y"]}`)
	for version, want := range map[string][]string{
		"v1": {`"bucket":"x"`, `"bowsprit.dev/conversion-stash":"{\"v2\":{\"buckets\":[[\"x\",\"y\"]]}}"`},
		"v2": {`"buckets":["x"]`, `"buckets":["x","y"]`},
	} {
		got := do(t, client.Get().AbsPath(fmt.Sprintf(things, version)))
		for _, part := range want {
			if !strings.Contains(got, part) {
				t.Errorf("%s has no %s: %s", version, part, got)
			}
		}
	}
}

// startWebhook runs "bowsprit convert serve" until the test ends, and returns the address.
func startWebhook(t *testing.T, args ...string) string {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	out, in := io.Pipe()
	cmd := conversion.Command()
	cmd.SetArgs(append([]string{"serve", "--address", "127.0.0.1:0"}, args...))
	cmd.SetOut(in)
	ended := make(chan error, 1) // one result
	go func() {
		err := cmd.ExecuteContext(ctx)
		in.CloseWithError(err)
		ended <- err
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal(lines.Err())
	}
	_, rest, _ := strings.Cut(lines.Text(), "https://")
	address, _, ok := strings.Cut(rest, "/convert")
	if !ok {
		t.Fatalf("printed %q", lines.Text())
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return address
}
