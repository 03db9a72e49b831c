package bowsprit_test

import (
	"context"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/testserver"
)

// candidate competes for the Lease default/shared as client-go does, until ctx ends, and sends its name when it leads.
func candidate(
	ctx context.Context, t *testing.T, client *kubernetes.Clientset, name, version string, running *sync.WaitGroup,
	leads chan<- string,
) {
	t.Helper()
	nominee, _, err := leaderelection.NewCandidate(client, "default", name, "shared", version, version,
		coordinationv1.OldestEmulationVersion)
	if err != nil {
		t.Fatal(err)
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: "default", Name: "shared"}, Client: client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		},
		LeaseDuration: 5 * time.Second, RenewDeadline: time.Second, RetryPeriod: 100 * time.Millisecond,
		Coordinated: true, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {
				select {
				case leads <- name:
				case <-ctx.Done():
				}
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	running.Go(func() { nominee.Run(ctx) })
	running.Go(func() { elector.Run(ctx) })
}

// TestCoordinatedLeaderElection checks that the candidate of client-go that emulates the oldest version leads, even if
// it comes later.
func TestCoordinatedLeaderElection(t *testing.T) {
	client, err := kubernetes.NewForConfig(testserver.Start(t, func(c *bowsprit.Config) {
		c.API.CoordinatedLeaderElection, c.API.RuntimeConfig = true,
			map[string]string{"coordination.k8s.io/v1beta1": "true"}
	}).RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	leads := make(chan string)
	for _, c := range []struct{ name, version string }{{"newer", "1.36.0"}, {"older", "1.35.0"}} {
		candidate(ctx, t, client, c.name, c.version, &running, leads)
		if got := <-leads; got != c.name {
			t.Fatalf("%s leads, want %s", got, c.name)
		}
	}
}

// TestUncoordinatedLeases checks that without the gate a Lease belongs to its holderIdentity, and that with the gate a
// client can only be a candidate if the kind is served.
func TestUncoordinatedLeases(t *testing.T) {
	for _, gate := range []bool{false, true} {
		client, err := kubernetes.NewForConfig(testserver.Start(t,
			func(c *bowsprit.Config) { c.API.CoordinatedLeaderElection = gate }).RESTConfig())
		if err != nil {
			t.Fatal(err)
		}
		holder, strategy := "me", coordinationv1.OldestEmulationVersion
		lease, err := client.CoordinationV1().Leases("default").Create(t.Context(), &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: "l"},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: &holder, Strategy: &strategy, PreferredHolder: &holder,
			},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if kept := lease.Spec.Strategy != nil && lease.Spec.PreferredHolder != nil; kept != gate {
			t.Errorf("with the gate %v: %+v", gate, lease.Spec)
		}
		if _, err := client.CoordinationV1beta1().LeaseCandidates("default").List(t.Context(),
			metav1.ListOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("candidates: %v", err)
		}
	}
}
