package workloads

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/testserver"
)

// cases is how many random clusters there are; ORACLE_WORKLOAD_CASES makes it more.
func cases(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("ORACLE_WORKLOAD_CASES"))
	if err != nil {
		return 200
	}
	return n
}

// TestSchedulerDecides checks that the simulated scheduler selects a node that kube-scheduler's plugins rank best, or
// reports the same message, for random nodes, pods, services and sets.
func TestSchedulerDecides(t *testing.T) {
	client := schedulerAlone(t)
	k := newKubeScheduler(t)
	makeStorageClasses(t, client)
	r := rand.New(rand.NewPCG(18, 1))
	placed, kept := 0, 0
	for n := range cases(t) {
		c := &schedulerCase{r: r, client: client, stored: n%2 == 1}
		want, node, message, shows := c.schedule(t, k)
		switch {
		case !shows:
		case node != "" && !slices.Contains(want.best, node):
			t.Errorf("case %d: on %s, not among %v (%s)\n%s", n, node, want.best, want.because, c)
		case node == "" && want.anywhere:
			if message != want.because {
				t.Errorf("case %d: %s\nwant %s\n%s", n, message, want.because, c)
			}
			kept++
		case node == "" && !strings.HasPrefix(message, want.because+preempting):
			t.Errorf("case %d: %s\nwant %v %s\n%s", n, message, want.best, want.because, c)
		case node != "":
			placed++
		default:
			kept++
		}
		if t.Failed() {
			return
		}
		c.clean(t)
	}
	if t.Logf("%d placed, %d not", placed, kept); placed == 0 || kept == 0 {
		t.Error("the cases are all of one sort")
	}
}

// schedulerAlone starts a server without nodes, with the simulated scheduler as its only controller.
func schedulerAlone(t *testing.T) kubernetes.Interface {
	server := testserver.Start(t, testserver.WithWorkloads("nodes=0"), func(c *bowsprit.Config) {
		c.Controllers.Enabled = []string{"-*", "simulated-scheduler"}
		c.Admission.Disabled = append(c.Admission.Disabled, "TaintNodesByCondition", "ServiceAccount",
			"StorageObjectInUseProtection")
	})
	settings := server.RESTConfig()
	settings.QPS, settings.WarningHandler = -1, rest.NoWarnings{}
	client, err := kubernetes.NewForConfig(settings)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
