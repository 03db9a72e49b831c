package apps

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func rolling(replicas int32, surge, unavailable string) *appsv1.Deployment {
	s, u := intstr.Parse(surge), intstr.Parse(unavailable)
	return &appsv1.Deployment{Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Strategy: appsv1.DeploymentStrategy{
			Type:          appsv1.RollingUpdateDeploymentStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &s, MaxUnavailable: &u},
		},
	}}
}

// set makes a ReplicaSet from text: "name replicas available max", where max is the annotation.
func set(t *testing.T, text string, age int) *appsv1.ReplicaSet {
	t.Helper()
	var name string
	var replicas, available, most int32
	if _, err := fmt.Sscan(text, &name, &replicas, &available, &most); err != nil {
		t.Fatal(err)
	}
	s := &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Replicas: &replicas}}
	s.Name, s.Status.AvailableReplicas = name, available
	s.CreationTimestamp = metav1.NewTime(time.Unix(int64(1000+age), 0))
	s.Annotations = map[string]string{maxAnnotation: fmt.Sprint(most)}
	return s
}

func sizes(list []size) string {
	var out []string
	for _, s := range list {
		out = append(out, fmt.Sprintf("%s=%d", s.set.Name, s.replicas))
	}
	return strings.Join(out, " ")
}

// TestProportional checks that a new size is distributed in proportion, with the rest going to the largest set; of
// equal sets the newest grows first and the oldest shrinks first.
func TestProportional(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		replicas           int32
		surge, unavailable string
		sets               []string // the oldest first
		want               string
	}{
		{15, "3", "2", []string{"old 8 8 13", "new 5 0 13"}, "old=11 new=7"},
		{5, "3", "2", []string{"old 8 8 13", "new 5 0 13"}, "old=5 new=3"},
		{10, "0", "1", []string{"a 2 2 4", "b 2 2 4"}, "b=5 a=5"},
		{0, "1", "0", []string{"old 3 3 5", "new 2 0 5"}, "old=0 new=0"},
		{12, "0", "1", []string{"a 3 3 9", "b 3 3 9", "c 3 3 9"}, "c=4 b=4 a=4"},
		{10, "0", "1", []string{"a 3 3 9", "b 3 3 9", "c 3 3 9"}, "c=4 b=3 a=3"},
		{8, "0", "1", []string{"a 3 3 9", "b 3 3 9", "c 3 3 9"}, "a=2 b=3 c=3"},
		{13, "3", "2", []string{"old 11 8 0", "new 5 0 0"}, "old=11 new=5"},
	} {
		d := rolling(c.replicas, c.surge, c.unavailable)
		var all []*appsv1.ReplicaSet
		for i, text := range c.sets {
			all = append(all, set(t, text, i))
		}
		if got := sizes(proportional(d, all)); got != c.want {
			t.Errorf("%d of %v: %s, want %s", c.replicas, c.sets, got, c.want)
		}
	}
}

// TestShrinkOld checks that old ReplicaSets first lose unavailable pods, and then as many available ones as
// maxUnavailable allows.
func TestShrinkOld(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		surge, unavailable string
		current            string
		old                []string
		want               string
	}{
		{"0", "1", "new 0 0 0", []string{"old 10 10 10"}, "old=9"},
		{"1", "0", "new 1 0 0", []string{"old 10 10 10"}, ""},
		{"1", "0", "new 1 1 0", []string{"old 10 10 10"}, "old=9"},
		{"2", "2", "new 2 0 0", []string{"old 10 8 10"}, "old=8"},
		{"0", "3", "new 0 0 0", []string{"a 5 4 10", "b 5 5 10"}, "a=4 a=2"},
		{"0", "30%", "new 0 0 0", []string{"old 10 10 10"}, "old=7"},
		// Sets that were scaled down and still count the deleted pods: these pods are not available.
		{"3", "2", "new 5 0 10", []string{"old 8 10 10"}, ""},
		{"3", "2", "new 0 0 10", []string{"a 4 2 10", "b 8 10 10"}, "a=2"},
	} {
		d := rolling(10, c.surge, c.unavailable)
		var old []*appsv1.ReplicaSet
		for i, text := range c.old {
			old = append(old, set(t, text, i))
		}
		if got := sizes(shrinkOld(d, set(t, c.current, 9), old)); got != c.want {
			t.Errorf("%s beside %v: %q, want %q", c.current, c.old, got, c.want)
		}
	}
}

// The revisions that a ReplicaSet had stay in an annotation, up to a length.
func TestRememberRevision(t *testing.T) {
	t.Parallel()
	d := rolling(1, "1", "0")
	d.Annotations = map[string]string{"note": "x", corev1.LastAppliedConfigAnnotation: "{}", revisionAnnotation: "9"}
	s := set(t, "web 1 1 2", 0)
	for revision := int64(1); revision <= 3; revision++ {
		Annotate(d, s, revision, true)
	}
	if a := s.Annotations; a[revisionAnnotation] != "3" || a[historyAnnotation] != "1,2" || a["note"] != "x" ||
		a[corev1.LastAppliedConfigAnnotation] != "" {
		t.Errorf("annotations: %v", a)
	}
	if Annotate(d, s, 3, true) || Annotate(d, s, 2, true) {
		t.Error("nothing is new, and something has changed")
	}
	s.Annotations[historyAnnotation] = strings.Repeat("1,", longestHistory/2-1) + "1"
	Annotate(d, s, 12345, true)
	if h := s.Annotations[historyAnnotation]; len(h) > longestHistory || !strings.HasSuffix(h, ",3") {
		t.Errorf("%d characters of history end in %q", len(h), h[len(h)-10:])
	}
}

// TestSetStatus checks that a set that cannot create its pods has a condition until it can.
func TestSetStatus(t *testing.T) {
	t.Parallel()
	s := set(t, "web 2 0 0", 0)
	now := time.Unix(5000, 0)
	s.Status = setStatus(s, replicas{}, errors.New("quota"), now)
	if c := s.Status.Conditions; len(c) != 1 || c[0].Reason != "FailedCreate" || c[0].Message != "quota" {
		t.Errorf("conditions: %v", c)
	}
	pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
		Type: corev1.PodReady, Status: corev1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(now.Add(-5 * time.Second)),
	}}}}
	s.Spec.MinReadySeconds = 6
	s.Status = setStatus(s, replicasOf(s, []*corev1.Pod{pod}, now), nil, now)
	if st := s.Status; len(st.Conditions) != 0 || st.Replicas != 1 || st.ReadyReplicas != 1 ||
		st.AvailableReplicas != 0 {
		t.Errorf("status: %+v", st)
	}
	now = now.Add(time.Second)
	if st := setStatus(s, replicasOf(s, []*corev1.Pod{pod}, now), nil, now); st.AvailableReplicas != 1 {
		t.Errorf("after six seconds: %+v", st)
	}
}

// TestShouldRunCopiesLittle checks a template with many containers against a node. A copy of the whole template, made
// for each node, cost as much as the nodes times the template.
func TestShouldRunCopiesLittle(t *testing.T) {
	set := &appsv1.DaemonSet{}
	set.Spec.Template.Spec.Containers = make([]corev1.Container, 1000)
	for i := range set.Spec.Template.Spec.Containers {
		set.Spec.Template.Spec.Containers[i].Env = make([]corev1.EnvVar, 10)
	}
	node := &corev1.Node{}
	if n := testing.AllocsPerRun(10, func() { shouldRun(set, node) }); n > 100 {
		t.Errorf("it allocates %v times", n)
	}
}
