package apps_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/internal/testing/controltest"
	"github.com/bowsprit/bowsprit/internal/testing/kubelettest"
	"github.com/bowsprit/bowsprit/testserver"
)

var (
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	replicaSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	controllers = schema.GroupVersionResource{Version: "v1", Resource: "replicationcontrollers"}
)

func start(t *testing.T, configure ...func(*bowsprit.Config)) *controltest.Cluster {
	c := controltest.Start(t, append(configure, testserver.WithWorkloads())...)
	kubelettest.Start(t, c.Config)
	return c
}

// pods returns the template of pods that no scheduler handles.
func pods(image string) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
		"spec": map[string]any{
			"schedulerName": "none", "containers": []any{map[string]any{"name": "c", "image": image}},
		},
	}
}

// workload returns an object of a kind with pods labelled app=web.
func workload(apiVersion, kind, name string, replicas int64) *unstructured.Unstructured {
	o := controltest.Object(apiVersion, kind, "default", name)
	selector := map[string]any{"matchLabels": map[string]any{"app": "web"}}
	if kind == "ReplicationController" {
		selector = map[string]any{"app": "web"}
	}
	o.Object["spec"] = map[string]any{"replicas": replicas, "selector": selector, "template": pods("a")}
	return o
}

func number(o *unstructured.Unstructured, path ...string) int64 {
	if o == nil {
		return -1
	}
	n, _, _ := unstructured.NestedInt64(o.Object, path...)
	return n
}

// settled reports whether a Deployment has rolled out with so many replicas.
func settled(d *unstructured.Unstructured, replicas int64) bool {
	if d == nil || number(d, "status", "observedGeneration") != d.GetGeneration() {
		return false
	}
	for _, field := range []string{"replicas", "updatedReplicas", "readyReplicas", "availableReplicas"} {
		if number(d, "status", field) != replicas {
			return false
		}
	}
	return slices.Contains(reasons(d), "Progressing=True NewReplicaSetAvailable") &&
		slices.Contains(reasons(d), "Available=True MinimumReplicasAvailable")
}

func reasons(o *unstructured.Unstructured) (out []string) {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, v := range list {
		c, _ := v.(map[string]any)
		out = append(out, c["type"].(string)+"="+c["status"].(string)+" "+c["reason"].(string))
	}
	return out
}

func patch(c *controltest.Cluster, gvr schema.GroupVersionResource, name, data string) {
	c.Helper()
	_, err := c.In(gvr, "default").Patch(c.Context(), name, types.MergePatchType, []byte(data), metav1.PatchOptions{})
	if err != nil {
		c.Fatal(err)
	}
}

// TestDeployment checks that a Deployment creates a ReplicaSet named by the hash of its template, rolls out another
// one, rolls back, and is scaled.
func TestDeployment(t *testing.T) {
	c := start(t)
	c.Create(deployments, workload("apps/v1", "Deployment", "web", 3))
	rolledOut := func(replicas int64) func(map[string]*unstructured.Unstructured) bool {
		return func(all map[string]*unstructured.Unstructured) bool { return settled(all["web"], replicas) }
	}
	c.When(deployments, "default", "the first rollout", rolledOut(3))
	first := sets(c)
	if len(first) != 1 || first[0].GetName() != "web-"+first[0].GetLabels()["pod-template-hash"] {
		t.Fatalf("ReplicaSets: %v", first)
	}
	if a := first[0].GetAnnotations(); a["deployment.kubernetes.io/revision"] != "1" ||
		a["deployment.kubernetes.io/desired-replicas"] != "3" || a["deployment.kubernetes.io/max-replicas"] != "4" {
		t.Errorf("annotations: %v", a)
	}
	patch(c, deployments, "web", `{"spec":{"template":{"metadata":{"annotations":{"v":"2"}}}}}`)
	c.When(deployments, "default", "the second revision", func(all map[string]*unstructured.Unstructured) bool {
		return settled(all["web"], 3) && all["web"].GetAnnotations()["deployment.kubernetes.io/revision"] == "2"
	})
	patch(c, deployments, "web", `{"spec":{"template":{"metadata":{"annotations":{"v":null}}}}}`)
	c.When(deployments, "default", "the third revision", func(all map[string]*unstructured.Unstructured) bool {
		return settled(all["web"], 3) && all["web"].GetAnnotations()["deployment.kubernetes.io/revision"] == "3"
	})
	for _, set := range sets(c) {
		want, history := int64(0), ""
		if set.GetName() == first[0].GetName() {
			want, history = 3, "1"
		}
		if number(&set, "spec", "replicas") != want ||
			set.GetAnnotations()["deployment.kubernetes.io/revision-history"] != history {
			t.Errorf("%s has %d replicas and annotations %v", set.GetName(), number(&set, "spec", "replicas"),
				set.GetAnnotations())
		}
	}
	patch(c, deployments, "web", `{"spec":{"replicas":1}}`)
	c.When(deployments, "default", "one replica", rolledOut(1))
	c.When(controltest.Pods, "default", "one pod", func(all map[string]*unstructured.Unstructured) bool {
		return len(controltest.Mine(all)) == 1
	})
	scaled := func(all map[string]*unstructured.Unstructured) bool {
		messages := ""
		for _, ev := range all {
			messages += ev.Object["reason"].(string) + " " + ev.Object["message"].(string) + "\n"
		}
		name := first[0].GetName()
		return strings.Contains(messages, "ScalingReplicaSet Scaled up replica set "+name+" from 0 to 3\n") &&
			// the tenth event with this reason or a later one, which may be combined with others
			strings.Contains(messages, "Scaled down replica set "+name+" from 3 to 1\n") &&
			strings.Contains(messages, "SuccessfulCreate Created pod: "+name+"-")
	}
	c.When(controltest.Events, "default", "the events of scaling", scaled)
}

func sets(c *controltest.Cluster) []unstructured.Unstructured {
	c.Helper()
	list, err := c.In(replicaSets, "default").List(c.Context(), metav1.ListOptions{})
	if err != nil {
		c.Fatal(err)
	}
	return list.Items
}

// TestPausedAndRecreated checks that a paused Deployment creates nothing and continues when resumed, and that the
// strategy Recreate leaves a time without pods.
func TestPausedAndRecreated(t *testing.T) {
	c := start(t)
	d := workload("apps/v1", "Deployment", "web", 2)
	d.Object["spec"].(map[string]any)["paused"] = true
	d.Object["spec"].(map[string]any)["strategy"] = map[string]any{"type": "Recreate"}
	c.Create(deployments, d)
	c.When(deployments, "default", "word of the pause", func(all map[string]*unstructured.Unstructured) bool {
		return all["web"] != nil && slices.Contains(reasons(all["web"]), "Progressing=Unknown DeploymentPaused")
	})
	if all := sets(c); len(all) != 0 {
		t.Errorf("a paused Deployment has ReplicaSets: %v", all)
	}
	patch(c, deployments, "web", `{"spec":{"paused":false}}`)
	done := func(all map[string]*unstructured.Unstructured) bool { return settled(all["web"], 2) }
	c.When(deployments, "default", "the rollout", done)
	patch(c, deployments, "web", `{"spec":{"template":{"metadata":{"annotations":{"v":"2"}}}}}`)
	c.When(deployments, "default", "the next rollout", func(all map[string]*unstructured.Unstructured) bool {
		return done(all) && all["web"].GetAnnotations()["deployment.kubernetes.io/revision"] == "2"
	})
}

// TestAdoption checks that sets adopt the pods that they select, release pods that they no longer select, and replace
// them.
func TestAdoption(t *testing.T) {
	for kind, gvr := range map[string]schema.GroupVersionResource{
		"ReplicaSet": replicaSets, "ReplicationController": controllers,
	} {
		t.Run(kind, func(t *testing.T) {
			c := start(t)
			orphan := controltest.Object("v1", "Pod", "default", "orphan")
			orphan.SetLabels(map[string]string{"app": "web"})
			orphan.Object["spec"] = pods("a")["spec"]
			c.Create(controltest.Pods, orphan)
			apiVersion := "apps/v1"
			if gvr.Group == "" {
				apiVersion = "v1"
			}
			set := c.Create(gvr, workload(apiVersion, kind, "web", 2))
			c.When(gvr, "default", "two replicas", func(all map[string]*unstructured.Unstructured) bool {
				return number(all["web"], "status", "availableReplicas") == 2
			})
			c.When(controltest.Pods, "default", "an adopted pod", func(all map[string]*unstructured.Unstructured) bool {
				return len(all) == 2 && metav1.IsControlledBy(all["orphan"], set)
			})
			patch(c, controltest.Pods, "orphan", `{"metadata":{"labels":{"app":"other"}}}`)
			c.When(controltest.Pods, "default", "a released pod", func(all map[string]*unstructured.Unstructured) bool {
				return len(all) == 3 && metav1.GetControllerOf(all["orphan"]) == nil
			})
			patch(c, gvr, "web", `{"spec":{"replicas":0}}`)
			c.Until(controltest.Pods, "default", "orphan")
			c.When(gvr, "default", "no replicas", func(all map[string]*unstructured.Unstructured) bool {
				return number(all["web"], "status", "replicas") == 0 &&
					number(all["web"], "status", "observedGeneration") == all["web"].GetGeneration()
			})
		})
	}
}
