package apps

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// look returns a look at a StatefulSet with so many replicas from a first number on.
func look(start, replicas int32) *ordered {
	set := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{
		Replicas: &replicas, Ordinals: &appsv1.StatefulSetOrdinals{Start: start},
	}}
	set.Name = "db"
	return &ordered{set: set, update: &appsv1.ControllerRevision{}, current: &appsv1.ControllerRevision{}}
}

func podOf(n int) *corev1.Pod {
	p := &corev1.Pod{}
	p.Name, p.Status.Phase = fmt.Sprint("db-", n), corev1.PodRunning
	return p
}

// TestSortOut compares the pods of random sets with an array that has a slot for each.
func TestSortOut(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		start, replicas := random.Int32N(5), random.Int32N(700)
		slots := make([]bool, replicas)
		var pods []*corev1.Pod
		var surplus []int
		for _, n := range random.Perm(720)[:random.IntN(600)] {
			pods = append(pods, podOf(n))
			if at := n - int(start); at >= 0 && at < int(replicas) {
				slots[at] = true
			} else {
				surplus = append(surplus, n)
			}
		}
		slices.Sort(surplus)
		slices.Reverse(surplus)
		r := look(start, replicas)
		wanted, others := r.sortOut(pods)
		var got, want []string
		for _, p := range wanted {
			got = append(got, fmt.Sprint(p.Name, " ", made(p)))
		}
		missing := 0
		for i, there := range slots {
			if missing++; there {
				missing--
			}
			if there || missing <= cluster.BurstMost {
				want = append(want, fmt.Sprint("db-", int(start)+i, " ", there))
			}
		}
		for i := range max(len(got), len(want)) {
			if len(got) != len(want) || got[i] != want[i] {
				t.Fatalf("seed %d: %d pods, want %d; or %d is another", seed, len(got), len(want), i)
			}
		}
		for i, p := range others {
			if _, n := ordinal(p); n != surplus[i] {
				t.Fatalf("seed %d: surplus %d is %d, want %d", seed, i, n, surplus[i])
			}
		}
	}
}

// TestSortOutOfMany tests a set with the largest number of replicas.
func TestSortOutOfMany(t *testing.T) {
	t.Parallel()
	for start, want := range map[int32]int{0: cluster.BurstMost + 1, 7: cluster.BurstMost + 1, math.MaxInt32 - 9: 10} {
		wanted, surplus := look(start, math.MaxInt32).sortOut([]*corev1.Pod{podOf(math.MaxInt32 - 1)})
		if len(surplus) > 0 || len(wanted) != want || wanted[0].Name != fmt.Sprint("db-", start) {
			t.Errorf("from %d: %d pods, the first %s, and %d too many", start, len(wanted), wanted[0].Name, len(surplus))
		}
	}
}

// TestSizesAtTheirLimit resizes Deployments with the largest possible numbers.
func TestSizesAtTheirLimit(t *testing.T) {
	t.Parallel()
	const most = math.MaxInt32
	d := rolling(most, "100%", "25%")
	current := set(t, fmt.Sprint("new 0 0 ", most), 2)
	old := set(t, fmt.Sprint("old ", most-10, " ", most-10, " ", most), 1)
	if got := CurrentReplicas(d, current, []*appsv1.ReplicaSet{current, old}); got != 10 {
		t.Errorf("the new set gets %d replicas, want 10", got)
	}
	if got := CurrentReplicas(d, current, []*appsv1.ReplicaSet{current}); got != most {
		t.Errorf("alone it gets %d replicas", got)
	}
	for _, s := range append(scaleAll(d, current, []*appsv1.ReplicaSet{old}),
		shrinkOld(d, current, []*appsv1.ReplicaSet{old})...) {
		if s.replicas < 0 {
			t.Errorf("%s gets %d replicas", s.set.Name, s.replicas)
		}
	}
}
