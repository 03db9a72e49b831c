package autoscale

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// parse makes a workload from words, one for each pod: its usage (- if unknown), a slash, its requests (- for none),
// both in thousandths, and its state: starting (ready for 5 seconds), unready, late (unready long after its start),
// pending, failed or ending.
func parse(t *testing.T, text string) *workload {
	t.Helper()
	w := &workload{
		usage: map[string]int64{}, resource: corev1.ResourceCPU, tolerance: tolerance{0.1, 0.1}, now: noon,
	}
	for i, word := range strings.Fields(text) {
		word, is, _ := strings.Cut(word, ",")
		used, requested, _ := strings.Cut(word, "/")
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", i)}}
		p.Spec.Containers = []corev1.Container{{Name: "main"}}
		if requested != "-" {
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse(requested + "m"),
			}
		}
		start, ready := noon.Add(-time.Hour), corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
		ready.LastTransitionTime = metav1.Time{Time: start.Add(time.Second)}
		p.Status.Phase = corev1.PodRunning
		switch is {
		case "starting":
			start = noon.Add(-time.Minute)
			ready.LastTransitionTime = metav1.Time{Time: noon.Add(-5 * time.Second)}
		case "unready":
			ready.Status = corev1.ConditionFalse
		case "late":
			ready.Status = corev1.ConditionFalse
			ready.LastTransitionTime = metav1.Time{Time: noon.Add(-time.Minute)}
		case "pending":
			p.Status.Phase = corev1.PodPending
		case "failed":
			p.Status.Phase = corev1.PodFailed
		case "ending":
			p.DeletionTimestamp = &metav1.Time{Time: noon}
		}
		p.Status.StartTime, p.Status.Conditions = &metav1.Time{Time: start}, []corev1.PodCondition{ready}
		if n, err := strconv.ParseInt(used, 10, 64); err == nil {
			w.usage[p.Name] = n
		}
		w.pods = append(w.pods, p)
	}
	w.replicas = int32(len(w.pods))
	return w
}

// TestPropose checks that usage is compared with requests or with a value, and that starting pods and pods without
// metrics never reverse the direction.
func TestPropose(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pods   string
		target int32  // percent of requests
		want   string // replicas, percent, average usage
	}{
		{"300/1000 500/1000 700/1000", 30, "5 50% 500"},
		{"540/1000 540/1000", 50, "2 54% 540"},
		{"560/1000 560/1000", 50, "3 56% 560"},
		{"450/1000 450/1000", 50, "2 45% 450"},
		{"440/1000 440/1000", 50, "2 44% 440"}, // 1.76 is rounded up
		{"100/1000 300/1000 500/1000 250/1000 250/1000", 50, "3 28% 280"},
		{"500/1000 700/1000 1000/1000,starting", 30, "4 60% 600"},                // it counts as idle: 40 %
		{"300/1000 500/1000 700/1000 900/1000,pending", 30, "5 50% 500"},         // 375 each with four pods
		{"400/1000 500/1000,failed 700/1000,ending", 30, "2 40% 400"},            // neither of them counts
		{"400/1000 500/1000 600/1000 -/1000", 51, "4 50% 500"},                   // within tolerance
		{"100/1000 100/1000 100/1000 -/1000", 50, "3 10% 100"},                   // it counts with its requests
		{"700/1000 -/1000 -/1000 -/1000", 50, "4 70% 700"},                       // 17 % would reverse the direction
		{"1000/1000 900/1000 -/1000,starting 900/1000 -/1000", 30, "10 93% 933"}, // both count as idle: 56 % of five
		{"100/1000,unready 800/1000", 50, "2 80% 800"},                           // as idle, 40 % would reverse it
		{"100/1000,late 800/1000", 50, "2 45% 450"},                              // it was ready before
		{"100/1000,unready 200/1000,pending", 50, "did not receive metrics for targeted pods (pods might be unready)"},
		{"", 50, "no pods returned by selector while calculating replica count"},
		{"100/- 200/1000", 50, "missing request for cpu in container main of Pod p0"},
		{"100/0", 50, "no metrics returned matched known pods"},
		{"-/1000 30/1000", 150, "2 3% 30"}, // without metrics a pod counts with the target, if that is higher
	} {
		replicas, percent, each, err := parse(t, c.pods).byUtilization(c.target)
		got := fmt.Sprintf("%d %d%% %d", replicas, percent, each)
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s at %d%%: %s, want %s", c.pods, c.target, got, c.want)
		}
	}
	for _, c := range []struct {
		pods   string
		target int64
		want   string
	}{
		{"300/- 500/- 700/-", 300, "5 500"},
		{"500/- -/-", 1000, "2 500"}, // 750 each with the target for the one without metrics: 1.5 is rounded up
		{"100/- 100/- 100/- -/-", 1000, "2 100"},
		{"900/- 800/-,starting", 500, "2 900"},
	} {
		replicas, each, err := parse(t, c.pods).byValue(c.target)
		if got := fmt.Sprintf("%d %d", replicas, each); err != nil || got != c.want {
			t.Errorf("%s at %d: %s, want %s (%v)", c.pods, c.target, got, c.want, err)
		}
	}
}

// TestTolerance checks that an explicit tolerance applies to one direction.
func TestTolerance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tolerance tolerance
		pods      string
		want      int32
	}{
		{tolerance{0.1, 0}, "510/1000", 2},
		{tolerance{0.1, 0.5}, "700/1000", 1},
		{tolerance{0, 0.5}, "490/1000 240/1000", 2},
		{tolerance{0.6, 0.1}, "210/1000 210/1000 210/1000", 3},
		{tolerance{0.5, 0.1}, "210/1000 210/1000 210/1000", 2},
	} {
		w := parse(t, c.pods)
		w.tolerance = c.tolerance
		if got, _, _, err := w.byUtilization(50); err != nil || got != c.want {
			t.Errorf("%+v, %s: %d, want %d (%v)", c.tolerance, c.pods, got, c.want, err)
		}
	}
}

// TestRequests checks the requests of a single container, of all containers with sidecars, and of the pod itself, which
// override the sum.
func TestRequests(t *testing.T) {
	t.Parallel()
	wants := func(milli string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(milli)}}
	}
	always := corev1.ContainerRestartPolicyAlways
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "a", Resources: wants("100m")}, {Name: "b", Resources: wants("200m")}},
		InitContainers: []corev1.Container{
			{Name: "setup", Resources: wants("2")}, {Name: "proxy", Resources: wants("30m"), RestartPolicy: &always},
		},
	}}
	own := pod.DeepCopy()
	all := wants("700m")
	own.Spec.Resources = &all
	memory := pod.DeepCopy()
	memory.Spec.Resources = &corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
	}
	for _, c := range []struct {
		pod       *corev1.Pod
		container string
		resource  corev1.ResourceName
		want      string
	}{
		{pod, "", "cpu", "330"},
		{pod, "b", "cpu", "200"},
		{pod, "proxy", "cpu", "30"},
		{pod, "setup", "cpu", "container setup not found in Pod p"},
		{pod, "b", "memory", "missing request for memory in container b of Pod p"},
		{own, "", "cpu", "700"},
		{own, "a", "cpu", "100"},
		{memory, "", "cpu", "2000"}, // as in a scheduler, with the largest init container
	} {
		n, err := (&workload{container: c.container, resource: c.resource}).request(c.pod)
		got := fmt.Sprint(n)
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q, %s: %s, want %s", c.container, c.resource, got, c.want)
		}
	}
}
