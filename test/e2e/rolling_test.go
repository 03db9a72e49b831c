package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/internal/testing/freeport"
)

// TestRollingUpgrade replaces three servers on one etcd one after the other, as in docs/backup.md, by servers of the
// next release of Kubernetes, while clients write and read through a load balancer that forwards TLS. client-go's own
// retries hide all failures: no call returns an error. All acknowledged writes stay, and an informer ends with the
// final state.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	const older = "--emulated-version=1.36"
	etcd := startCluster(t, 1, nil)
	var sites []*site
	var addresses []string
	first := t.TempDir()
	for i := range 3 {
		dir := first
		if i > 0 { // one authority, one key for tokens
			dir = t.TempDir()
			if err := os.CopyFS(filepath.Join(dir, "pki"), os.DirFS(filepath.Join(first, "pki"))); err != nil {
				t.Fatal(err)
			}
		}
		port := strconv.Itoa(freeport.Port(t))
		s := &site{t: t, flags: []string{"--data-dir=" + dir, "--secure-port=" + port,
			"--etcd-servers=" + etcd.endpoints(), older}}
		s.start()
		sites, addresses = append(sites, s), append(addresses, net.JoinHostPort("127.0.0.1", port))
	}
	config := sites[0].server.config(t)
	config.Host = "https://" + startBalancer(t, addresses)
	load := startTraffic(t, config, 6)
	if got := release(t, config); got != "36" {
		t.Fatalf("the servers are of release 1.%s", got)
	}
	for _, s := range sites {
		load.await(t, 300) // of each kind of state there are requests
		s.server.stop(t)
		load.await(t, 300)
		s.flags = s.flags[:len(s.flags)-1]
		s.start()
	}
	load.await(t, 300)
	load.end(t)
	if got := release(t, config); got != "37" {
		t.Errorf("the servers are of release 1.%s afterwards", got)
	}
}

func release(t *testing.T, config *rest.Config) string {
	t.Helper()
	v, err := kubernetes.NewForConfigOrDie(config).Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	return v.EmulationMinor
}

// balancer passes connections on to one of several servers.
type balancer struct {
	addresses []string
	next      atomic.Int64
	ready     []atomic.Bool // by address
}

// startBalancer listens for connections, and forwards each to the next ready and reachable server. It polls /readyz all
// the time. Connections stay until either side ends them.
func startBalancer(t *testing.T, addresses []string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &balancer{addresses: addresses, ready: make([]atomic.Bool, len(addresses))}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		_ = listener.Close()
		all.Wait()
	})
	for i := range addresses {
		b.ready[i].Store(true)
		all.Go(func() { b.check(ctx, i) })
	}
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { b.pass(ctx, conn) })
		}
	})
	return listener.Addr().String()
}

// check polls a server's readiness.
func (b *balancer) check(ctx context.Context, i int) {
	client := &http.Client{Timeout: startLimit, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // as probes do
	}}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+b.addresses[i]+"/readyz", nil)
		if err != nil {
			return
		}
		resp, err := client.Do(r)
		if err == nil {
			_ = resp.Body.Close()
		}
		b.ready[i].Store(err == nil && resp.StatusCode == http.StatusOK)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (b *balancer) pass(ctx context.Context, client net.Conn) {
	defer client.Close()
	server := b.dial(ctx)
	if server == nil {
		return
	}
	defer server.Close()
	stop := context.AfterFunc(ctx, func() { _, _ = client.Close(), server.Close() })
	defer stop()
	var both sync.WaitGroup
	for from, to := range map[net.Conn]net.Conn{client: server, server: client} {
		both.Go(func() {
			_, _ = io.Copy(to, from)
			_ = to.(*net.TCPConn).CloseWrite()
		})
	}
	both.Wait()
}

// dial tries the ready servers, beginning with the next one.
func (b *balancer) dial(ctx context.Context) net.Conn {
	start := b.next.Add(1)
	for range 2 { // a server that has just become ready may be the only one
		for i := range b.addresses {
			n := (int(start) + i) % len(b.addresses)
			if !b.ready[n].Load() {
				continue
			}
			if conn, err := new(net.Dialer).DialContext(ctx, "tcp", b.addresses[n]); err == nil {
				return conn
			}
		}
	}
	return nil
}

// traffic is clients that write and read.
type traffic struct {
	client kubernetes.Interface
	ended  atomic.Bool
	all    sync.WaitGroup
	done   atomic.Int64   // calls
	counts []atomic.Int64 // by client: acknowledged increments
	failed chan error     // errors that ended a client; capacity: one of each
	seen   func() []any   // the informer's objects
}

func startTraffic(t *testing.T, config *rest.Config, clients int) *traffic {
	t.Helper()
	l := &traffic{client: kubernetes.NewForConfigOrDie(config), counts: make([]atomic.Int64, clients),
		failed: make(chan error, clients)}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		l.ended.Store(true)
		cancel()
		l.all.Wait()
	})
	factory := informers.NewSharedInformerFactory(l.client, 0)
	informer := factory.Core().V1().ConfigMaps().Informer()
	l.seen = informer.GetStore().List
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	for i := range clients {
		own := rest.CopyConfig(config)
		own.Dial = new(net.Dialer).DialContext // client-go shares the connections of configurations without one
		client := kubernetes.NewForConfigOrDie(own)
		l.all.Go(func() {
			if err := l.work(ctx, client, i); err != nil {
				l.failed <- fmt.Errorf("client %d: %w", i, err)
			}
		})
	}
	return l
}

// work is the loop of a client until the load ends: it counts in an object of its own, and reads, lists, creates,
// changes and deletes another.
func (l *traffic) work(ctx context.Context, client kubernetes.Interface, i int) error {
	api := client.CoreV1().ConfigMaps("default")
	counter, other := fmt.Sprintf("counter-%d", i), fmt.Sprintf("other-%d", i)
	made, err := api.Create(ctx, configMapOf(counter), metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	for n := int64(1); !l.ended.Load(); n++ {
		made.Data["n"] = strconv.FormatInt(n, 10)
		if _, err = api.Update(ctx, made, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("update %d: %w", n, err)
		}
		l.counts[i].Store(n)
		if made, err = api.Get(ctx, counter, metav1.GetOptions{}); err != nil {
			return fmt.Errorf("get: %w", err)
		}
		if made.Data["n"] != strconv.FormatInt(n, 10) {
			return fmt.Errorf("%d was acknowledged, and %s is read", n, made.Data["n"])
		}
		if _, err = api.List(ctx, metav1.ListOptions{}); err != nil {
			return fmt.Errorf("list: %w", err)
		}
		if _, err = api.Create(ctx, configMapOf(other), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create: %w", err)
		}
		if _, err = api.Patch(ctx, other, types.MergePatchType, []byte(`{"data":{"n":"1"}}`),
			metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("patch: %w", err)
		}
		if err = api.Delete(ctx, other, metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("delete: %w", err)
		}
		l.done.Add(6)
	}
	return nil
}

func configMapOf(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"n": "0"}}
}

// await waits for more calls.
func (l *traffic) await(t *testing.T, more int64) {
	t.Helper()
	ctx := bounded(t, 2*startLimit)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for until := l.done.Load() + more; l.done.Load() < until; {
		select {
		case err := <-l.failed:
			t.Fatalf("after %d calls: %v", l.done.Load(), err)
		case <-ctx.Done():
			t.Fatalf("%d calls, and no more", l.done.Load())
		case <-tick.C:
		}
	}
}

// end lets the clients end and compares the acknowledged writes with the objects of the server and of the informer.
func (l *traffic) end(t *testing.T) {
	t.Helper()
	l.ended.Store(true)
	l.all.Wait()
	close(l.failed)
	for err := range l.failed {
		t.Errorf("after %d calls: %v", l.done.Load(), err)
	}
	want := map[string]string{}
	for i := range l.counts {
		want[fmt.Sprintf("counter-%d", i)] = strconv.FormatInt(l.counts[i].Load(), 10)
	}
	ctx := bounded(t, startLimit)
	list, err := l.client.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]string{}
	for i := range list.Items {
		if list.Items[i].Name != "kube-root-ca.crt" {
			there[list.Items[i].Name] = list.Items[i].Data["n"]
		}
	}
	if !maps.Equal(there, want) {
		t.Errorf("there is %v, and %v was acknowledged", there, want)
	}
	t.Logf("%d calls of %d clients", l.done.Load(), len(l.counts))
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		seen := map[string]string{}
		for _, o := range l.seen() {
			if cm := o.(*corev1.ConfigMap); cm.Namespace == "default" && cm.Name != "kube-root-ca.crt" {
				seen[cm.Name] = cm.Data["n"]
			}
		}
		if maps.Equal(seen, there) {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the informer has %v, not %v", seen, there)
		case <-tick.C:
		}
	}
}
