package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/bowsprit/bowsprit/internal/testing/freeport"
)

// formatKey is the key of the data's format in etcd, and laterFormat the value of a later version.
const (
	formatKey   = "/bowsprit/format/registry/"
	laterFormat = `{"format":99,"version":"v99.0.0"}`
	laterError  = "was written by bowsprit v99.0.0 in format 99, and this version reads formats up to 1: " +
		"start that version or a later one"
)

func etcdClient(t *testing.T, url string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{url}, DialTimeout: startLimit})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// TestNewerFormatInEtcd writes the mark of a later version while two servers run that do not support its format. Both
// end by themselves with the reason, and further servers neither start nor write.
func TestNewerFormatInEtcd(t *testing.T) {
	t.Parallel()
	etcd := startCluster(t, 1, nil)
	client := etcdClient(t, etcd.members[0].client)
	var running []*process
	for range 2 {
		running = append(running, startServer(t, "--data-dir="+t.TempDir(), "--etcd-servers="+etcd.endpoints()))
	}
	ctx := bounded(t, 5*commandLimit)
	if r, err := client.Get(ctx, formatKey); err != nil || len(r.Kvs) != 1 || !strings.Contains(string(r.Kvs[0].Value),
		`"format":1`) {
		t.Fatalf("the mark: %v, %v", r, err)
	}
	examine := func(state, want string) {
		t.Helper()
		out, _ := exec.CommandContext(ctx, filepath.Join(binaries, "bowsprit"), "doctor", "--secure-port=0",
			"--data-dir="+t.TempDir(), "--etcd-servers="+etcd.endpoints()).CombinedOutput()
		if !regexp.MustCompile(`(?m)^` + state + ` +format +.*` + want).Match(out) {
			t.Errorf("doctor does not report the format as %s:\n%s", want, out)
		}
	}
	examine("ok", "1; this version reads formats up to 1")
	later, err := client.Put(ctx, formatKey, laterFormat)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range running {
		hung := time.AfterFunc(5*startLimit, func() { p.cmd.Process.Kill() })
		var exit *exec.ExitError
		if err := p.cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 ||
			!strings.Contains(p.stderr.String(), laterError) {
			t.Errorf("a server of the older format ended with %v: %s", err, p.stderr)
		}
		hung.Stop()
	}
	out, err := exec.CommandContext(ctx, filepath.Join(binaries, "bowsprit"), "serve", "--secure-port=0",
		"--data-dir="+t.TempDir(), "--etcd-servers="+etcd.endpoints()).CombinedOutput()
	if err == nil || !strings.Contains(string(out), laterError) {
		t.Errorf("a start: %v: %s", err, out)
	}
	examine("problem", laterError)
	is, err := client.Get(ctx, "/registry/", clientv3.WithPrefix(), clientv3.WithLimit(1),
		clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortDescend))
	if err != nil || len(is.Kvs) == 0 || is.Kvs[0].ModRevision > later.Header.Revision {
		t.Errorf("written after the mark, at revision %d: %v, %v", later.Header.Revision, is, err)
	}
}

// TestNewerSnapshot saves and restores the data of a server of a later version: a snapshot is saved, with a warning,
// and neither it nor a backup is restored.
func TestNewerSnapshot(t *testing.T) {
	t.Parallel()
	dir, url := t.TempDir(), "http://127.0.0.1:"+strconv.Itoa(freeport.Port(t))
	server := startServer(t, "--data-dir="+filepath.Join(dir, "data"), "--etcd-listen-client-url="+url)
	ctx := bounded(t, 3*commandLimit)
	good, file := filepath.Join(dir, "good.tar"), filepath.Join(dir, "newer.db")
	from, restored := "--kubeconfig="+server.kubeconfig, filepath.Join(dir, "restored")
	bowsprit(t, "backup", good, from)
	bowsprit(t, "restore", good, "--check")
	if _, err := etcdClient(t, url).Put(ctx, formatKey, laterFormat); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		want string
		fine bool
	}{
		{[]string{"snapshot", "save", file, from}, "This program cannot restore it", true},
		{[]string{"backup", filepath.Join(dir, "newer.tar"), from}, "nothing was saved", false},
		{[]string{"snapshot", "restore", file, "--data-dir=" + restored}, "nothing was restored", false},
	} {
		out, err := exec.CommandContext(ctx, filepath.Join(binaries, "bowsprit"), test.args...).CombinedOutput()
		output := string(out)
		if (err == nil) != test.fine || !strings.Contains(output, test.want) || !strings.Contains(output, laterError) {
			t.Errorf("%q: %v: %s", test.args, err, output)
		}
	}
	for name, there := range map[string]bool{"newer.db": true, "newer.tar": false, "restored": false} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != there {
			t.Errorf("%s: %v", name, err)
		}
	}
}
