package endpoints_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/testing/controltest"
	"github.com/bowsprit/bowsprit/internal/testing/kubelettest"
	"github.com/bowsprit/bowsprit/testserver"
)

var (
	services  = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	endpoints = schema.GroupVersionResource{Version: "v1", Resource: "endpoints"}
	slicesOf  = schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}
)

// TestEndpoints checks the slices and Endpoints of services, with ready and unready pods.
func TestEndpoints(t *testing.T) {
	c := controltest.Start(t, testserver.WithWorkloads("nodes=0"))
	kubelettest.Start(t, c.Config)
	node := controltest.Object("v1", "Node", "", "n")
	node.SetLabels(map[string]string{"topology.kubernetes.io/zone": "z"})
	c.Create(controltest.Nodes, node)
	svc := controltest.Object("v1", "Service", "default", "web")
	svc.SetLabels(map[string]string{"team": "a"})
	svc.Object["spec"] = map[string]any{
		"selector": map[string]any{"app": "web"},
		"ports":    []any{map[string]any{"name": "http", "port": int64(80), "targetPort": "serve"}},
	}
	c.Create(services, svc)
	c.When(slicesOf, "default", "an empty slice", slices1("web: "))
	for name, becomes := range map[string]string{"a": "", "b": kubelettest.Hang} {
		pod := controltest.PodOn("n", "default", name)
		pod.SetLabels(map[string]string{"app": "web"})
		pod.SetAnnotations(map[string]string{kubelettest.Annotation: becomes})
		container := pod.Object["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
		container["ports"] = []any{map[string]any{"name": "serve", "containerPort": int64(8080)}}
		c.Create(controltest.Pods, pod)
	}
	c.When(slicesOf, "default", "the pod that is ready", slices1("web: http:8080 a=true n z"))
	c.When(endpoints, "default", "Endpoints", func(all map[string]*unstructured.Unstructured) bool {
		o := all["web"]
		return o != nil && strings.Contains(fmt.Sprint(o.Object["subsets"]), "10.0.0.9") &&
			o.GetLabels()["endpoints.kubernetes.io/managed-by"] == "endpoint-controller" && o.GetLabels()["team"] == "a"
	})
	_, err := c.In(controltest.Pods, "default").Patch(c.Context(), "b", types.MergePatchType,
		[]byte(`{"status":{"podIP":"10.0.0.8","podIPs":[{"ip":"10.0.0.8"}]}}`), metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
	c.When(slicesOf, "default", "the pod that is not ready", slices1("web: http:8080 a=true n z, b=false n z"))
	c.Delete(services, svc, "")
	c.When(endpoints, "default", "no Endpoints", func(all map[string]*unstructured.Unstructured) bool {
		return all["web"] == nil
	})
	c.When(slicesOf, "default", "no slices", slices1(""))
}

// TestMirrored checks that clients' Endpoints of a service without a selector are mirrored to a slice, which is deleted
// with them.
func TestMirrored(t *testing.T) {
	c := controltest.Start(t, testserver.WithWorkloads("nodes=0"))
	svc := controltest.Object("v1", "Service", "default", "web")
	svc.Object["spec"] = map[string]any{"ports": []any{map[string]any{"port": int64(80)}}}
	c.Create(services, svc)
	of := controltest.Object("v1", "Endpoints", "default", "web")
	of.Object["subsets"] = []any{map[string]any{
		"addresses": []any{map[string]any{"ip": "10.1.2.3"}}, "ports": []any{map[string]any{"port": int64(8080)}},
	}}
	c.Create(endpoints, of)
	mirrored := func(want string) func(map[string]*unstructured.Unstructured) bool {
		return func(all map[string]*unstructured.Unstructured) bool {
			got := ""
			for _, o := range all {
				if o.GetLabels()["endpointslice.kubernetes.io/managed-by"] == "endpointslicemirroring-controller.k8s.io" {
					got += fmt.Sprint(o.Object["endpoints"], o.GetOwnerReferences()[0].Kind)
				}
			}
			return got == want
		}
	}
	c.When(slicesOf, "default", "a mirror", mirrored("[map[addresses:[10.1.2.3] conditions:map[ready:true]]]Endpoints"))
	c.Delete(endpoints, of, "")
	c.When(slicesOf, "default", "no mirror", mirrored(""))
}

// slices1 reports whether the slices of the service web match want.
func slices1(want string) func(map[string]*unstructured.Unstructured) bool {
	return func(all map[string]*unstructured.Unstructured) bool {
		var out []string
		for _, o := range all {
			if o.GetLabels()["kubernetes.io/service-name"] != "web" {
				continue
			}
			ports := ""
			list, _, _ := unstructured.NestedSlice(o.Object, "ports")
			for _, v := range list {
				p := v.(map[string]any)
				ports += fmt.Sprintf("%v:%v ", p["name"], p["port"])
			}
			var pods []string
			list, _, _ = unstructured.NestedSlice(o.Object, "endpoints")
			for _, v := range list {
				e := v.(map[string]any)
				pods = append(pods, fmt.Sprintf("%v=%v %v %v", e["targetRef"].(map[string]any)["name"],
					e["conditions"].(map[string]any)["ready"], e["nodeName"], e["zone"]))
			}
			slices.Sort(pods)
			out = append(out, "web: "+ports+strings.Join(pods, ", "))
		}
		return strings.Join(out, "; ") == want
	}
}
