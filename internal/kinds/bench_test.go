package kinds_test

import (
	"fmt"
	"testing"

	"github.com/bowsprit/bowsprit/internal/kinds"
)

// BenchmarkDecode decodes a config map of 5 KB in 50 keys, and one of 5 KB in one.
func BenchmarkDecode(b *testing.B) {
	for _, keys := range []int{1, 50} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			data := map[string]any{}
			for i := range keys {
				data[fmt.Sprintf("key-%d", i)] = fmt.Sprintf("%0*d", 5000/keys, i)
			}
			obj := map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap",
				"metadata": map[string]any{"name": "a", "namespace": "b", "labels": map[string]any{"app": "x"}},
				"data":     data,
			}
			rules := kinds.Resources()[1].Strategy
			b.ReportAllocs()
			for b.Loop() {
				if _, err := rules.Decode(obj); err != nil {
					b.Fatal(err)
				}
				rules.Validate(b.Context(), obj)
			}
		})
	}
}

// BenchmarkSchema builds the largest schema of a kind: the cost of the kind's first request.
func BenchmarkSchema(b *testing.B) {
	for b.Loop() {
		for _, r := range kinds.Resources() {
			if r.Kind == "CustomResourceDefinition" {
				if _, err := r.Storage.Schema(); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
}

// BenchmarkResources measures the share of the built-in kinds in the start of the server.
func BenchmarkResources(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		kinds.Resources()
	}
}

// BenchmarkValidate checks a valid pod and a valid job as a creation does.
func BenchmarkValidate(b *testing.B) {
	pod := func() map[string]any {
		return map[string]any{
			"restartPolicy": "Never", "dnsPolicy": "ClusterFirst", "terminationGracePeriodSeconds": int64(30),
			"securityContext": map[string]any{}, "schedulerName": "default-scheduler",
			"tolerations": []any{map[string]any{"key": "a", "operator": "Exists", "effect": "NoExecute"}},
			"volumes": []any{
				map[string]any{"name": "c", "configMap": map[string]any{"name": "c", "defaultMode": int64(420)}},
				map[string]any{"name": "e", "emptyDir": map[string]any{}},
			},
			"containers": []any{map[string]any{
				"name": "c", "image": "i", "imagePullPolicy": "Always", "terminationMessagePolicy": "File",
				"env":          []any{map[string]any{"name": "A", "value": "b"}},
				"ports":        []any{map[string]any{"containerPort": int64(80), "protocol": "TCP"}},
				"volumeMounts": []any{map[string]any{"name": "c", "mountPath": "/c"}},
				"resources":    map[string]any{"limits": map[string]any{"cpu": "1", "memory": "1Gi"}},
				"livenessProbe": map[string]any{
					"httpGet":       map[string]any{"path": "/", "port": int64(80), "scheme": "HTTP"},
					"periodSeconds": int64(10), "successThreshold": int64(1), "failureThreshold": int64(3),
				},
			}},
		}
	}
	labels := map[string]any{"app": "x"}
	for kind, spec := range map[string]map[string]any{
		"Pod": pod(),
		"Job": {
			"parallelism": int64(1), "completions": int64(1), "backoffLimit": int64(6), "manualSelector": true,
			"completionMode": "NonIndexed", "podReplacementPolicy": "TerminatingOrFailed",
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": pod()},
		},
	} {
		obj := map[string]any{"metadata": map[string]any{"name": "a", "namespace": "b"}, "spec": spec}
		rules := resource(b, kind).Strategy
		b.Run(kind, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if errs := rules.Validate(b.Context(), obj); len(errs) > 0 {
					b.Fatal(errs)
				}
			}
		})
	}
}
