package node

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The environment of TestConformance: a regular expression of the specs to run, and the directory for their results and
// logs.
const (
	conformance        = "NODE_CONFORMANCE"
	conformanceResults = "NODE_CONFORMANCE_RESULTS"
)

// wanted is the minimum share of the specs passing with kube-apiserver that must pass with bowsprit.
const wanted = 0.98

// dnsAddress is the address of CoreDNS for pods. CoreDNS runs on the node, like kube-proxy.
const dnsAddress = "192.0.2.53"

// TestConformance runs Kubernetes' conformance tests on a real node, with bowsprit, and with kube-apiserver and etcd:
// the kubelet, containerd, the controllers, the scheduler, kube-proxy, CoreDNS, the images and the certificates are the
// same. 98 % of the specs that pass with kube-apiserver must pass with bowsprit. "make conformance-e2e" runs it.
func TestConformance(t *testing.T) {
	chosen, results := os.Getenv(conformance), os.Getenv(conformanceResults)
	if chosen == "" || results == "" {
		t.Skip("runs for an hour and more: make conformance-e2e")
	}
	if err := os.MkdirAll(results, 0o755); err != nil {
		t.Fatal(err)
	}
	prepare := []func(t *testing.T){
		needs("openssl"), moreInotify, unpackProxy, unpackPorts, unpackTools, buildSuite,
		program("kube-proxy", kubeProxy), program("kube-apiserver", kubeAPIServer), program("etcd", etcd),
		program("sample-apiserver", sample), program("coredns", coreDNS),
	}
	for _, plane := range []struct {
		name  string
		start func(t *testing.T, n *realNode)
	}{
		{"kube-apiserver", startKubePlane},
		{"bowsprit", func(t *testing.T, n *realNode) { startBowsprit(t, n) }},
	} {
		t.Run(plane.name, func(t *testing.T) {
			root := onMachine(t, prepare...)
			if root == "" {
				return
			}
			s := &suite{realNode: conformanceNode(t, root, plane.start)}
			s.results = filepath.Join(results, plane.name)
			s.run(t, chosen)
		})
	}
	if os.Getenv(inside) == "" {
		compare(t, filepath.Join(results, "kube-apiserver.txt"), filepath.Join(results, "bowsprit.txt"))
	}
}

// conformanceNode starts a control plane, and a node for the specs.
func conformanceNode(t *testing.T, root string, start func(t *testing.T, n *realNode)) *realNode {
	t.Helper()
	sandbox(t)
	addAddress(t, dnsAddress)
	n := &realNode{root: root, hostPorts: true, cluster: certified(t)}
	n.wrapPorts(t)
	n.sh(t, "cp admin.conf "+n.kubeconfig())
	n.startContainerd(t)
	n.loadConformanceImages(t)
	start(t, n)
	await(t, func(ctx context.Context) string {
		out, err := n.try(ctx, "kubectl get --raw /readyz && kubectl get namespace default")
		if err != nil {
			return out
		}
		return ""
	})
	n.runControllers(t, "--node-monitor-grace-period=50s")
	n.runScheduler(t)
	n.writeKubeletConfig(t, "maxPods: 250\nclusterDomain: cluster.local\nclusterDNS: ["+dnsAddress+"]\n")
	// Without control groups for pods the kubelet panics when a pod is resized. It is restarted, as systemd would
	// restart it.
	n.kubelet = n.run(t, "/bin/sh", append([]string{"-c", keepRunning, "sh", "kubelet"}, n.kubeletFlags()...)...)
	n.startProxy(t)
	n.startDNS(t)
	n.approveServing(t)
	n.sh(t, "kubectl wait node one --for=condition=Ready --timeout=120s")
	return n
}

// keepRunning is a script that restarts a command when it exits. When the script ends, it ends the command too, which
// would otherwise keep the pipe of their log open: "run" waits for the end of the log.
const keepRunning = `trap 'kill $!; wait $!; exit' TERM
while :; do "$@" & wait $!; sleep 1; done`

// startKubePlane starts etcd, and kube-apiserver with the additional flags that the specs need to call kubelets and
// extension API servers.
func startKubePlane(t *testing.T, n *realNode) {
	t.Helper()
	n.publicKey(t)
	const pki = ".local/share/bowsprit/pki/"
	n.startKube(t, "443", append(n.toKubelets(t),
		"--requestheader-client-ca-file="+pki+"front-proxy-ca.crt", "--requestheader-allowed-names=",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-", "--enable-aggregator-routing",
		"--proxy-client-cert-file="+pki+"front-proxy-client.crt",
		"--proxy-client-key-file="+pki+"front-proxy-client.key")...)
}

// startDNS runs CoreDNS.
func (n *realNode) startDNS(t *testing.T) {
	t.Helper()
	const corefile = `.:53 {
  bind ` + dnsAddress + `
  errors
  kubernetes cluster.local in-addr.arpa ip6.arpa {
    kubeconfig admin.conf
    pods insecure
  }
}`
	if err := os.WriteFile(filepath.Join(n.home, "Corefile"), []byte(corefile), 0o600); err != nil {
		t.Fatal(err)
	}
	n.run(t, "coredns", "-conf=Corefile")
}

// compare fails the test if too few of the specs passing with kube-apiserver pass with bowsprit, and logs the others.
func compare(t *testing.T, kubeFile, ownFile string) {
	t.Helper()
	kube, own := readVerdicts(t, kubeFile), readVerdicts(t, ownFile)
	passed, both, more := 0, 0, 0
	for _, name := range slices.Sorted(maps.Keys(own)) {
		switch {
		case kube[name].verdict != "passed" && own[name].verdict == "passed":
			more++
			t.Logf("passes with bowsprit alone: %s (%s)", name, cmp.Or(kube[name].verdict, "not run"))
		case kube[name].verdict != "passed":
		case own[name].verdict == "passed":
			passed, both = passed+1, both+1
		default:
			passed++
			t.Logf("passes with kube-apiserver alone: %s (%s, %s)", name, own[name].verdict, own[name].log)
		}
	}
	t.Logf("conformance: %d specs run; of %d that pass with kube-apiserver %d pass with bowsprit, and %d others",
		len(own), passed, both, more)
	if float64(both) < wanted*float64(passed) {
		t.Errorf("fewer than %v %%", 100*wanted)
	}
}

// verdict is the outcome of a spec: passed, failed, skipped, or cut off.
type verdict struct{ verdict, log string }

// readVerdicts reads the file of results of one server.
func readVerdicts(t *testing.T, file string) map[string]verdict {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Skipf("there is nothing to compare: %v", err)
	}
	all := map[string]verdict{}
	for line := range strings.Lines(string(text)) {
		if fields := strings.SplitN(strings.TrimSpace(line), "\t", 3); len(fields) == 3 {
			all[fields[2]] = verdict{fields[0], fields[1]} // of several, the last one counts
		}
	}
	return all
}

// specs returns the names of the chosen conformance tests, most informative groups first.
func specs(t *testing.T, chosen string) (parallel, serial []string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), suiteFile(), "--list-tests").Output()
	if err != nil {
		t.Fatal(err)
	}
	filter, err := regexp.Compile(chosen)
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile(`(?m)^ *\S+\.go:\d+: (.*\[Conformance\].*)$`).FindAllSubmatch(out, -1) {
		switch name := strings.TrimSpace(string(found[1])); {
		case !filter.MatchString(name):
		case strings.Contains(name, "[Serial]"):
			serial = append(serial, name)
		default:
			parallel = append(parallel, name)
		}
	}
	rank := func(name string) int {
		group, _, _ := strings.Cut(name, " ")
		return slices.Index(groupOrder, group) // others first
	}
	byRank := func(a, b string) int { return cmp.Compare(rank(a), rank(b)) }
	slices.SortStableFunc(parallel, byRank)
	slices.SortStableFunc(serial, byRank)
	if len(parallel)+len(serial) == 0 {
		t.Fatal(fmt.Errorf("no spec matches %q", chosen))
	}
	return parallel, serial
}

var groupOrder = []string{
	"[sig-api-machinery]", "[sig-node]", "[sig-network]", "[sig-storage]", "[sig-apps]", "[sig-scheduling]",
}
