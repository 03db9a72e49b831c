package e2e

import (
	"fmt"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// TestReplicasRollout kills one after the other of three servers that simulate workloads on one etcd, each in the
// middle of a rollout. One of the others finishes the next one, whether its controllers worked before or rested: all
// pods are of the last template, and there are as many as are wanted.
func TestReplicasRollout(t *testing.T) {
	t.Parallel()
	etcd := startCluster(t, 1, nil)
	var sites []*site
	for range 3 {
		sites = append(sites, startSite(t, "--etcd-servers="+etcd.endpoints(), "--simulate=nodes=3", withoutAccounts))
	}
	clientOf := func(i int) kubernetes.Interface {
		return kubernetes.NewForConfigOrDie(sites[i%len(sites)].server.config(t))
	}
	lease := func(client kubernetes.Interface) *coordinationv1.Lease {
		t.Helper()
		l, err := client.CoordinationV1().Leases("kube-system").Get(bounded(t, commandLimit), "bowsprit-controllers",
			metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	ctx := bounded(t, startLimit)
	d := createWeb(ctx, t, clientOf(0))
	untilDeployment(ctx, t, clientOf(1), rolledOut)
	moves := 0
	for round, s := range sites {
		ctx, client := bounded(t, startLimit), clientOf(round+1)
		before := *lease(client).Spec.HolderIdentity
		d = updateImage(ctx, t, clientOf(round), d, fmt.Sprintf("registry.example.com/web:%d-a", round))
		under := untilDeployment(ctx, t, client, rollingOut)
		s.server.kill()
		// The first may be over by now; this one needs controllers.
		image := fmt.Sprintf("registry.example.com/web:%d-b", round)
		d = updateImage(ctx, t, client, d, image)
		untilDeployment(ctx, t, client, rolledOut)
		checkRollout(ctx, t, client, image)
		checkHistory(ctx, t, client, 1+2*(round+1))
		moved := *lease(client).Spec.HolderIdentity != before
		if moved {
			moves++
		}
		t.Logf("server %d killed with %d of %d pods updated; the controllers moved: %v", round,
			under.Status.UpdatedReplicas, replicas, moved)
		s.start()
	}
	if moves == 0 {
		t.Error("no server whose controllers worked was killed")
	}
}
