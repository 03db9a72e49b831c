package node

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

// crowd is the number of simultaneous followers of a log.
const crowd = 500

// TestKubeletFaults follows the log of a pod on a real node 500 times at once, each over its own connection. Then the
// kubelet hangs while logs are followed and commands run, the server is killed under 500 followers and restarts, and
// the kubelet presents a self-signed certificate. Other clients are served meanwhile, and neither the server nor the
// kubelet keeps resources of departed clients. test/e2e tests invalid responses of a kubelet.
func TestKubeletFaults(t *testing.T) {
	root := onMachine(t, moreInotify)
	if root == "" {
		return
	}
	n := startNode(t, root, joining{})
	n.approveServing(t)
	n.sh(t, "kubectl create -f - <<'END'\n"+counting+"END")
	n.sh(t, "kubectl wait pod counting --for=condition=Ready --timeout=120s")
	n.awaitReach(t, true)
	n.crowd(t)
	n.hang(t)
	n.killServer(t)
	n.wrongCertificate(t)
	if got := n.sh(t, "kubectl get pod counting -o jsonpath='{.status.containerStatuses[0].restartCount}'"); got != "0" {
		t.Errorf("the pod was started again %s times", got)
	}
}

// moreInotify raises the kernel's limit of inotify instances for root until the test ends, since the kubelet uses one
// for each followed log: the default of 128 is for all processes.
func moreInotify(t *testing.T) {
	t.Helper()
	const file = "/proc/sys/fs/inotify/max_user_instances"
	before, err := os.ReadFile(file)
	if err != nil {
		t.Skipf("the kernel has no inotify: %v", err)
	}
	var number int
	if _, err := fmt.Sscan(string(before), &number); err != nil {
		t.Fatal(err)
	}
	if number >= 2*crowd {
		return
	}
	if err := os.WriteFile(file, fmt.Append(nil, 2*crowd), 0); err != nil {
		t.Skipf("this many logs cannot be followed: %v", err)
	}
	t.Cleanup(func() {
		if err := os.WriteFile(file, before, 0); err != nil {
			t.Error(err)
		}
	})
}

// crowd starts 500 followers, which read the pod's next lines, and leave.
func (n *realNode) crowd(t *testing.T) {
	t.Helper()
	few := n.follow(t, 5) // the server has allocated its initial state by then
	few.awaitBeyond(t, 0)
	few.end()
	n.awaitFollowed(t, 0)
	before := n.usage(t)
	many := n.follow(t, crowd)
	defer many.end()
	many.awaitBeyond(t, 0)
	n.awaitFollowed(t, crowd)
	many.awaitBeyond(t, n.lastNumber(t))
	t.Logf("before: %v; with %d followers: %v", before, crowd, n.usage(t))
	n.others(t)
	many.awaitBeyond(t, n.lastNumber(t))
	many.end()
	n.awaitFollowed(t, 0)
	n.awaitReturn(t, before)
	t.Logf("when they have left: %v", n.usage(t))
}

// others makes requests that have nothing to do with the logs.
func (n *realNode) others(t *testing.T) {
	t.Helper()
	n.sh(t, `kubectl get pods -A >/dev/null
kubectl create configmap other --from-literal=a=b
kubectl patch configmap other -p '{"data":{"a":"c"}}'
kubectl wait configmap other --for=jsonpath='{.data.a}'=c --timeout=60s
kubectl delete configmap other`)
}

// hang stops the kubelet, like an overloaded machine, while logs are followed and commands run. All its clients leave
// meanwhile, and the server then holds nothing of theirs. Afterwards the kubelet continues normally.
func (n *realNode) hang(t *testing.T) {
	t.Helper()
	before := n.usage(t)
	kubelet := n.kubelet.cmd.Process
	running := n.follow(t, 20)
	defer running.end()
	running.awaitBeyond(t, n.lastNumber(t))
	var commands []*component
	for _, sockets := range []string{"true", "false"} {
		commands = append(commands, n.run(t, "/bin/sh", "-c", "KUBECTL_REMOTE_COMMAND_WEBSOCKETS="+sockets+
			" exec kubectl exec counting -- sh -c 'echo here; sleep 100000'"))
	}
	for _, p := range commands {
		n.awaitLine(t, p, "here")
	}
	if err := kubelet.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer kubelet.Signal(syscall.SIGCONT)
	late := n.follow(t, 20)
	defer late.end()
	for _, sockets := range []string{"true", "false"} { // these cannot connect, or wait
		commands = append(commands, n.run(t, "/bin/sh", "-c", "KUBECTL_REMOTE_COMMAND_WEBSOCKETS="+sockets+
			" exec kubectl exec counting -- true"))
	}
	n.others(t)
	for _, p := range commands {
		p.kill()
	}
	running.end()
	late.end()
	n.awaitReturn(t, before)
	t.Logf("when those have left who waited for a kubelet that hangs: %v", n.usage(t))
	if err := kubelet.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	n.awaitReach(t, true)
	n.awaitFollowed(t, 0)
	n.commands(t)
}

// commands runs a command in the pod, by both protocols.
func (n *realNode) commands(t *testing.T) {
	t.Helper()
	for _, sockets := range []string{"true", "false"} {
		line := "KUBECTL_REMOTE_COMMAND_WEBSOCKETS=" + sockets + " kubectl exec counting -- echo answer"
		if got := n.sh(t, line); got != "answer" {
			t.Errorf("%s: %q", line, got)
		}
	}
}

// killServer kills the server under 500 followers: each gets an error, and the kubelet then has no followers left. The
// server restarts with an authority for the kubelets' certificates.
func (n *realNode) killServer(t *testing.T) {
	t.Helper()
	before := n.usage(t)
	many := n.follow(t, crowd)
	defer many.end()
	many.awaitBeyond(t, 0)
	n.awaitFollowed(t, crowd)
	many.awaitBeyond(t, n.lastNumber(t))
	n.cmd.Process.Kill()
	n.cmd.Wait()
	many.ended.Wait()
	for i, one := range many.all {
		if one.err == nil {
			t.Fatalf("follower %d takes the death of the server for the end of the log", i)
		}
	}
	n.flags = append(n.flags, "--kubelet-certificate-authority="+n.home+"/.local/share/bowsprit/pki/ca.crt")
	n.start(t)
	n.awaitFollowed(t, 0)
	n.others(t)
	n.commands(t)
	again := n.follow(t, 5)
	defer again.end()
	again.awaitBeyond(t, n.lastNumber(t))
	again.end()
	n.awaitReturn(t, before)
	t.Logf("after the death of the server: %v", n.usage(t))
	n.sh(t, "kubectl run more --image=registry.k8s.io/pause:3.10 && "+ // scheduler and kubelet are with it again
		"kubectl wait pod more --for=condition=Ready --timeout=120s && kubectl delete pod more --grace-period=1")
}

// wrongCertificate makes the kubelet use a self-signed serving certificate, and then its issued one again.
func (n *realNode) wrongCertificate(t *testing.T) {
	t.Helper()
	restart := func() {
		n.kubelet.kill()
		n.runKubelet(t)
	}
	fails := func(line string) string {
		out, err := n.try(t.Context(), line)
		if err == nil {
			return line + ": no error"
		}
		if !strings.Contains(out, "failed to verify certificate: x509: ") {
			return fmt.Sprintf("%s: %s", line, out)
		}
		return ""
	}
	n.sh(t, "sed -i 's/^serverTLSBootstrap: true/serverTLSBootstrap: false/' kubelet.yaml")
	restart()
	await(t, func(context.Context) string { return fails("kubectl logs counting --tail=1") })
	for _, line := range []string{
		"KUBECTL_REMOTE_COMMAND_WEBSOCKETS=true kubectl exec counting -- true",
		"KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false kubectl exec counting -- true",
		"kubectl get --raw /api/v1/nodes/one/proxy/healthz",
	} {
		if problem := fails(line); problem != "" {
			t.Error(problem)
		}
	}
	n.awaitLogs(t, "--insecure-skip-tls-verify-backend")
	n.others(t)
	n.sh(t, "sed -i 's/^serverTLSBootstrap: false/serverTLSBootstrap: true/' kubelet.yaml")
	restart()
	n.awaitLogs(t, "")
	n.commands(t)
}

// awaitLogs waits until the kubelet has found the pod again after its start, and sends its log.
func (n *realNode) awaitLogs(t *testing.T, flag string) {
	t.Helper()
	await(t, func(ctx context.Context) string {
		if out, err := n.try(ctx, "kubectl logs counting --tail=1 "+flag); err != nil {
			return out
		}
		return ""
	})
}
