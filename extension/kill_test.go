package extension_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/bowsprit/bowsprit/extension"
	"github.com/bowsprit/bowsprit/internal/testing/freeport"
	"github.com/bowsprit/bowsprit/test/vessels"
	"github.com/bowsprit/bowsprit/testserver"
)

// childEtcd is the variable by which a test turns this program into an extension API server: the etcd of its kinds.
const childEtcd = "EXTENSION_TEST_ETCD"

func TestMain(m *testing.M) {
	if url := os.Getenv(childEtcd); url != "" {
		kinds, err := kindsInEtcd(url)
		if err != nil {
			panic(err)
		}
		extension.Main(extension.Server{Kinds: kinds})
		return
	}
	os.Exit(m.Run())
}

// child is an extension API server in a process of its own.
type child struct {
	*exec.Cmd
	log *os.File
}

// startChild starts a server behind front on a port, with the data in dir.
func startChild(t *testing.T, front *testserver.Server, etcd, dir string, port int) *child {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	c := &child{exec.Command(os.Args[0], "--kubeconfig="+front.Kubeconfig(), "--register-service=default/vessels",
		"--register-address=localhost", "--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(port),
		"--data-dir="+filepath.Join(dir, "data")), log}
	c.Env, c.Stderr, c.Stdout = append(os.Environ(), childEtcd+"="+etcd), log, log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	return c
}

// kill ends the process as kill -9 does. A second call has no effect.
func (c *child) kill() {
	_ = c.Process.Kill()
	_ = c.Wait()
	_ = c.log.Close()
}

// ledger records the writes of clients and their results.
type ledger struct {
	sync.Mutex
	tried, written map[string]bool
	failed         int
	first          error // of the writes that failed
	wrong          error // the first unexpected error
}

// write creates vessels one after another, of names that begin in a way, until ctx ends.
func (l *ledger) write(ctx context.Context, ships dynamic.ResourceInterface, prefix string) {
	for n := 0; ctx.Err() == nil; n++ {
		name := fmt.Sprintf("%s-%d", prefix, n)
		l.Lock()
		l.tried[name] = true
		l.Unlock()
		_, err := ships.Create(ctx, object(name, "Cook"), metav1.CreateOptions{})
		l.Lock()
		switch {
		case err == nil:
			l.written[name] = true
		case ctx.Err() == nil:
			l.failed++
			if wrong := notUnavailable(err); wrong != nil && l.wrong == nil {
				l.wrong = wrong
			}
			if l.first == nil {
				l.first = err
			}
		}
		l.Unlock()
	}
}

// counts returns how many writes have been acknowledged, and how many have failed.
func (l *ledger) counts() (written, failed int) {
	l.Lock()
	defer l.Unlock()
	return len(l.written), l.failed
}

// more waits for n more acknowledged writes.
func (l *ledger) more(t *testing.T, n int) {
	t.Helper()
	begin, _ := l.counts()
	eventually(t, "writes go on", func(context.Context) error {
		if now, failed := l.counts(); now < begin+n {
			return fmt.Errorf("%d writes of %d, %d failed", now-begin, n, failed)
		}
		return nil
	})
}

// notUnavailable returns an error unless err reports that the API is unavailable.
func notUnavailable(err error) error {
	var status apierrors.APIStatus
	const name = `APIService "v1.` + vessels.Group + `" is not available`
	if !errors.As(err, &status) || status.Status().Code != http.StatusServiceUnavailable ||
		!strings.HasPrefix(status.Status().Message, name) {
		return fmt.Errorf("%T: %w", err, err)
	}
	return nil
}

// TestKill repeatedly kills a server with an etcd for its objects, under load. Clients of the server in front get an
// error that names the unavailable API. The API is available again as soon as the process is, with all acknowledged
// writes.
func TestKill(t *testing.T) {
	t.Parallel()
	front, dir, port := testserver.Start(t), t.TempDir(), freeport.Port(t)
	there := etcd(t).ClientURL()
	server := startChild(t, front, there, dir, port)
	vessels.WaitAvailable(t, front.RESTConfig())
	config := rest.CopyConfig(front.RESTConfig())
	config.QPS, config.Burst = 200, 50 // also while the server is down
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ships := client.Resource(vesselsGVR).Namespace("default")
	informer := dynamicinformer.NewFilteredDynamicInformer(client, vesselsGVR, metav1.NamespaceAll, 0,
		cache.Indexers{}, nil).Informer()
	ctx, end := context.WithCancel(t.Context())
	var running, writers sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	load, endLoad := context.WithCancel(ctx)
	defer func() { end(); running.Wait() }()
	l := &ledger{tried: map[string]bool{}, written: map[string]bool{}}
	for i := range 4 {
		writers.Go(func() { l.write(load, ships, fmt.Sprintf("vessel-%d", i)) })
	}
	defer writers.Wait()
	defer endLoad()
	for range 3 {
		l.more(t, 50)
		_, failed := l.counts()
		server.kill()
		eventually(t, "a write fails", func(context.Context) error {
			if _, now := l.counts(); now == failed {
				return errors.New("none has failed")
			}
			return nil
		})
		begin := time.Now()
		server = startChild(t, front, there, dir, port)
		l.more(t, 1)
		t.Logf("%s after the start of the process writes go on", time.Since(begin).Round(time.Millisecond))
	}
	l.more(t, 50)
	endLoad()
	writers.Wait()
	if l.wrong != nil {
		t.Errorf("while the server was gone: %v", l.wrong)
	}
	written, failed := l.counts()
	t.Logf("%d writes acknowledged, %d failed", written, failed)
	// The last requests may still be written, though their clients have left.
	eventually(t, "the informer shows what is there", func(ctx context.Context) error {
		list, err := ships.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		have, seen := map[string]bool{}, map[string]bool{}
		for i := range list.Items {
			name := list.Items[i].GetName()
			if have[name] = true; !l.tried[name] {
				t.Errorf("%s is there, which no client has written", name)
			}
		}
		for name := range l.written {
			if !have[name] {
				t.Errorf("%s is lost", name)
			}
		}
		for _, key := range informer.GetStore().ListKeys() {
			seen[strings.TrimPrefix(key, "default/")] = true
		}
		if !maps.Equal(seen, have) {
			return fmt.Errorf("%d objects of %d", len(seen), len(have))
		}
		return nil
	})
	if t.Failed() {
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		t.Logf("the server said:\n%s", log)
	}
}
