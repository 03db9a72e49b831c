package localpod

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/net/egress"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
	"github.com/bowsprit/bowsprit/internal/workload/localpod/callback"
)

func workload() *owner {
	claims := corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu"}}}
	return &owner{
		reference: metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "manager", UID: "u"},
		namespace: "team",
		template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "manager"}},
			Spec: corev1.PodSpec{
				NodeName: "node", SchedulerName: "other", SchedulingGates: []corev1.PodSchedulingGate{{Name: "g"}},
				InitContainers: []corev1.Container{{Name: "first"}},
				ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu"}},
				Containers:     []corev1.Container{{Name: "proxy"}, {Name: "manager", Resources: claims}},
			},
		},
	}
}

// TestPodOf checks that no scheduler, node or driver takes the pod, and that the workload's template stays as it is.
func TestPodOf(t *testing.T) {
	o := workload()
	pod, err := podOf(o, "manager", "server:1")
	if err != nil {
		t.Fatal(err)
	}
	s := pod.Spec
	if pod.Name != "manager-as-pod" || pod.Namespace != "team" || pod.Labels["app"] != "manager" ||
		pod.OwnerReferences[0].UID != "u" || pod.OwnerReferences[0].Controller != nil {
		t.Errorf("metadata %+v", pod.ObjectMeta)
	}
	if s.NodeName != "" || s.SchedulerName != cluster.LocalScheduler || s.SchedulingGates != nil ||
		s.InitContainers != nil || s.ResourceClaims != nil || len(s.Containers) != 1 ||
		s.Containers[0].Resources.Claims != nil {
		t.Errorf("spec %+v", s)
	}
	if !New().Is(pod) {
		t.Error("Is does not recognize it")
	}
	if again := workload(); len(o.template.Labels) != len(again.template.Labels) ||
		len(o.template.Spec.Containers) != 2 || o.template.Spec.Containers[1].Resources.Claims == nil {
		t.Errorf("the template has changed: %+v", o.template)
	}
	for _, name := range []string{"", "first", "nosuch"} {
		if _, err := podOf(o, name, ""); err == nil {
			t.Errorf("container %q is accepted", name)
		}
	}
}

// TestSetStatus checks the conditions, and that their times change with their statuses alone.
func TestSetStatus(t *testing.T) {
	pod, err := podOf(workload(), "manager", "")
	if err != nil {
		t.Fatal(err)
	}
	ready := func() (status corev1.ConditionStatus, at time.Time) {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady {
				return c.Status, c.LastTransitionTime.Time
			}
		}
		t.Fatal("no condition Ready")
		return
	}
	begin := time.Unix(1000, 0)
	for i, step := range []struct {
		state  callback.State
		status corev1.ConditionStatus
		since  int64
	}{
		{callback.State{}, corev1.ConditionFalse, 0},
		{callback.State{Started: true}, corev1.ConditionFalse, 0},
		{callback.State{Started: true, Ready: true}, corev1.ConditionTrue, 2},
		{callback.State{Started: true, Ready: true}, corev1.ConditionTrue, 2},
		{callback.State{Started: true}, corev1.ConditionFalse, 4},
	} {
		setStatus(pod, step.state, begin.Add(time.Duration(i)*time.Second))
		c := pod.Status.ContainerStatuses[0]
		status, at := ready()
		if status != step.status || at.Unix() != 1000+step.since || len(pod.Status.Conditions) != 4 {
			t.Errorf("step %d: conditions %+v", i, pod.Status.Conditions)
		}
		if c.Ready != step.state.Ready || *c.Started != step.state.Started ||
			c.State.Running.StartedAt.Unix() != 1000 {
			t.Errorf("step %d: %s since %d, %+v", i, status, at.Unix(), pod.Status)
		}
	}
}

func TestOptions(t *testing.T) {
	many := url.Values{}
	for range callback.MaxPorts + 1 {
		many.Add(callback.PortParameter, "1")
	}
	for query, want := range map[string]string{
		"": "", "container=c&port=1&port=65535": "", "port=0": "is not a port", "port=65536": "is not a port",
		"port=-1": "is not a port", "port=1.5": "is not a port", "port=": "is not a port",
		"port=" + strings.Repeat("9", 1000): "is not a port", many.Encode(): "101 ports are more than 100",
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		_, err = options(values)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) ||
			len(err.Error()) > 200) {
			t.Errorf("%.40q: %v, want %q", query, err, want)
		}
	}
}

// TestAddresses checks that the addresses are in the reserved ranges, with each number.
func TestAddresses(t *testing.T) {
	seen := map[netip.Addr]bool{}
	for _, number := range []uint32{0, 1, 255, 256, 1<<17 - 1, 1 << 17, 1<<32 - 1} {
		four, six := addresses(number)
		if !egress.Programs4.Contains(four) || !egress.Programs6.Contains(six) {
			t.Errorf("%d: %s, %s", number, four, six)
		}
		seen[four] = true
	}
	if len(seen) != 5 { // the highest bits do not count
		t.Errorf("addresses %v", seen)
	}
}

// TestClaim checks that one program at a time is a pod.
func TestClaim(t *testing.T) {
	p := New()
	key := types.NamespacedName{Namespace: "team", Name: "manager-as-pod"}
	p.routes[key] = &route{user: "alice"}
	if err := p.claim(key, &route{user: "bob"}, nil); err == nil || !strings.Contains(err.Error(), "user alice") {
		t.Errorf("a second claim: %v", err)
	}
	p.release(key)
	if len(p.routes) != 0 {
		t.Errorf("%d routes", len(p.routes))
	}
}
