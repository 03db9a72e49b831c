package oraclebuiltins

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestBuiltinModels compares internal/api/openapi/builtin.json with the documents of k8s.io/kubernetes: the parameters
// of subresources with bodies of another kind than their object, and the definitions that only documents of built-in
// kinds need.
func TestBuiltinModels(t *testing.T) {
	type parameter struct {
		Name        string `json:"name"`
		Type        string `json:"type,omitempty"`
		Description string `json:"description,omitempty"`
		Shared      string `json:"shared,omitempty"`
		In          string `json:"in,omitempty"`
		Ref         string `json:"$ref,omitempty"`
	}
	type groupVersion struct {
		Group   string `json:"group"`
		Version string `json:"version"`
	}
	var v2 struct {
		Paths map[string]struct {
			Parameters []parameter `json:"parameters"`
		} `json:"paths"`
		Parameters  map[string]parameter `json:"parameters"`
		Definitions map[string]struct {
			Kinds []groupVersion `json:"x-kubernetes-group-version-kind"`
		} `json:"definitions"`
	}
	var v3 struct {
		Components struct {
			Schemas map[string]any `json:"schemas"`
		} `json:"components"`
	}
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name, into := range map[string]any{
		"swagger.json": &v2, "v3/api__v1_openapi.json": &v3, "v3/api_openapi.json": &v3, "v3/apis_openapi.json": &v3,
		"v3/version_openapi.json": &v3,
	} {
		data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "api/openapi-spec", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, into); err != nil {
			t.Fatal(err)
		}
	}
	out := struct {
		Options map[string][]parameter `json:"options"`
		Path    parameter              `json:"path"`
		Known   []groupVersion         `json:"known"`
		Schemas map[string]any         `json:"schemas"`
	}{map[string][]parameter{}, parameter{}, v2.Definitions["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"].Kinds,
		map[string]any{}}
	resolve := func(p parameter) parameter {
		shared := strings.TrimPrefix(p.Ref, "#/parameters/")
		if shared != "" {
			p = v2.Parameters[shared]
		}
		p.Shared = shared
		return p
	}
	for kind, path := range map[string]string{
		"PodAttachOptions":      "namespaces/{namespace}/pods/{name}/attach",
		"PodExecOptions":        "namespaces/{namespace}/pods/{name}/exec",
		"PodPortForwardOptions": "namespaces/{namespace}/pods/{name}/portforward",
		"PodLogOptions":         "namespaces/{namespace}/pods/{name}/log",
		"PodProxyOptions":       "namespaces/{namespace}/pods/{name}/proxy",
		"ServiceProxyOptions":   "namespaces/{namespace}/services/{name}/proxy",
		"NodeProxyOptions":      "nodes/{name}/proxy",
	} {
		out.Options[kind] = []parameter{}
		for _, p := range v2.Paths["/api/v1/"+path].Parameters {
			if p = resolve(p); p.In == "query" && p.Name != "pretty" {
				p.In = ""
				out.Options[kind] = append(out.Options[kind], p)
			}
		}
	}
	for _, p := range v2.Paths["/api/v1/nodes/{name}/proxy/{path}"].Parameters {
		if p = resolve(p); p.Name == "path" && p.In == "path" {
			out.Path = p
		}
	}
	for _, name := range []string{
		"io.k8s.api.policy.v1.Eviction", "io.k8s.apimachinery.pkg.version.Info",
		"io.k8s.apimachinery.pkg.apis.meta.v1.APIResource",
		"io.k8s.apimachinery.pkg.apis.meta.v1.APIVersions", "io.k8s.apimachinery.pkg.apis.meta.v1.APIGroup",
		"io.k8s.apimachinery.pkg.apis.meta.v1.APIGroupList",
		"io.k8s.apimachinery.pkg.apis.meta.v1.GroupVersionForDiscovery",
		"io.k8s.apimachinery.pkg.apis.meta.v1.ServerAddressByClientCIDR",
		"io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList", "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent",
		"io.k8s.apimachinery.pkg.runtime.RawExtension",
	} {
		if out.Schemas[name] = v3.Components.Schemas[name]; out.Schemas[name] == nil {
			t.Fatalf("no definition of %s", name)
		}
	}
	want, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	const file = "../../internal/api/openapi/builtin.json"
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
		t.Errorf(
			"internal/api/openapi/builtin.json is not what Kubernetes publishes (%v): run go test -run TestBuiltinModels -update", err)
	}
}
