package pod

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// TestLife follows pods through their steps: each row has the annotations and the expected states, one line for each
// step with its duration.
func TestLife(t *testing.T) {
	t.Parallel()
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{
		StartedAt: metav1.Time{Time: noon.Add(-10 * time.Second)},
	}}
	for name, c := range map[string]struct {
		change func(p *corev1.Pod)
		want   string
	}{
		"runs": {func(*corev1.Pod) {}, "Running ready main:running"},
		"inits": {func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "first", Image: "i"}}
		}, "Running ready first:exit0 main:running"},
		"slow": {func(p *corev1.Pod) { annotate(p, startDelay, "30s") },
			"Pending main:ContainerCreating 30s; Running ready main:running"},
		"completes": {func(p *corev1.Pod) {
			p.Spec.RestartPolicy = corev1.RestartPolicyNever
			annotate(p, runTime, "5s")
		}, "Running ready main:running 5s; Succeeded main:exit0"},
		"fails": {func(p *corev1.Pod) {
			p.Spec.RestartPolicy = corev1.RestartPolicyNever
			annotate(p, exitCode, "3")
		}, "Running ready main:running 0s; Failed main:exit3"},
		"job": {func(p *corev1.Pod) {
			yes := true
			p.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "j", Controller: &yes}}
		}, "Running ready main:running 0s; Succeeded main:exit0"},
		"crashes": {func(p *corev1.Pod) { annotate(p, exitCode, "1") },
			"Running ready main:running 0s; Running main:exit1 0s; Running ready main:running 0s; " +
				"Running main:CrashLoopBackOff 10s; Running ready main:running 0s; " +
				"Running main:CrashLoopBackOff 20s; Running ready main:running 0s"},
		"crashes seldom": {func(p *corev1.Pod) {
			annotate(p, exitCode, "1")
			annotate(p, runTime, "11m")
		}, "Running ready main:running 11m0s; Running main:exit1 0s; Running ready main:running 11m0s; " +
			"Running main:exit1 0s; Running ready main:running 11m0s"},
		"one fails of two": {func(p *corev1.Pod) {
			p.Spec.RestartPolicy = corev1.RestartPolicyNever
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "other", Image: "i"})
			annotate(p, ofContainer(exitCode, "other"), "2")
			annotate(p, ofContainer(runTime, "other"), "5s")
		}, "Running ready main:running other:running 5s; Running main:running other:exit2"},
		"an init container fails": {func(p *corev1.Pod) {
			p.Spec.RestartPolicy = corev1.RestartPolicyNever
			p.Spec.InitContainers = []corev1.Container{{Name: "first", Image: "i"}, {Name: "second", Image: "i"}}
			annotate(p, ofContainer(exitCode, "first"), "1")
		}, "Pending first:running second:PodInitializing main:PodInitializing 0s; " +
			"Failed first:exit1 second:PodInitializing main:PodInitializing"},
		"an init container crashes": {func(p *corev1.Pod) {
			p.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
			p.Spec.InitContainers = []corev1.Container{{Name: "first", Image: "i"}}
			annotate(p, ofContainer(exitCode, "first"), "1")
		}, "Pending first:running main:PodInitializing 0s; Pending first:exit1 main:PodInitializing 0s; " +
			"Pending first:running main:PodInitializing 0s; Pending first:CrashLoopBackOff main:PodInitializing 10s"},
		"an init container takes its time": {func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "first", Image: "i"}}
			annotate(p, ofContainer(runTime, "first"), "5s")
		}, "Pending first:running main:PodInitializing 5s; Running ready first:exit0 main:running"},
		"a sidecar crashes": {func(p *corev1.Pod) {
			always := corev1.ContainerRestartPolicyAlways
			p.Spec.InitContainers = []corev1.Container{{Name: "side", Image: "i", RestartPolicy: &always}}
			annotate(p, ofContainer(runTime, "side"), "5s")
			annotate(p, ofContainer(exitCode, "side"), "1")
		}, "Running ready side:running main:running 5s; Running side:exit1 main:running 0s; " +
			"Running ready side:running main:running 5s; Running side:CrashLoopBackOff main:running 10s"},
		"a sidecar ends with the pod": {func(p *corev1.Pod) {
			always := corev1.ContainerRestartPolicyAlways
			p.Spec.RestartPolicy = corev1.RestartPolicyNever
			p.Spec.InitContainers = []corev1.Container{{Name: "side", Image: "i", RestartPolicy: &always}}
			annotate(p, ofContainer(runTime, "main"), "5s")
		}, "Running ready side:running main:running 5s; Succeeded side:exit0 main:exit0"},
		"containers have policies": {func(p *corev1.Pod) {
			always, never := corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyNever
			p.Spec.RestartPolicy = corev1.RestartPolicyNever
			p.Spec.Containers[0].RestartPolicy = &never
			p.Spec.Containers = append(p.Spec.Containers,
				corev1.Container{Name: "other", Image: "i", RestartPolicy: &always})
			annotate(p, runTime, "5s")
		}, "Running ready main:running other:running 5s; Running main:exit0 other:exit0 0s; " +
			"Running main:exit0 other:running 5s; Running main:exit0 other:CrashLoopBackOff 10s"},
		"a rule restarts": {func(p *corev1.Pod) {
			p.Spec.RestartPolicy = corev1.RestartPolicyNever
			ruled(&p.Spec.Containers[0], corev1.ContainerRestartRuleActionRestart, 7)
			annotate(p, exitCode, "7")
		}, "Running ready main:running 0s; Running main:exit7 0s; Running ready main:running 0s"},
		"no rule restarts": {func(p *corev1.Pod) {
			p.Spec.RestartPolicy = corev1.RestartPolicyAlways
			ruled(&p.Spec.Containers[0], corev1.ContainerRestartRuleActionRestart, 8)
			annotate(p, exitCode, "7")
		}, "Running ready main:running 0s; Failed main:exit7"},
		"a rule restarts all": {func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "first", Image: "i"}}
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "other", Image: "i"})
			ruled(&p.Spec.Containers[0], corev1.ContainerRestartRuleActionRestartAllContainers, 7)
			annotate(p, ofContainer(exitCode, "main"), "7")
			annotate(p, ofContainer(runTime, "main"), "5s")
		}, "Running ready first:exit0 main:running other:running 5s; " +
			"Running first:exit0 main:exit7 other:running 0s; " +
			"Running ready first:exit0 main:running other:running 5s"},
		"is debugged": {func(p *corev1.Pod) {
			p.Spec.EphemeralContainers = []corev1.EphemeralContainer{
				{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "i"}},
				{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "brief", Image: "i"}},
			}
			annotate(p, ofContainer(exitCode, "brief"), "7")
		}, "Running ready main:running brief:running debug:running 0s; " +
			"Running ready main:running brief:exit7 debug:running"},
		"no image": {func(p *corev1.Pod) { annotate(p, pullFailure, "true") },
			"Pending main:ErrImagePull 0s; Pending main:ImagePullBackOff"},
		"unready": {func(p *corev1.Pod) { annotate(p, unready, "main") }, "Running main:running"},
		"gated": {func(p *corev1.Pod) {
			p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/open"}}
		}, "Running main:running"},
		"deadline": {func(p *corev1.Pod) {
			five := int64(5)
			p.Spec.ActiveDeadlineSeconds = &five
		}, "Running ready main:running 5s; Failed main:exit143"},
		"deleted": {func(p *corev1.Pod) {
			grace := int64(30)
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: noon.Add(30 * time.Second)}, &grace
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Image: "i", State: running}}
		}, "Succeeded main:exit0 gone"},
		"deleted slowly": {func(p *corev1.Pod) {
			grace := int64(30)
			annotate(p, stopTime, "20s")
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: noon.Add(30 * time.Second)}, &grace
			p.Status.Phase = corev1.PodRunning
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Image: "i", State: running}}
		}, "Running ready main:running 20s; Succeeded main:exit0 gone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default", UID: "u"},
				Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyAlways,
					Containers:    []corev1.Container{{Name: "main", Image: "i"}},
				},
			}
			c.change(pod)
			if got := story(pod, strings.Count(c.want, ";")+1); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func annotate(p *corev1.Pod, key, value string) {
	metav1.SetMetaDataAnnotation(&p.ObjectMeta, key, value)
}

// ruled gives a container a restart rule for an exit code.
func ruled(c *corev1.Container, action corev1.ContainerRestartRuleAction, code int32) {
	never := corev1.ContainerRestartPolicyNever
	c.RestartPolicy = &never
	c.RestartPolicyRules = []corev1.ContainerRestartRule{{
		Action: action, ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{
			Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{code},
		},
	}}
}

// story runs a pod for a number of steps, each at its due time, and describes them.
func story(pod *corev1.Pod, steps int) string {
	var lines []string
	now, m := noon, &memory{}
	for range steps {
		s := next(pod, now, host{}, m)
		pod.Status = *s.status
		line := string(s.status.Phase)
		for _, c := range s.status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				line += " ready"
			}
		}
		for _, c := range slices.Concat(s.status.InitContainerStatuses, s.status.ContainerStatuses,
			s.status.EphemeralContainerStatuses) {
			line += " " + c.Name + ":"
			switch {
			case c.State.Running != nil:
				line += "running"
			case c.State.Waiting != nil:
				line += c.State.Waiting.Reason
			default:
				line += fmt.Sprintf("exit%d", c.State.Terminated.ExitCode)
			}
		}
		if s.wait > 0 {
			line += " " + s.wait.Truncate(time.Millisecond).String()
		}
		if s.gone {
			line += " gone"
		}
		lines = append(lines, line)
		now = now.Add(s.wait)
	}
	return strings.Join(lines, "; ")
}

// TestStepsEnd checks that a step without changes causes no further write.
func TestStepsEnd(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "i"}}}}
	m := &memory{}
	s := next(pod, noon, host{}, m)
	if !s.changed {
		t.Fatal("a new pod stays as it is")
	}
	pod.Status = *s.status
	if s = next(pod, noon.Add(time.Hour), host{}, m); s.changed || len(s.events) > 0 || s.wait > 0 {
		t.Errorf("a pod that runs: %+v", s)
	}
}
