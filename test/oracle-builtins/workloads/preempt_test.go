package workloads

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
)

// TestSchedulerPreempts checks that the simulated scheduler preempts the same pods as kube-scheduler's plugin, or
// reports the same message, for random nodes, pods and budgets.
func TestSchedulerPreempts(t *testing.T) {
	client := schedulerAlone(t)
	makePriorityClasses(t, client)
	makeStorageClasses(t, client)
	k := newKubeScheduler(t)
	plugin, err := defaultpreemption.New(t.Context(), &config.DefaultPreemptionArgs{MinCandidateNodesPercentage: 100},
		k.framework, feature.Features{})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(18, 2))
	preempted, kept := 0, 0
	for n := range cases(t) {
		c := &schedulerCase{r: r, client: client, ranked: true, stored: n%2 == 1}
		decided, node, message, shows := c.schedule(t, k)
		because := decided.because
		switch {
		case !shows:
		case len(decided.best) > 0:
			if !slices.Contains(decided.best, node) {
				t.Errorf("on %q (%s), not among %v", node, message, decided.best)
			}
		case decided.anywhere:
			if message != because {
				t.Errorf("%s, want %s", message, because)
			}
		default:
			want := k.preempt(t, c, plugin, decided)
			if got := c.preempted(t, want); want.message != "" {
				kept++
				if message != because+preempting+want.message || len(got) > 0 {
					t.Errorf("%s\n%v go, want %s %s", message, got, because, want.message)
				}
			} else {
				preempted++
				if message != because || !slices.Contains(want.nodes, c.made.Status.NominatedNodeName) {
					t.Errorf("%s, for %q, want %s and one of %v", message, c.made.Status.NominatedNodeName, because,
						want.nodes)
				}
				if diff := cmp.Diff(want.victims[c.made.Status.NominatedNodeName], got); diff != "" {
					t.Errorf("who goes from %s: %s", c.made.Status.NominatedNodeName, diff)
				}
			}
		}
		if t.Failed() {
			t.Fatalf("case %d\n%s", n, c)
		}
		c.clean(t)
	}
	if t.Logf("%d times pods went, %d times none", preempted, kept); preempted == 0 || kept == 0 {
		t.Error("the cases are all of one sort")
	}
}

// preemption is kube-scheduler's set of valid choices for a pod: the best nodes, with the victims on each, or the
// message if there are none.
type preemption struct {
	nodes   []string
	victims map[string][]string
	message string
}

func (k *kubeScheduler) preempt(
	t *testing.T, c *schedulerCase, plugin *defaultpreemption.DefaultPreemption, decided decision,
) preemption {
	t.Helper()
	pod := decided.failed.Pod
	if ok, why := plugin.PodEligibleToPreemptOthers(t.Context(), pod, nil); !ok {
		return preemption{message: why}
	}
	nodes, err := decided.failed.Diagnosis.NodeToStatus.NodesForStatusCode(k.nodes.NodeInfos(), fwk.Unschedulable)
	if err != nil {
		t.Fatal(err)
	}
	candidates, statuses, err := plugin.Evaluator.DryRunPreemption(t.Context(), decided.state, pod, nodes, c.budgets, 0,
		int32(len(nodes)))
	if err != nil {
		t.Fatal(err)
	}
	if len(candidates) == 0 {
		failed := framework.FitError{Pod: pod, NumAllNodes: len(c.nodes)}
		failed.Diagnosis.NodeToStatus = statuses
		statuses.SetAbsentNodesStatus(fwk.NewStatus(fwk.UnschedulableAndUnresolvable,
			"Preemption is not helpful for scheduling"))
		return preemption{message: failed.Error()}
	}
	out := preemption{victims: map[string][]string{}}
	for _, candidate := range candidates {
		for _, victim := range candidate.Victims().Pods {
			if victim.DeletionTimestamp == nil {
				out.victims[candidate.Name()] = append(out.victims[candidate.Name()], victim.Name)
			}
		}
		slices.Sort(out.victims[candidate.Name()])
	}
	best := map[string]bool{}
	for range 100 { // it chooses one of several equal ones at random
		best[plugin.Evaluator.SelectCandidate(t.Context(), candidates).Name()] = true
	}
	out.nodes = slices.Sorted(maps.Keys(best))
	return out
}

// preempted returns the deleted pods, after the expected victims are deleted and the scheduler has reached the next
// pod.
func (c *schedulerCase) preempted(t *testing.T, want preemption) []string {
	t.Helper()
	victims := want.victims[c.made.Status.NominatedNodeName]
	for _, was := range c.pods {
		if !slices.Contains(victims, was.Name) {
			continue
		}
		c.await(t, was, func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
	}
	last := c.pod("last")
	last.Spec.NodeSelector = map[string]string{"nowhere": ""}
	last.Spec.PriorityClassName = "least"
	last, err := c.client.CoreV1().Pods("default").Create(t.Context(), last, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.await(t, last, func(p *corev1.Pod) bool { return len(p.Status.Conditions) > 0 })
	var gone []string
	for _, was := range c.pods {
		now, err := c.client.CoreV1().Pods("default").Get(t.Context(), was.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if was.DeletionTimestamp == nil && now.DeletionTimestamp != nil {
			gone = append(gone, was.Name)
		}
	}
	slices.Sort(gone)
	return gone
}

// rank gives a pod a priority, and requests by which nodes get full.
func (c *schedulerCase) rank(p *corev1.Pod) {
	p.Spec.PriorityClassName = c.pick("least", "low", "low", "mid", "mid", "high")
	requests := p.Spec.Containers[0].Resources.Requests
	requests[corev1.ResourceCPU] = apiresource.MustParse(c.pick("200m", "500m", "1", "2"))
}

// start sets the start time of a pod, different for each pod: between equal times the choice is random.
func (c *schedulerCase) start(ctx context.Context, p *corev1.Pod, i int) error {
	p.Status.StartTime = new(metav1.Unix(1_700_000_000+int64(20*c.r.IntN(1000)+i), 0))
	_, err := c.client.CoreV1().Pods("default").UpdateStatus(ctx, p, metav1.UpdateOptions{})
	return err
}

// createBudgets creates up to three budgets, with the status of a controller.
func (c *schedulerCase) createBudgets(ctx context.Context) error {
	api := c.client.PolicyV1().PodDisruptionBudgets("default")
	for i := range c.r.IntN(4) {
		b, err := api.Create(ctx, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("b%d", i)},
			Spec: policyv1.PodDisruptionBudgetSpec{
				MinAvailable: new(intstr.FromInt32(1)), Selector: c.selector(),
			},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		b.Status.DisruptionsAllowed = int32(c.r.IntN(3))
		if c.one(3) {
			b.Status.DisruptedPods = map[string]metav1.Time{fmt.Sprintf("old-%d", c.r.IntN(12)): metav1.Now()}
		}
		if b, err = api.UpdateStatus(ctx, b, metav1.UpdateOptions{}); err != nil {
			return err
		}
		c.budgets = append(c.budgets, b)
	}
	return nil
}

// noneNominated has no nominated pods, because each case has one pod to schedule.
type noneNominated struct{ fwk.PodNominator }

// NominatedPodsForNode implements framework.PodNominator.
func (noneNominated) NominatedPodsForNode(string) []fwk.PodInfo { return nil }
