package node

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestBenchStreams measures the time for 1 GiB to a pod and back by kubectl exec and cp, over WebSockets and over SPDY,
// through bowsprit and through kube-apiserver, in turns. Both lead to the same pod on the same kubelet, which has
// joined bowsprit; kube-apiserver has copies of the objects. Files on both sides are in memory. "make bench-node" runs
// it.
func TestBenchStreams(t *testing.T) {
	if os.Getenv("NODE_BENCH") == "" {
		t.Skip("measures for minutes: make bench-node")
	}
	root := onMachine(t, needs("openssl"), program("kube-apiserver", kubeAPIServer), program("etcd", etcd))
	if root == "" {
		return
	}
	b := &streamBench{realNode: startNode(t, root, joining{})}
	b.approveServing(t)
	b.sh(t, "kubectl create -f - <<END\n"+carrier+"END")
	b.sh(t, "kubectl wait pod carrier --for=condition=Ready --timeout=120s")
	b.awaitReach(t, true)
	b.servers = []streamServer{
		{"bowsprit", []*component{{cmd: b.cmd}}, ""}, {"kube-apiserver", b.startBeside(t), "--kubeconfig=kube.conf"},
	}
	b.sh(t, fmt.Sprintf("head -c %d /dev/urandom > /run/file", streamed))
	for _, command := range streamWays {
		for _, sockets := range []string{"true", "false"} {
			b.compare(t, command, sockets)
		}
	}
}

const (
	streamed     = 1 << 30 // bytes
	streamRounds = 3
)

// carrier is a pod with a folder in memory.
const carrier = `
apiVersion: v1
kind: Pod
metadata: {name: carrier}
spec:
  nodeName: one
  terminationGracePeriodSeconds: 1
  volumes: [{name: memory, emptyDir: {medium: Memory}}]
  containers:
  - {name: main, image: "registry.k8s.io/pause:3.10", volumeMounts: [{name: memory, mountPath: /memory}]}
`

// streamWay is a command line that carries the bytes.
type streamWay struct{ name, line string }

// streamWays carry the file up and down again. busybox's cat, stat and tar read more than a byte at a time.
var streamWays = []streamWay{
	{"exec, up", "KUBECTL exec -i carrier -- sh -c 'cat > /memory/file; busybox stat -c %s /memory/file' < /run/file"},
	{"exec, down", "KUBECTL exec carrier -- cat /memory/file > /run/back"},
	{"cp, up", "KUBECTL cp /run/file carrier:/memory/file"},
	{"cp, down", "KUBECTL cp carrier:/memory/file /run/back >/dev/null 2>&1"},
}

type streamBench struct {
	*realNode
	servers []streamServer
}

type streamServer struct {
	name      string
	processes []*component // the last is the API server
	flag      string       // of kubectl
}

// startBeside starts kube-apiserver beside bowsprit, and creates the objects by which it finds the pod.
func (b *streamBench) startBeside(t *testing.T) []*component {
	t.Helper()
	b.publicKey(t)
	b.sh(t, `bowsprit kubeconfig --server=https://127.0.0.1:6444 --user admin --group=system:masters > kube.conf
bowsprit kubeconfig --user kube-apiserver-kubelet-client --group=system:masters > kubelet-client.conf`)
	processes := b.startKube(t, "6444", append(b.toKubelets(t), "--disable-admission-plugins=ServiceAccount")...)
	await(t, func(ctx context.Context) string {
		out, err := b.try(ctx, "kubectl --kubeconfig=kube.conf get --raw /readyz && "+
			"kubectl --kubeconfig=kube.conf get namespace default")
		if err != nil {
			return out
		}
		return ""
	})
	b.sh(t, `kubectl get node one -o yaml | sed '/^  uid:/d; /^  resourceVersion:/d' > node.yaml
kubectl --kubeconfig=kube.conf create -f node.yaml
kubectl --kubeconfig=kube.conf replace --subresource=status -f node.yaml
kubectl --kubeconfig=kube.conf create -f - <<END
`+carrier+"END")
	return processes
}

// toKubelets returns the flags by which kube-apiserver calls kubelets, with the user of kubelet-client.conf.
func (n *realNode) toKubelets(t *testing.T) []string {
	t.Helper()
	n.sh(t, `for part in certificate key; do
  kubectl --kubeconfig=kubelet-client.conf config view --raw -o jsonpath="{.users[0].user.client-$part-data}" |
    base64 -d > kubelet-client.$part
done`)
	return []string{
		"--kubelet-client-certificate=kubelet-client.certificate", "--kubelet-client-key=kubelet-client.key",
	}
}

// compare measures one command by one protocol, all servers in turns, and prints the medians.
func (b *streamBench) compare(t *testing.T, command streamWay, sockets string) {
	t.Helper()
	protocol := map[string]string{"true": "WebSockets", "false": "SPDY"}[sockets]
	took, used, grown := map[string][]float64{}, map[string][]float64{}, map[string][]float64{}
	for range streamRounds {
		for _, s := range b.servers {
			line := "export KUBECTL_REMOTE_COMMAND_WEBSOCKETS=" + sockets + "\n" +
				strings.ReplaceAll(command.line, "KUBECTL", "kubectl "+s.flag)
			b.sh(t, "rm -f /run/back")
			before, cpu, began := b.resident(t, s, true), processors(t, s.processes), time.Now()
			out := b.sh(t, line)
			took[s.name] = append(took[s.name], time.Since(began).Seconds())
			used[s.name] = append(used[s.name], (processors(t, s.processes) - cpu).Seconds())
			grown[s.name] = append(grown[s.name], b.resident(t, s, false)-before)
			if strings.HasSuffix(command.name, "down") {
				b.sh(t, "cmp /run/file /run/back") // verifies the upload too
			} else if out != "" && out != strconv.Itoa(streamed) {
				t.Errorf("%s, %s, %s: %s bytes have come", s.name, command.name, protocol, out)
			}
		}
	}
	for _, s := range b.servers {
		t.Logf("bench: %-16s %-44s %s, %s of CPU time, at most %s more resident", s.name,
			"1 GiB by kubectl "+command.name+", "+protocol, median(took[s.name], "s"), median(used[s.name], "s"),
			median(grown[s.name], "MiB"))
	}
}

// median returns the median, and all figures for the log.
func median(figures []float64, unit string) string {
	sorted := slices.Sorted(slices.Values(figures))
	all := make([]string, len(figures))
	for i, f := range figures {
		all[i] = fmt.Sprintf("%.1f", f)
	}
	return fmt.Sprintf("%.1f %s (%s)", sorted[len(sorted)/2], unit, strings.Join(all, " "))
}

var highWater = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// resident returns the peak resident memory of an API server in MiB. With anew, a new peak begins at the current value.
func (b *streamBench) resident(t *testing.T, s streamServer, anew bool) float64 {
	t.Helper()
	process := fmt.Sprintf("/proc/%d/", s.processes[len(s.processes)-1].cmd.Process.Pid)
	if anew {
		if err := os.WriteFile(process+"clear_refs", []byte("5"), 0); err != nil {
			t.Fatal(err)
		}
	}
	status, err := os.ReadFile(process + "status")
	if err != nil {
		t.Fatal(err)
	}
	found := highWater.FindSubmatch(status)
	if found == nil {
		t.Fatalf("no peak of memory in %s", status)
	}
	kib, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return float64(kib) / 1024
}
