package oraclebuiltins

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/daemon"
	deployment "k8s.io/kubernetes/pkg/controller/deployment/util"
	"k8s.io/kubernetes/pkg/controller/history"

	"github.com/bowsprit/bowsprit/internal/workload/apps"
	"github.com/bowsprit/bowsprit/internal/workload/replica"
)

// workloadCases is how many random cases each comparison of workloads makes; ORACLE_WORKLOAD_CASES makes it more.
func workloadCases(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("ORACLE_WORKLOAD_CASES"))
	if err != nil {
		return 2000
	}
	return n
}

func randomTemplate(r *rand.Rand) corev1.PodTemplateSpec {
	t := corev1.PodTemplateSpec{}
	for i := range r.IntN(3) {
		t.Labels = set(t.Labels, fmt.Sprintf("l%d", i), fmt.Sprint(r.IntN(3)))
		t.Annotations = set(t.Annotations, fmt.Sprintf("a%d", i), fmt.Sprint(r.IntN(3)))
	}
	for i := range 1 + r.IntN(3) {
		c := corev1.Container{Name: fmt.Sprintf("c%d", i), Image: fmt.Sprintf("image:%d", r.IntN(4))}
		if r.IntN(2) == 0 {
			c.Env = []corev1.EnvVar{{Name: "A", Value: fmt.Sprint(r.IntN(9))}}
		}
		if r.IntN(3) == 0 {
			c.SecurityContext = &corev1.SecurityContext{RunAsUser: new(int64(r.IntN(9)))}
		}
		t.Spec.Containers = append(t.Spec.Containers, c)
	}
	if r.IntN(2) == 0 {
		t.Spec.TerminationGracePeriodSeconds = new(int64(r.IntN(60)))
		t.Spec.NodeSelector = map[string]string{"zone": fmt.Sprint(r.IntN(3)), "disk": "ssd"}
	}
	return t
}

func set(m map[string]string, k, v string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	m[k] = v
	return m
}

// TestTemplateHashes compares the hashes of templates, and the names, contents and hashes of revisions, with
// Kubernetes'.
func TestTemplateHashes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range workloadCases(t) {
		template := randomTemplate(r)
		var collisions *int32
		if r.IntN(2) == 0 {
			collisions = new(int32(r.IntN(3)))
		}
		want := controller.ComputeHash(&template, collisions)
		if got := replica.Hash(&template, collisions); got != want {
			t.Fatalf("hash %s, want %s, of %+v with %v", got, want, template, collisions)
		}
		data, err := apps.RevisionData(&template)
		if err != nil {
			t.Fatal(err)
		}
		ds := &appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Template: template}}
		revision := &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: data}}
		if same, err := daemon.Match(ds, revision); err != nil || !same {
			t.Fatalf("Kubernetes does not know %s: %v", data, err)
		}
		n := int32(r.IntN(3))
		if got, want := apps.RevisionHash(data, n), history.HashControllerRevision(revision, &n); got != want {
			t.Fatalf("revision hash %s, want %s", got, want)
		}
		name := string(bytes.Repeat([]byte("n"), 1+r.IntN(250)))
		if got, want := apps.RevisionName(name, "h"), history.ControllerRevisionName(name, "h"); got != want {
			t.Fatalf("name %s, want %s", got, want)
		}
	}
}

func randomDeployment(r *rand.Rand) *appsv1.Deployment {
	value := func() *intstr.IntOrString {
		v := intstr.FromInt32(int32(r.IntN(4)))
		if r.IntN(2) == 0 {
			v = intstr.FromString(fmt.Sprintf("%d%%", r.IntN(101)))
		}
		return &v
	}
	d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(r.IntN(30))), Strategy: appsv1.DeploymentStrategy{
			Type:          appsv1.RollingUpdateDeploymentStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: value(), MaxUnavailable: value()},
		},
	}}
	if r.IntN(5) == 0 {
		d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	}
	d.Status.Replicas = int32(r.IntN(30))
	for i := range r.IntN(3) {
		d.Annotations = set(d.Annotations, fmt.Sprintf("a%d", i), fmt.Sprint(r.IntN(3)))
	}
	if r.IntN(2) == 0 {
		d.Annotations = set(d.Annotations, deployment.RevisionAnnotation, fmt.Sprint(r.IntN(9)))
	}
	return d
}

func randomSet(r *rand.Rand, i int) *appsv1.ReplicaSet {
	s := &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(r.IntN(20)))}}
	s.Name, s.UID = fmt.Sprintf("s%d", i), types.UID(fmt.Sprint(i))
	s.CreationTimestamp = metav1.NewTime(time.Unix(int64(r.IntN(3)), 0))
	s.Status.Replicas = int32(r.IntN(20))
	s.Status.AvailableReplicas = int32(r.IntN(int(*s.Spec.Replicas) + 1))
	if r.IntN(3) > 0 {
		s.Annotations = map[string]string{
			deployment.DesiredReplicasAnnotation: fmt.Sprint(r.IntN(30)),
			deployment.MaxReplicasAnnotation:     fmt.Sprint(r.IntN(40)),
		}
	}
	switch r.IntN(4) {
	case 0:
	case 1:
		s.Annotations = set(s.Annotations, deployment.RevisionAnnotation, "x")
	default:
		s.Annotations = set(s.Annotations, deployment.RevisionAnnotation, fmt.Sprint(r.IntN(9)))
		s.Annotations = set(s.Annotations, deployment.RevisionHistoryAnnotation, fmt.Sprint(r.IntN(9)))
	}
	return s
}

// TestRolloutNumbers compares the numbers and annotations of a rollout with Kubernetes'.
func TestRolloutNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range workloadCases(t) {
		d := randomDeployment(r)
		surge, unavailable := apps.Bounds(d)
		if got, want := surge, deployment.MaxSurge(*d); got != want {
			t.Fatalf("surge %d, want %d: %+v", got, want, d.Spec)
		}
		if got, want := min(unavailable, *d.Spec.Replicas), deployment.MaxUnavailable(*d); got != want {
			t.Fatalf("unavailable %d, want %d: %+v", got, want, d.Spec)
		}
		var all []*appsv1.ReplicaSet
		for i := range 1 + r.IntN(4) {
			all = append(all, randomSet(r, i))
		}
		current := all[0]
		if *current.Spec.Replicas <= *d.Spec.Replicas { // Kubernetes scales down first
			want, err := deployment.NewRSNewReplicas(d, all, current)
			if err != nil {
				t.Fatal(err)
			}
			if got := apps.CurrentReplicas(d, current, all); got != want {
				t.Fatalf("%d replicas, want %d", got, want)
			}
		}
		add, added := int32(r.IntN(21)-10), int32(r.IntN(11)-5)
		if *current.Spec.Replicas > 0 && add != 0 {
			want := deployment.GetReplicaSetProportion(klog.Background(), current, *d, add, added)
			if got := apps.Portion(d, current, add, added); got != want {
				t.Fatalf("portion %d of %d after %d, want %d", got, add, added, want)
			}
		}
		ours, theirs, exists, revision := current.DeepCopy(), current.DeepCopy(), r.IntN(2) == 0, int64(r.IntN(9))
		changed := apps.Annotate(d, ours, revision, exists)
		if want := deployment.SetNewReplicaSetAnnotations(context.Background(), d, theirs, fmt.Sprint(revision), exists,
			2000); changed != want || len(ours.Annotations)+len(theirs.Annotations) > 0 &&
			!reflect.DeepEqual(ours.Annotations, theirs.Annotations) {
			t.Fatalf("annotations %v (changed: %v), want %v (%v)", ours.Annotations, changed, theirs.Annotations, want)
		}
	}
}

func randomPod(r *rand.Rand, i int, now time.Time) *corev1.Pod {
	p := &corev1.Pod{}
	p.Name, p.UID = fmt.Sprintf("p%d", i), types.UID(fmt.Sprintf("u%02d", r.IntN(100)))
	if r.IntN(3) > 0 {
		p.Spec.NodeName = fmt.Sprintf("n%d", r.IntN(3))
	}
	p.Status.Phase = []corev1.PodPhase{corev1.PodPending, corev1.PodUnknown, corev1.PodRunning}[r.IntN(3)]
	if r.IntN(3) > 0 {
		p.CreationTimestamp = metav1.NewTime(now.Add(-time.Duration(1<<r.IntN(20)) * time.Second))
	}
	if r.IntN(3) > 0 {
		c := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
		if r.IntN(4) > 0 {
			c.LastTransitionTime = metav1.NewTime(now.Add(-time.Duration(1<<r.IntN(20)) * time.Second))
		}
		p.Status.Conditions = append(p.Status.Conditions, c)
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: int32(r.IntN(3))}}
	if costs := []string{"", "-5", "0", "7", "+7", "07", "x"}; r.IntN(2) == 0 {
		p.Annotations = map[string]string{corev1.PodDeletionCost: costs[r.IntN(len(costs))]}
	}
	return p
}

// TestRemovalOrder checks that the order in which pods are deleted agrees with Kubernetes' partial order.
func TestRemovalOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	now := time.Unix(1<<31, 0)
	for range workloadCases(t) / 4 {
		var pods, related []*corev1.Pod
		for i := range 2 + r.IntN(6) {
			pods = append(pods, randomPod(r, i, now))
			related = append(related, randomPod(r, i, now))
		}
		related = append(related, pods...)
		replica.ByRemoval(pods)
		theirs := controller.ActivePods(pods)
		for i := range pods {
			for j := range i {
				if theirs.Less(i, j) {
					t.Fatalf("%+v goes before %+v", *pods[j], *pods[i])
				}
			}
		}
		replica.ByRemovalAmong(pods, related, now)
		ranked := controller.ActivePodsWithRanks{Pods: pods, Now: metav1.NewTime(now), Rank: make([]int, len(pods))}
		for i, p := range pods {
			for _, other := range related {
				if replica.IsActive(other) && other.Spec.NodeName == p.Spec.NodeName {
					ranked.Rank[i]++
				}
			}
		}
		for i := range pods {
			for j := range i {
				if ranked.Less(i, j) {
					t.Fatalf("among others, %+v goes before %+v", *pods[j], *pods[i])
				}
			}
		}
	}
}
