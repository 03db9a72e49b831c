package quantity

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestEveryPath finds a hostile quantity at each place where a type has one, and names the place.
func TestEveryPath(t *testing.T) {
	for _, c := range []struct {
		into  any
		paths []string
	}{
		{corev1.Pod{}, []string{
			"spec.containers[0].resources.requests[cpu]", "spec.initContainers[1].resources.limits[a.b/c]",
			"spec.ephemeralContainers[0].resources.limits[cpu]", "spec.overhead[memory]",
			"spec.volumes[2].emptyDir.sizeLimit", "spec.containers[0].env[3].valueFrom.resourceFieldRef.divisor",
			"spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources.requests[storage]",
			"spec.volumes[0].downwardAPI.items[0].resourceFieldRef.divisor",
			"spec.volumes[0].projected.sources[1].downwardAPI.items[0].resourceFieldRef.divisor",
			"spec.resources.requests[cpu]", "status.containerStatuses[0].allocatedResources[cpu]",
		}},
		{corev1.Node{}, []string{"status.capacity[cpu]", "status.allocatable[x/y]"}},
		{corev1.PersistentVolumeClaim{}, []string{"spec.resources.requests[storage]", "status.capacity[storage]"}},
		{corev1.PersistentVolume{}, []string{"spec.capacity[storage]"}},
		{corev1.LimitRange{}, []string{"spec.limits[0].maxLimitRequestRatio[cpu]"}},
		{corev1.ResourceQuota{}, []string{"spec.hard[pods]", "status.used[pods]"}},
		{autoscalingv2.HorizontalPodAutoscaler{}, []string{
			"spec.metrics[0].resource.target.averageValue", "spec.behavior.scaleUp.tolerance",
			"status.currentMetrics[0].pods.current.averageValue",
		}},
		{resourcev1.ResourceSlice{}, []string{
			"spec.devices[0].capacity[a].value", "spec.sharedCounters[0].counters[a].value",
			"spec.devices[0].capacity[a].requestPolicy.validValues[1]",
		}},
		{resourcev1.ResourceClaim{}, []string{"spec.devices.requests[0].exactly.capacity.requests[x]"}},
	} {
		for _, path := range c.paths {
			typ := reflect.TypeOf(c.into)
			fill := func(text string) any { return at(path, text) }
			var refused *Refusal
			if err := Object(typ, fill("1e-1000000000")); !errors.As(err, &refused) || refused.Field.Field != path {
				t.Errorf("%v: got %v, want it at %s", typ, err, path)
			}
			if err := Object(typ, fill("100m")); err != nil {
				t.Errorf("%v: %v", typ, err)
			}
			long := fill("1e-20")
			if err := Object(typ, long); err != nil || !reflect.DeepEqual(long, fill("1e-9")) {
				t.Errorf("%v: got %v, %v", typ, long, err)
			}
			message := encoded(t, typ, fill("1e2000001"))
			if err := Message(typ, message); err != nil {
				t.Errorf("%v: %v", typ, err)
			}
			message = encoded(t, typ, fill("1e3000003"))
			if err := Message(typ, message); !errors.As(err, &refused) || refused.Field.Field != path {
				t.Errorf("%v: got %v of a message, want it at %s", typ, err, path)
			}
		}
	}
}

// at makes an object with one value at a path such as spec.limits[0].max[cpu].
func at(path string, v any) any {
	if path == "" {
		return v
	}
	if path[0] == '[' {
		end := 1
		for path[end] != ']' {
			end++
		}
		key, rest := path[1:end], path[end+1:]
		if key[0] >= '0' && key[0] <= '9' {
			list := make([]any, int(key[0]-'0')+1)
			for i := range list {
				list[i] = map[string]any{}
			}
			if rest == "" {
				for i := range list {
					list[i] = "1"
				}
			}
			list[len(list)-1] = at(rest, v)
			return list
		}
		return map[string]any{key: at(rest, v)}
	}
	if path[0] == '.' {
		path = path[1:]
	}
	end := 0
	for end < len(path) && path[end] != '.' && path[end] != '[' {
		end++
	}
	return map[string]any{path[:end]: at(path[end:], v)}
}

// encoded returns the protobuf message of an object. The library parses and prints a positive exponent in no time.
func encoded(t *testing.T, typ reflect.Type, obj any) []byte {
	t.Helper()
	doc, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	into := reflect.New(typ).Interface()
	if err := json.Unmarshal(doc, into); err != nil {
		t.Fatal(err)
	}
	message, err := into.(interface{ Marshal() ([]byte, error) }).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return message
}

// TestDamagedMessages damages messages at random: if the library decodes one with a hostile quantity, Message has
// refused it.
func TestDamagedMessages(t *testing.T) {
	typ := reflect.TypeFor[corev1.Pod]()
	whole := encoded(t, typ, map[string]any{
		"metadata": map[string]any{"name": "a", "labels": map[string]any{"a": "b"}},
		"spec": map[string]any{
			"overhead": map[string]any{"memory": "1e3000003"},
			"containers": []any{map[string]any{
				"name": "c", "resources": map[string]any{
					"requests": map[string]any{"cpu": "1e3000003", "memory": "1e3000003"},
				},
			}},
		},
	})
	r := rand.New(rand.NewPCG(5, 6))
	decoded := 0
	for range 200_000 {
		message := append([]byte{}, whole...)
		for range 1 + r.IntN(3) {
			switch i := r.IntN(len(message)); r.IntN(4) {
			case 0:
				message[i] = byte(r.IntN(256))
			case 1:
				message[i] ^= 1 << r.IntN(8)
			case 2:
				message = append(message[:i], message[i+1:]...)
			default:
				message = append(message[:i], append([]byte{byte(r.IntN(256))}, message[i:]...)...)
			}
		}
		var pod corev1.Pod
		if bytes.IndexByte(message, '-') >= 0 { // a negative exponent, which the library takes long for
			continue
		}
		if pod.Unmarshal(message) != nil {
			continue
		}
		decoded++
		if holds(pod) && Message(typ, message) == nil {
			t.Fatalf("%q passes", message)
		}
	}
	if decoded < 1000 {
		t.Errorf("only %d messages could be decoded", decoded)
	}
}

func holds(pod corev1.Pod) bool {
	hostile := func(list corev1.ResourceList) bool {
		for _, q := range list {
			if q.Format == resource.DecimalExponent && numberOf(q).scale > MaxExponent {
				return true
			}
		}
		return false
	}
	for _, c := range pod.Spec.Containers {
		if hostile(c.Resources.Requests) || hostile(c.Resources.Limits) {
			return true
		}
	}
	return hostile(pod.Spec.Overhead)
}

func TestWorkAddsUp(t *testing.T) {
	list := map[string]any{}
	obj := map[string]any{"spec": map[string]any{"hard": list}}
	text := "12345678901234567890e5000"
	var refused *Refusal
	for i := range 5 {
		list[string(rune('a'+i))] = text
	}
	if err := Object(reflect.TypeFor[corev1.ResourceQuota](), obj); err != nil {
		t.Error(err)
	}
	for i := range 20 {
		list[string(rune('a'+i))] = text
	}
	if err := Object(reflect.TypeFor[corev1.ResourceQuota](), obj); !errors.As(err, &refused) {
		t.Errorf("got %v", err)
	}
}

func BenchmarkPod(b *testing.B) {
	container := map[string]any{
		"name": "c", "env": []any{map[string]any{"name": "a", "value": "b"}}, "resources": map[string]any{
			"requests": map[string]any{"cpu": "100m", "memory": "1Gi"}, "limits": map[string]any{"memory": "1Gi"},
		},
	}
	obj := map[string]any{"spec": map[string]any{"containers": []any{container, container},
		"volumes": []any{map[string]any{"name": "a", "configMap": map[string]any{}}}}}
	t := reflect.TypeFor[corev1.Pod]()
	b.ReportAllocs()
	for b.Loop() {
		if err := Object(t, obj); err != nil {
			b.Fatal(err)
		}
	}
}
