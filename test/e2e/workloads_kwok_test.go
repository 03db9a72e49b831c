package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// startKwok starts an etcd, and Kubernetes' programs and kwok from a folder, and creates nodes. With limited their
// clients keep the limits that they ship with, as with kwokctl; else the limits are raised, as with
// --disable-qps-limits.
func startKwok(t *testing.T, folder string, nodes int, limited bool) simulated {
	t.Helper()
	var free, fast []string
	if !limited {
		free = []string{
			"--max-requests-inflight=0", "--max-mutating-requests-inflight=0", "--enable-priority-and-fairness=false",
		}
		fast = []string{"--kube-api-qps=5000", "--kube-api-burst=10000"}
	}
	etcd := startCluster(t, 1, nil)
	api := startReferenceBy(t, []string{filepath.Join(folder, "kube-apiserver")}, etcd, free...)
	config := api.config(t)
	ctx := bounded(t, scaleLimit)
	client := kubernetes.NewForConfigOrDie(config)
	ended := make(chan string, 3) // the names of ended programs
	pids := []int{etcd.members[0].cmd.Process.Pid, api.cmd.Process.Pid}
	for name, flags := range map[string][]string{
		"kube-controller-manager": append([]string{"--leader-elect=false", "--secure-port=0",
			"--cert-dir=" + t.TempDir()}, fast...),
		"kube-scheduler": append([]string{"--leader-elect=false", "--secure-port=0",
			"--cert-dir=" + t.TempDir()}, fast...),
		"kwok": {"--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
			"--node-lease-duration-seconds=40", "--cidr=10.0.0.0/8", "--config=" + kwokStages(t)},
	} {
		flags = append(flags, "--kubeconfig="+api.kubeconfig)
		pid := startProgram(t, filepath.Join(folder, name), flags...).Process.Pid
		pids = append(pids, pid)
		go func() {
			// It stays for startProgram to collect.
			unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
			ended <- name
		}()
	}
	for i := range nodes {
		if _, err := client.CoreV1().Nodes().Create(ctx, fakeNode(i), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	name := "Kubernetes and kwok"
	if limited {
		name += " with their limits"
	}
	return simulated{name, config, pids, ended}
}

// kwokStages writes the Stages by which kwokctl has nodes and pods live, and returns their file. They are in the module
// against which our Stages are tested.
func kwokStages(t *testing.T) string {
	t.Helper()
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok")
	list.Dir = filepath.Join("..", "oracle-builtins")
	dir, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	stages := filepath.Join(strings.TrimSpace(string(dir)), "kustomize", "stage")
	for _, set := range []string{"node/fast", "node/heartbeat-with-lease", "pod/fast"} {
		files, err := filepath.Glob(filepath.Join(stages, set, "*-*.yaml"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no Stages of %s: %v", set, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all = append(append(all, "---\n"...), text...)
		}
	}
	path := filepath.Join(t.TempDir(), "stages.yaml")
	if err := os.WriteFile(path, all, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
