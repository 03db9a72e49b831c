package e2e

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// TestKill repeatedly kills the server while clients create objects. Acknowledged objects must exist afterwards.
func TestKill(t *testing.T) {
	const writers, atLeast = 8, 100
	rounds := 3
	if n, err := strconv.Atoi(os.Getenv("E2E_KILLS")); err == nil {
		rounds = n
	}
	dir := t.TempDir()
	var mu sync.Mutex
	acknowledged := map[string]string{} // name to uid; mu
	for round := range rounds {
		server := startServer(t, "--data-dir="+dir)
		t.Logf("round %d: ready after %v with %d objects", round, server.ready.Round(time.Millisecond),
			len(acknowledged))
		client := kubernetes.NewForConfigOrDie(server.config(t)).CoreV1().ConfigMaps("default")
		checkAcknowledged(t, client, acknowledged)

		ctx, stop := context.WithCancel(bounded(t, startLimit))
		var created atomic.Int64
		enough := make(chan struct{}) // closed by the writer that makes it atLeast
		var running sync.WaitGroup
		for w := range writers {
			running.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					object := &corev1.ConfigMap{
						ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("round-%d-writer-%d-%d", round, w, i)},
					}
					made, err := client.Create(ctx, object, metav1.CreateOptions{})
					if err != nil {
						return // killed
					}
					mu.Lock()
					acknowledged[made.Name] = string(made.UID)
					mu.Unlock()
					if created.Add(1) == atLeast {
						close(enough)
					}
				}
			})
		}
		select {
		case <-enough:
		case <-ctx.Done():
			t.Errorf("round %d: %d of %d objects were created", round, created.Load(), atLeast)
		}
		server.kill()
		stop()
		running.Wait()
		if t.Failed() {
			return
		}
	}
	last := startServer(t, "--data-dir="+dir)
	t.Logf("at last: ready after %v with %d objects", last.ready.Round(time.Millisecond), len(acknowledged))
	checkAcknowledged(t, kubernetes.NewForConfigOrDie(last.config(t)).CoreV1().ConfigMaps("default"), acknowledged)
}

// lister lists configmaps.
type lister interface {
	List(context.Context, metav1.ListOptions) (*corev1.ConfigMapList, error)
}

func checkAcknowledged(t *testing.T, client lister, want map[string]string) {
	t.Helper()
	list, err := client.List(bounded(t, commandLimit), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]string{}
	for _, item := range list.Items {
		have[item.Name] = string(item.UID)
	}
	for name, uid := range want {
		if have[name] != uid {
			t.Errorf("%s was acknowledged with uid %s, and now has uid %q", name, uid, have[name])
		}
	}
}
