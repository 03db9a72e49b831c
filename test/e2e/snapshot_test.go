package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/etcd/client/v3"
	etcdsnapshot "go.etcd.io/etcd/client/v3/snapshot"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// TestMove moves the data of a running server with an embedded etcd to a cluster of three with etcdutl, and back with
// etcdctl, as described in docs/backup.md.
func TestMove(t *testing.T) {
	dir := t.TempDir()
	first := startServer(t, "--data-dir="+filepath.Join(dir, "first"))
	ctx := bounded(t, 3*commandLimit)
	if _, err := dynamic.NewForConfigOrDie(first.config(t)).Resource(definitionsGVR).Create(ctx,
		definition("move.example.com", "boxes", "Box"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	makeBox(t, ctx, first, "packed")
	writing, stop := context.WithCancel(ctx)
	ended := make(chan error, 1) // one result
	go func() { ended <- writeOn(writing, kubernetes.NewForConfigOrDie(first.config(t))) }()
	kubeconfig, err := os.ReadFile(first.kubeconfig) // tests have it elsewhere
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "first", "kubeconfig"), kubeconfig, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	backup := filepath.Join(dir, "backup.db")
	bowsprit(t, "snapshot", "save", backup, "--data-dir="+filepath.Join(dir, "first"))
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	bowsprit(t, "snapshot", "save", filepath.Join(dir, "same.db"), "--kubeconfig="+first.kubeconfig)
	first.stop(t)
	bowsprit(t, "snapshot", "save", filepath.Join(dir, "stopped.db"), "--data-dir="+filepath.Join(dir, "first"))

	etcd := startCluster(t, 3, func(m *member) {
		err := snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
			SnapshotPath: backup, Name: m.name, OutputDataDir: m.dir, PeerURLs: []string{m.peer},
			InitialCluster: m.initial, InitialClusterToken: "etcd-cluster",
			RevisionBump: 1_000_000_000, MarkCompacted: true,
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	second := startServer(t, "--data-dir="+filepath.Join(dir, "second"), "--etcd-servers="+etcd.endpoints())
	checkBoxes(t, ctx, second, "packed")
	makeBox(t, ctx, second, "abroad")
	back := filepath.Join(dir, "back.db")
	if _, err := etcdsnapshot.SaveWithVersion(ctx, zap.NewNop(),
		clientv3.Config{Endpoints: []string{etcd.members[1].client}}, back); err != nil {
		t.Fatal(err)
	}
	second.stop(t)

	third := filepath.Join(dir, "third")
	bowsprit(t, "snapshot", "restore", back, "--data-dir="+third)
	if out, err := exec.Command(filepath.Join(binaries, "bowsprit"), "snapshot", "restore", back, "--data-dir="+
		third).CombinedOutput(); err == nil || !strings.Contains(string(out), "is not empty; move it away") {
		t.Errorf("restore over what is there: %v, %s", err, out)
	}
	if err := os.CopyFS(filepath.Join(third, "pki"), os.DirFS(filepath.Join(dir, "first", "pki"))); err != nil {
		t.Fatal(err)
	}
	last := startServer(t, "--data-dir="+third)
	checkBoxes(t, ctx, last, "abroad", "packed")
	makeBox(t, ctx, last, "home")
}

// bowsprit runs the program and fails the test if it fails.
func bowsprit(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(bounded(t, commandLimit), filepath.Join(binaries, "bowsprit"),
		args...).CombinedOutput()
	if err != nil {
		t.Fatalf("bowsprit %q: %v\n%s", args, err, out)
	}
}

var boxes = schema.GroupVersionResource{Group: "move.example.com", Version: "v1", Resource: "boxes"}

func makeBox(t *testing.T, ctx context.Context, p *process, name string) {
	t.Helper()
	box := &unstructured.Unstructured{
		Object: map[string]any{
			"apiVersion": "move.example.com/v1", "kind": "Box", "metadata": map[string]any{"name": name},
		},
	}
	if _, err := dynamic.NewForConfigOrDie(p.config(t)).Resource(boxes).Namespace("default").Create(ctx, box,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func checkBoxes(t *testing.T, ctx context.Context, p *process, want ...string) {
	t.Helper()
	list, err := dynamic.NewForConfigOrDie(p.config(t)).Resource(boxes).Namespace("default").List(ctx,
		metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, b := range list.Items {
		have = append(have, b.GetName())
	}
	if fmt.Sprint(have) != fmt.Sprint(want) {
		t.Errorf("boxes %v, want %v", have, want)
	}
}

// writeOn creates objects until ctx ends.
func writeOn(ctx context.Context, client kubernetes.Interface) error {
	for i := 0; ; i++ {
		_, err := client.CoreV1().ConfigMaps("default").Create(ctx,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("meanwhile-%d", i)}},
			metav1.CreateOptions{})
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
