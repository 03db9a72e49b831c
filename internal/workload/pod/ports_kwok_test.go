package pod_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/internal/testing/controltest"
)

// define creates the definition of a kind of kwok's.
func (s *site) define(kind, plural, scope string) schema.GroupVersionResource {
	s.Helper()
	d := controltest.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", plural+".kwok.x-k8s.io")
	d.Object["spec"] = map[string]any{
		"group": "kwok.x-k8s.io", "scope": scope,
		"names": map[string]any{"kind": kind, "plural": plural, "singular": strings.ToLower(kind)},
		"versions": []any{map[string]any{
			"name": "v1alpha1", "served": true, "storage": true,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "x-kubernetes-preserve-unknown-fields": true,
			}},
		}},
	}
	d.SetAnnotations(map[string]string{"api-approved.kubernetes.io": "unapproved, a test"}) // for *.k8s.io
	s.Create(controltest.Definitions, d)
	return schema.GroupVersionResource{Group: "kwok.x-k8s.io", Version: "v1alpha1", Resource: plural}
}

// TestPortForwardKinds checks that kwok's objects name local ports: by the name of the pod, and by a selector.
func TestPortForwardKinds(t *testing.T) {
	local := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "local")
	}))
	defer local.Close()
	s := start(t, port(local))
	one, all := s.define("PortForward", "portforwards", "Namespaced"),
		s.define("ClusterPortForward", "clusterportforwards", "Cluster")
	for _, pod := range []string{"named", "selected", "other"} {
		s.pod(pod, "")
	}
	target := fmt.Sprintf("target: {address: 127.0.0.1, port: %s}", port(local))
	for kind, gvr := range map[string]schema.GroupVersionResource{"PortForward": one, "ClusterPortForward": all} {
		namespace, name, selector := "default", "named", ""
		if kind != "PortForward" {
			namespace, name, selector = "", "any", "selector: {matchNames: [selected], matchNamespaces: [default]}, "
		}
		o := controltest.Object("kwok.x-k8s.io/v1alpha1", kind, namespace, name)
		var spec map[string]any
		if err := yaml.Unmarshal([]byte("{"+selector+"forwards: [{ports: [8080], "+target+"}]}"), &spec); err != nil {
			t.Fatal(err)
		}
		o.Object["spec"] = spec
		raw, err := o.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if err := o.UnmarshalJSON(raw); err != nil { // with integers
			t.Fatal(err)
		}
		s.Create(gvr, o)
	}
	for path, want := range map[string]string{
		"named:8080": "200 local", "selected:8080": "200 local", "other:8080": "connection refused",
		"named:81": "connection refused", "selected:81": "connection refused",
	} {
		if got := s.get("pods/" + path + "/proxy/"); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// TestKwokRefused checks that no object of kwok's kinds runs a program, reads a file or reaches another address of the
// server's machine.
func TestKwokRefused(t *testing.T) {
	s := start(t, "9443")
	kinds := map[string]schema.GroupVersionResource{}
	for kind, plural := range map[string]string{
		"Exec": "execs", "ClusterExec": "clusterexecs", "Logs": "logs", "ClusterLogs": "clusterlogs",
		"Attach": "attaches", "ClusterAttach": "clusterattaches", "PortForward": "portforwards",
		"ClusterPortForward": "clusterportforwards",
	} {
		scope := "Namespaced"
		if strings.HasPrefix(kind, "Cluster") {
			scope = "Cluster"
		}
		kinds[kind] = s.define(kind, plural, scope)
	}
	const programs, files = "Forbidden: the server runs no programs", "Forbidden: the server reads no files"
	for _, test := range []struct{ kinds, spec, want string }{
		{"Exec ClusterExec", "execs: [{containers: [a], local: {}}]", "spec.execs[0].local: " + programs},
		{"Exec ClusterExec", "execs: [{containers: [a]}, {local: {workDir: /}}]", "spec.execs[1].local: " + programs},
		{"Exec ClusterExec", "execs: [{containers: [a]}]", ""},
		{"Logs ClusterLogs", "logs: [{logsFile: /etc/passwd}]", "spec.logs[0].logsFile: " + files},
		{"Logs ClusterLogs", "logs: [{previousLogsFile: /etc/passwd}]", "spec.logs[0].previousLogsFile: " + files},
		{"Logs ClusterLogs", "logs: [{follow: true}]", ""},
		{"Attach ClusterAttach", "attaches: [{logsFile: /etc/passwd}]", "spec.attaches[0].logsFile: " + files},
		{"PortForward ClusterPortForward", "forwards: [{command: [sh]}]", "spec.forwards[0].command: " + programs},
		{"PortForward ClusterPortForward", "forwards: [{target: {address: 10.0.0.1, port: 9443}}]",
			"spec.forwards[0].target.address: Forbidden: only ports of the server's machine"},
		{"PortForward ClusterPortForward", "forwards: [{target: {address: 169.254.169.254, port: 9443}}]",
			"spec.forwards[0].target.address: Forbidden: only ports of the server's machine"},
		{"PortForward ClusterPortForward", "forwards: [{target: {address: localhost, port: 22}}]",
			"spec.forwards[0].target.port: Forbidden: local port 22 is not allowed"},
		{"PortForward ClusterPortForward", "forwards: [{target: {address: '::1', port: 9443}}]", ""},
	} {
		for kind := range strings.FieldsSeq(test.kinds) {
			body := fmt.Sprintf("{apiVersion: kwok.x-k8s.io/v1alpha1, kind: %s, metadata: {name: a}, spec: {%s}}", kind,
				test.spec)
			raw, err := yaml.YAMLToJSON([]byte(body))
			if err != nil {
				t.Fatal(err)
			}
			namespace := "default"
			if strings.HasPrefix(kind, "Cluster") {
				namespace = ""
			}
			client := s.In(kinds[kind], namespace)
			_, err = client.Patch(t.Context(), "a", "application/apply-patch+yaml", raw, metav1.PatchOptions{
				FieldManager: "test", DryRun: []string{"All"},
			})
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s {%s}: %v, want %q", kind, test.spec, err, test.want)
			}
		}
	}
}
