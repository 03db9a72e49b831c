package node

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// releaseVersion is the version of the release in these tests.
const releaseVersion = "0.1.0-node"

// makeRelease builds a release for this platform, like "make release".
func makeRelease(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "run", "./release", "-root=..", "-version=v"+releaseVersion,
		"-targets=linux/"+runtime.GOARCH, "-out="+filepath.Join(binaries, "release"))
	cmd.Dir = filepath.Join("..", "..", "tools")
	cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH="+strconv.FormatInt(time.Now().Unix(), 10))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// TestReleaseOnNode runs the container artifacts of a release: the image, imported and run by containerd as on the page
// docs/packages.md, and the Helm chart, which docs/chart.md installs as a control plane on a real node that has joined
// bowsprit.
func TestReleaseOnNode(t *testing.T) {
	root := onMachine(t, makeRelease, program("helm", helm))
	if root == "" {
		return
	}
	n := startNode(t, root, joining{})
	n.sh(t, "cp "+filepath.Join(binaries, "release", "bowsprit*")+" .")
	n.approveServing(t)
	n.runImage(t)
	n.runChart(t)
}

// runImage follows the page with containerd's own tool, and checks the remaining process.
func (n *realNode) runImage(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "packages.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## As a container\n")
	section, _, found := strings.Cut(section, "\n## ")
	if !found {
		t.Fatal("packages.md does not say how the image runs")
	}
	file := filepath.Join(t.TempDir(), "packages.md")
	if err := os.WriteFile(file, []byte(section), 0o600); err != nil {
		t.Fatal(err)
	}
	n.session().Run(t, file, map[string]string{"VERSION": releaseVersion})

	pid := n.sh(t, "ctr task ls | awk '$1 == \"bowsprit\" { print $2 }'")
	status := strings.Join(strings.Fields(n.sh(t, "grep -E '^(Uid|Gid|CapEff)' /proc/"+pid+"/status")), " ")
	const want = "Uid: 65532 65532 65532 65532 Gid: 65532 65532 65532 65532 CapEff: 0000000000000000"
	if status != want {
		t.Errorf("the process of the image is %s, want %s", status, want)
	}
	if options := n.sh(t, "awk '$5 == \"/\" { print $6 }' /proc/"+pid+"/mountinfo"); !strings.HasPrefix(options, "ro,") {
		t.Errorf("the root of the container is mounted %s", options)
	}
	n.sh(t, "ctr task kill bowsprit; until ctr task ls | grep '^bowsprit .*STOPPED'; do sleep 0.1; done")
	n.sh(t, "ctr task delete bowsprit && ctr container delete bowsprit") // fails unless it exited successfully
}

// runChart follows the page, then replaces the pod: created objects still exist. Then it upgrades and uninstalls the
// release.
func (n *realNode) runChart(t *testing.T) {
	t.Helper()
	n.runPage(t, "chart.md", map[string]string{"VERSION": releaseVersion})
	const there = "--namespace=team-a"
	container := func() string {
		return n.sh(t, "kubectl get pod team-a-bowsprit-0 "+there+" -o jsonpath='{.status.containerStatuses[0].containerID}'")
	}
	pid := n.sh(t, "ctr task ls | awk '$1 == \""+strings.TrimPrefix(container(), "containerd://")+"\" { print $2 }'")
	if uid := n.sh(t, "awk '/^Uid/ { print $2 }' /proc/"+pid+"/status"); uid != "65532" {
		t.Errorf("the pod's process is that of user %s", uid)
	}
	first := container()
	n.sh(t, "kubectl delete pod team-a-bowsprit-0 --wait "+there)
	n.sh(t, "kubectl rollout status statefulset team-a-bowsprit --timeout=2m "+there)
	if container() == first {
		t.Error("the pod is that of before")
	}
	// Also by the proxy of the outer server: the inner server does not know that user, and serves only its version.
	n.sh(t, "kubectl get --raw /api/v1/namespaces/team-a/services/https:team-a-bowsprit:https/proxy/version | grep v1.36")
	ready := n.sh(t, fmt.Sprintf("kubectl get pod team-a-bowsprit-0 %s "+
		"-o jsonpath='{.status.containerStatuses[0].ready} {.status.containerStatuses[0].restartCount}'", there))
	if ready != "true 0" {
		t.Errorf("the pod is ready, and was restarted: %s", ready)
	}
	forward := n.run(t, "kubectl", "port-forward", there, "service/team-a-bowsprit", "16443:6443")
	n.awaitLine(t, forward, "Forwarding from")
	got := n.sh(t, "kubectl --kubeconfig=team-a.conf --server=https://localhost:16443 get crontabs -o name 2>&1 || :")
	if got != "crontab.stable.example.com/my-new-cron-object" {
		t.Errorf("after the pod was replaced there is %q: %s", got, forward.log)
	}
	n.sh(t, "helm uninstall team-a --wait "+there+" && kubectl wait pod --all --for=delete --timeout=120s "+there)
	kept := n.sh(t, "kubectl get secrets,persistentvolumeclaims,pods -o name "+there)
	if kept != "secret/team-a-bowsprit-pki\npersistentvolumeclaim/data-team-a-bowsprit-0" {
		t.Errorf("the release leaves %s", kept)
	}
}
