package e2e

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// TestDiskFull checks a running server when its files cannot grow any more. It ends with a message about the disk and
// without a stack trace, and all acknowledged objects exist after the next start.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]uint64{
		"before the log's next segment": 15 << 20,
		"while the database grows":      2 << 20,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			server := startServer(t, "--data-dir="+dir)
			client := kubernetes.NewForConfigOrDie(server.config(t)).CoreV1().ConfigMaps("default")
			if err := unix.Prlimit(server.cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: limit, Max: limit},
				nil); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(bounded(t, commandLimit), commandLimit)
			defer cancel()
			acknowledged := map[string]string{}
			value := string(bytes.Repeat([]byte("x"), 100<<10))
			for i := 0; ; i++ {
				made, err := client.Create(ctx,
					&corev1.ConfigMap{
						ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("a-%04d", i)},
						Data:       map[string]string{"x": value},
					}, metav1.CreateOptions{})
				if err != nil {
					t.Logf("after %d objects: %v", i, err)
					break
				}
				acknowledged[made.Name] = string(made.UID)
			}
			hung := time.AfterFunc(startLimit, func() { server.cmd.Process.Kill() })
			err := server.cmd.Wait()
			hung.Stop()
			t.Logf("the server ended with %v: %s", err, server.stderr)
			if err == nil || server.cmd.ProcessState.ExitCode() != 1 {
				t.Errorf("the server ended with %v, want exit code 1", err)
			}
			if log := server.stderr.String(); bytes.Contains(server.stderr.Bytes(), []byte("goroutine ")) ||
				bytes.Count(server.stderr.Bytes(), []byte("nothing that was acknowledged is lost")) != 1 {
				t.Errorf("it does not say clearly what is wrong: %s", log)
			}
			again := startServer(t, "--data-dir="+dir)
			checkAcknowledged(t, kubernetes.NewForConfigOrDie(again.config(t)).CoreV1().ConfigMaps("default"),
				acknowledged)
		})
	}
}
