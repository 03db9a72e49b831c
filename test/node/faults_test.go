package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestNodeFault stops the node like a power failure, and starts it again: its condition becomes Unknown, it gets the
// taints, pods with short tolerations are evicted and their successors wait until the node is back. Then the node is
// drained, which a PodDisruptionBudget first prevents.
func TestNodeFault(t *testing.T) {
	root := onMachine(t)
	if root == "" {
		return
	}
	// Kubelets renew their Lease every ten seconds.
	n := startNode(t, root, joining{controllers: []string{
		"--node-monitor-period=500ms", "--node-monitor-grace-period=20s",
	}})
	n.approveServing(t)
	n.sh(t, "kubectl create -f - <<END\n"+twoPods+"END")
	n.sh(t, "kubectl wait deployment web --for=condition=Available --timeout=120s")
	n.sh(t, "kubectl wait pod patient --for=condition=Ready --timeout=120s")
	n.awaitReach(t, true)
	evicted := n.sh(t, "kubectl get pods --selector=app=web -o name")
	patient := n.sh(t, "kubectl get pod patient -o jsonpath='{.metadata.uid}'")

	// The node controller evicts nothing when no node is left: it removes the taints, unless it is too late.
	n.sh(t, "kubectl label node one node.kubernetes.io/exclude-disruption=")
	n.powerOff(t)
	n.sh(t, "kubectl wait node one --for=condition=Ready=Unknown --timeout=120s")
	await(t, func(context.Context) string {
		taints := n.sh(t, "kubectl get node one -o jsonpath='{.spec.taints[*].key}:{.spec.taints[*].effect}'")
		if strings.Contains(taints, "node.kubernetes.io/unreachable") && strings.Contains(taints, "NoExecute") {
			return ""
		}
		return "the node has the taints " + taints
	})
	n.awaitReach(t, false)
	await(t, func(context.Context) string { // evicted, but not gone: the server cannot know whether they still run
		return n.wrongPods(t, map[string]int{"evicted": 2, "waiting": 2})
	})
	if got := n.sh(t, "kubectl get pod patient -o jsonpath='{.metadata.deletionTimestamp}'"); got != "" {
		t.Errorf("the pod that tolerates this for five minutes was evicted at %s", got)
	}

	n.startContainerd(t)
	n.startKubelet(t)
	n.sh(t, "kubectl wait node one --for=condition=Ready --timeout=120s")
	for name := range strings.FieldsSeq(evicted) {
		n.sh(t, "kubectl wait "+name+" --for=delete --timeout=120s")
	}
	n.sh(t, "kubectl wait deployment web --for=condition=Available --timeout=120s")
	n.sh(t, "kubectl wait pod patient --for=condition=Ready --timeout=120s")
	if taints := n.sh(t, "kubectl get node one -o jsonpath='{.spec.taints}'"); taints != "" {
		t.Errorf("the node is back and has the taints %s", taints)
	}
	back := n.sh(t, "kubectl get pod patient -o jsonpath='{.metadata.uid} {.status.containerStatuses[0].restartCount}'")
	if back != patient+" 1" {
		t.Errorf("the pod that was not evicted is %s, was %s, and must have been started again once", back, patient)
	}
	n.awaitReach(t, true)
	n.drain(t)
}

const twoPods = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      tolerations:
      - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 1}
      - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 1}
      containers: [{name: main, image: "registry.k8s.io/pause:3.10"}]
---
apiVersion: v1
kind: Pod
metadata: {name: patient}
spec:
  containers: [{name: main, image: "registry.k8s.io/pause:3.10"}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 2, selector: {matchLabels: {app: web}}}
`

// wrongPods compares the pods of the Deployment with the expected numbers of each kind.
func (n *realNode) wrongPods(t *testing.T, want map[string]int) string {
	t.Helper()
	lines := n.sh(t, "kubectl get pods --selector=app=web "+
		"-o jsonpath='{range .items[*]}{.metadata.deletionTimestamp}/{.spec.nodeName}{\"\\n\"}{end}'")
	got := map[string]int{}
	for line := range strings.FieldsSeq(lines) {
		switch deleted, node, _ := strings.Cut(line, "/"); {
		case deleted != "":
			got["evicted"]++
		case node == "":
			got["waiting"]++
		default:
			got["bound"]++
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		return fmt.Sprintf("pods are %v, want %v", got, want)
	}
	return ""
}

// drain evicts all pods of the node; the budget first refuses.
func (n *realNode) drain(t *testing.T) {
	t.Helper()
	out := n.sh(t, "kubectl drain one --force --timeout=1s 2>&1 || :")
	if !strings.Contains(out, "Cannot evict pod as it would violate the pod's disruption budget.") {
		t.Errorf("kubectl drain against the budget: %s", out)
	}
	n.sh(t, "kubectl delete poddisruptionbudget web && kubectl drain one --force --timeout=120s")
	await(t, func(context.Context) string { return n.wrongPods(t, map[string]int{"waiting": 2}) })
	n.sh(t, "kubectl uncordon one && kubectl wait deployment web --for=condition=Available --timeout=120s")
}

// awaitReach waits until the server reaches the kubelet, or until it reports that it cannot.
func (n *realNode) awaitReach(t *testing.T, wanted bool) {
	t.Helper()
	await(t, func(context.Context) string {
		if n.reaches(t) != wanted {
			return fmt.Sprintf("that the server reaches the kubelet is not %t: %s", wanted, n.sh(t, "cat error"))
		}
		return ""
	})
}

// powerOff kills the kubelet, containerd, and all containers with their shims.
func (n *realNode) powerOff(t *testing.T) {
	t.Helper()
	n.kubelet.kill()
	n.runtime.kill()
	for again := true; again; {
		again = false
		for _, pid := range shims(t) {
			again = true
			children, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
			for _, file := range children {
				text, _ := os.ReadFile(file) // the thread may have ended
				for child := range strings.FieldsSeq(string(text)) {
					if number, err := strconv.Atoi(child); err == nil {
						_ = syscall.Kill(number, syscall.SIGKILL)
					}
				}
			}
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// shims returns containerd's child processes in these namespaces, one per pod.
func shims(t *testing.T) (pids []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name, err := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(string(name), "containerd-shim") {
			continue // it may have ended
		}
		dir := filepath.Dir(file)
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			t.Fatal(err)
		}
		if line, _ := os.ReadFile(filepath.Join(dir, "cmdline")); len(line) > 0 { // else it is a zombie
			pids = append(pids, pid)
		}
	}
	return pids
}
