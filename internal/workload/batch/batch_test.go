package batch_test

import (
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

var jobs = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}

// job returns a Job with an annotation that determines the course of its pods.
func job(name, becomes string, spec map[string]any) *unstructured.Unstructured {
	o := controltest.Object("batch/v1", "Job", "default", name)
	spec["template"] = map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{kubelettest.Annotation: becomes}},
		"spec": map[string]any{
			"schedulerName": "none", "restartPolicy": "Never",
			"containers": []any{map[string]any{"name": "c", "image": "a"}},
		},
	}
	o.Object["spec"] = spec
	return o
}

// story returns the conditions of a Job in their order, and its counters.
func story(o *unstructured.Unstructured) string {
	var out []string
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, v := range list {
		c, _ := v.(map[string]any)
		out = append(out, c["type"].(string)+"="+c["status"].(string)+" "+c["reason"].(string))
	}
	for _, field := range []string{"succeeded", "failed", "active"} {
		if n, ok, _ := unstructured.NestedInt64(o.Object, "status", field); ok && n != 0 {
			out = append(out, field+"="+string(rune('0'+n)))
		}
	}
	for _, field := range []string{"completedIndexes", "failedIndexes"} {
		if s, _, _ := unstructured.NestedString(o.Object, "status", field); s != "" {
			out = append(out, field+"="+s)
		}
	}
	return strings.Join(out, ", ")
}

// TestJobs runs Jobs of all kinds to their ends, and checks Kubernetes' conditions and their order.
func TestJobs(t *testing.T) {
	c := controltest.Start(t, testserver.WithWorkloads())
	kubelettest.Start(t, c.Config)
	wants := map[string]string{}
	for _, j := range []struct {
		name, becomes string
		spec          map[string]any
		want          string
	}{
		{"plain", kubelettest.Succeed, map[string]any{"completions": int64(3), "parallelism": int64(2)},
			"SuccessCriteriaMet=True CompletionsReached, Complete=True CompletionsReached, succeeded=3"},
		{"queue", kubelettest.Succeed, map[string]any{"parallelism": int64(2)},
			"SuccessCriteriaMet=True CompletionsReached, Complete=True CompletionsReached, succeeded=2"},
		{"indexed", kubelettest.Succeed, map[string]any{
			"completions": int64(4), "parallelism": int64(2), "completionMode": "Indexed",
		}, "SuccessCriteriaMet=True CompletionsReached, Complete=True CompletionsReached, succeeded=4, " +
			"completedIndexes=0-3"},
		{"fails", kubelettest.Fail, map[string]any{"backoffLimit": int64(0)},
			"FailureTarget=True BackoffLimitExceeded, Failed=True BackoffLimitExceeded, failed=1"},
		{"policy", kubelettest.Fail, map[string]any{"podFailurePolicy": map[string]any{"rules": []any{map[string]any{
			"action": "FailJob", "onExitCodes": map[string]any{"operator": "In", "values": []any{int64(3)}},
		}}}}, "FailureTarget=True PodFailurePolicy, Failed=True PodFailurePolicy, failed=1"},
		{"indexes-fail", kubelettest.Fail, map[string]any{
			"completions": int64(2), "parallelism": int64(2), "completionMode": "Indexed",
			"backoffLimitPerIndex": int64(0),
		}, "FailureTarget=True FailedIndexes, Failed=True FailedIndexes, failed=2, failedIndexes=0,1"},
		{"runs", "", map[string]any{"completions": int64(2), "parallelism": int64(2)}, "active=2"},
		{"suspended", kubelettest.Succeed, map[string]any{"suspend": true}, "Suspended=True JobSuspended"},
	} {
		c.Create(jobs, job(j.name, j.becomes, j.spec))
		wants[j.name] = j.want
	}
	until := func() {
		t.Helper()
		c.When(jobs, "default", "the ends of all Jobs", func(all map[string]*unstructured.Unstructured) bool {
			for name, want := range wants {
				if all[name] == nil || story(all[name]) != want {
					return false
				}
			}
			return true
		})
	}
	until()
	for name, data := range map[string]string{
		"suspended": `{"spec":{"suspend":false}}`, "runs": `{"spec":{"suspend":true}}`,
	} {
		if _, err := c.In(jobs, "default").Patch(c.Context(), name, types.MergePatchType, []byte(data),
			metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	wants["suspended"] = "Suspended=False JobResumed, SuccessCriteriaMet=True CompletionsReached, " +
		"Complete=True CompletionsReached, succeeded=1"
	wants["runs"] = "Suspended=True JobSuspended"
	until()
	held, err := c.In(controltest.Pods, "default").List(c.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range held.Items {
		if len(p.GetFinalizers()) > 0 {
			t.Errorf("pod %s is over and counted, and has finalizers %v", p.GetName(), p.GetFinalizers())
		}
	}
	c.Delete(jobs, job("plain", "", map[string]any{}), metav1.DeletePropagationBackground)
	c.When(controltest.Pods, "default", "no pods of the deleted Job",
		func(all map[string]*unstructured.Unstructured) bool {
			for _, p := range all {
				if p.GetLabels()["job-name"] == "plain" {
					return false
				}
			}
			return true
		})
}
