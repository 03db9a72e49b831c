package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const (
	fairRounds     = 3
	greedyObjects  = 500 // of 20 KB: a list is 10 MB
	greedySize     = 20_000
	modestEvery    = 40 * time.Millisecond
	modestObjects  = 30
	fairnessTokens = referenceToken + `,kubernetes-admin,,"system:masters"
greedy,greedy,,
modest,modest,,
controller-manager,system:kube-controller-manager,,
`
)

// TestFairness lets one user with 500 connections request large lists and send large writes. Meanwhile it measures
// another user's requests, the health checks, and whether a leader keeps its lease, with and without the greedy user,
// in turns. E2E_FAIRNESS is the length of each turn (20s); without it the test is skipped, because it is a benchmark.
// With E2E_KUBE_APISERVER it measures a real kube-apiserver too.
func TestFairness(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("E2E_FAIRNESS"))
	if err != nil {
		t.Skip("E2E_FAIRNESS is not a duration such as 20s")
	}
	greedy := filepath.Join(t.TempDir(), "greedy")
	if out, err := exec.Command("go", "build", "-o", greedy, "./greedy").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	tokens := filepath.Join(t.TempDir(), "tokens.csv")
	if err := os.WriteFile(tokens, []byte(fairnessTokens), 0o600); err != nil {
		t.Fatal(err)
	}
	flag := "--token-auth-file=" + tokens
	for _, one := range []struct {
		name  string
		start func(t *testing.T) *process
	}{
		{"bowsprit", func(t *testing.T) *process { return startServer(t, "--data-dir="+t.TempDir(), flag) }},
		{"bowsprit without priority and fairness", func(t *testing.T) *process {
			return startServer(t, "--data-dir="+t.TempDir(), flag, "--enable-priority-and-fairness=false")
		}},
		{"kube-apiserver", func(t *testing.T) *process {
			return startReference(t, startCluster(t, 1, nil), flag, "--disable-admission-plugins=ServiceAccount")
		}},
	} {
		t.Run(one.name, func(t *testing.T) {
			if one.name == "kube-apiserver" && reference == "" {
				t.Skip("E2E_KUBE_APISERVER is not set")
			}
			f := newFairness(t, one.start(t))
			f.greedyProgram = greedy
			f.fill()
			f.lead()
			f.phase(length/4, nil) // warm
			var quiet, loaded []sample
			for range fairRounds {
				f.phase(length, &quiet)
				stop := f.startGreedy()
				f.phase(length/4, nil) // until its 500 connections are open
				f.phase(length, &loaded)
				stop()
			}
			f.report(quiet, loaded)
		})
	}
}

// fairness is a server, and the clients that measure it.
type fairness struct {
	*testing.T
	server        *process
	greedyProgram string
	admin         *rest.Config

	mu      sync.Mutex
	samples *[]sample // where they go; nil for nowhere
	lost    int       // how often the leader lost its lease
}

// sample is the duration of one request.
type sample struct {
	measure string
	took    time.Duration
	err     error
}

func newFairness(t *testing.T, server *process) *fairness {
	return &fairness{T: t, server: server, admin: server.config(t)}
}

// as returns a client of a user.
func (f *fairness) as(token string) kubernetes.Interface {
	f.Helper()
	config := rest.AnonymousClientConfig(f.admin)
	config.BearerToken, config.QPS = token, -1
	config.TLSClientConfig = rest.TLSClientConfig{Insecure: true}
	config.ContentType = "application/json"
	// Use a connection of its own: clients with the same dialer share one, and a health check without a name ends it.
	config.Dial = new(net.Dialer).DialContext
	return kubernetes.NewForConfigOrDie(config)
}

// fill makes the objects, and lets both users do everything with config maps.
func (f *fairness) fill() {
	f.Helper()
	ctx, admin := bounded(f.T, 5*time.Minute), f.as(referenceToken)
	_, err := admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "users"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "greedy"},
			{APIGroup: rbacv1.GroupName, Kind: "User", Name: "modest"}},
	}, metav1.CreateOptions{})
	for _, name := range []string{"greedy", "modest"} {
		if err == nil {
			space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
			_, err = admin.CoreV1().Namespaces().Create(ctx, space, metav1.CreateOptions{})
		}
	}
	if err != nil {
		f.Fatal(err)
	}
	make := func(namespace string, n, size int) {
		var all sync.WaitGroup
		for worker := range 8 {
			all.Go(func() {
				for i := worker; i < n; i += 8 {
					_, err := admin.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{
						ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("c", i)},
						Data:       map[string]string{"a": strings.Repeat("x", size)},
					}, metav1.CreateOptions{})
					if err != nil {
						f.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
	}
	make("greedy", greedyObjects, greedySize)
	make("modest", modestObjects, 500)
}

// timed records the duration of a request.
func (f *fairness) timed(measure string, request func() error) {
	began := time.Now()
	err := request()
	took := time.Since(began)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.samples != nil {
		*f.samples = append(*f.samples, sample{measure, took, err})
	}
}

// phase sends requests of the modest user and health checks for some time, and records their durations.
func (f *fairness) phase(length time.Duration, into *[]sample) {
	ctx, cancel := context.WithTimeout(f.Context(), length)
	defer cancel()
	f.mu.Lock()
	f.samples = into
	f.mu.Unlock()
	own, health := f.as("modest").CoreV1().ConfigMaps("modest"), f.as("").CoreV1().RESTClient()
	var all sync.WaitGroup
	every := func(d time.Duration, measure string, request func(ctx context.Context) error) {
		all.Go(func() {
			tick := time.NewTicker(d)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					f.timed(measure, func() error { return request(f.Context()) })
				case <-ctx.Done():
					return
				}
			}
		})
	}
	every(modestEvery, "get", func(ctx context.Context) error {
		_, err := own.Get(ctx, "c1", metav1.GetOptions{})
		return err
	})
	every(modestEvery, fmt.Sprintf("list of %d", modestObjects), func(ctx context.Context) error {
		_, err := own.List(ctx, metav1.ListOptions{})
		return err
	})
	n := 0
	every(modestEvery, "update", func(ctx context.Context) error {
		n++
		_, err := own.Update(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c0"},
			Data: map[string]string{"n": fmt.Sprint(n)}}, metav1.UpdateOptions{})
		return err
	})
	for _, path := range []string{"/healthz", "/readyz"} {
		every(10*modestEvery, path, func(ctx context.Context) error {
			return health.Get().AbsPath(path).Do(ctx).Error()
		})
	}
	all.Wait()
	f.mu.Lock()
	f.samples = nil
	f.mu.Unlock()
}

// lead has kube-controller-manager's user lead by a Lease, with its times, until the test ends.
func (f *fairness) lead() {
	f.Helper()
	client := f.as("controller-manager")
	ctx, cancel := context.WithCancel(context.Background())
	leads := make(chan struct{})
	lock := &noting{f: f, Interface: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-controller-manager"},
		Client:     client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: "fairness"},
	}}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: time.Second,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(leads) },
			OnStoppedLeading: func() {
				if ctx.Err() == nil {
					f.mu.Lock()
					f.lost++
					f.mu.Unlock()
				}
			},
		},
	})
	if err != nil {
		f.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { elector.Run(ctx) })
	f.Cleanup(func() { cancel(); running.Wait() })
	<-leads
}

// noting is a lock that records the durations of its renewals.
type noting struct {
	resourcelock.Interface
	f *fairness
}

// Update implements resourcelock.Interface.
func (n *noting) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) (err error) {
	n.f.timed("renewal of the leader's Lease", func() error {
		err = n.Interface.Update(ctx, r)
		return err
	})
	return err
}

// startGreedy starts the greedy user's program at a low priority, relative to the measuring process: 19, or
// E2E_GREEDY_NICE on a machine with other work. stop ends it.
func (f *fairness) startGreedy() (stop func()) {
	f.Helper()
	nice := os.Getenv("E2E_GREEDY_NICE")
	if nice == "" {
		nice = "19"
	}
	cmd := exec.Command("nice", "-n", nice, f.greedyProgram, "-server", f.admin.Host, "-token", "greedy", "-path",
		"/api/v1/namespaces/greedy/configmaps", "-size", fmt.Sprint(greedySize))
	if os.Getenv("E2E_GREEDY_RUDE") != "" {
		cmd.Args = append(cmd.Args, "-rude")
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		f.Fatal(err)
	}
	return func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			f.Errorf("greedy: %v", err)
		}
		f.Logf("the greedy user got %s", strings.TrimSpace(out.String()))
	}
}

// report prints the measurements, and fails if requests failed or the leader was lost.
func (f *fairness) report(quiet, loaded []sample) {
	f.Helper()
	kinds := map[string]bool{}
	for _, s := range slices.Concat(quiet, loaded) {
		kinds[s.measure] = true
		if s.err != nil {
			f.Errorf("%s failed after %s: %v", s.measure, s.took, s.err)
		}
	}
	names := make([]string, 0, len(kinds))
	for name := range kinds {
		names = append(names, name)
	}
	slices.Sort(names)
	lines := []string{"| request | number | p50, ms | p99, ms | beside the greedy user: number | p50, ms | p99, ms | longest, ms | p99: times |",
		"|---|---:|---:|---:|---:|---:|---:|---:|---:|"}
	for _, name := range names {
		a, b := took(quiet, name), took(loaded, name)
		if len(a) == 0 || len(b) == 0 {
			f.Errorf("%s: no request was answered", name)
			continue
		}
		lines = append(lines, fmt.Sprintf("| %s | %d | %.1f | %.1f | %d | %.1f | %.1f | %.0f | %.1f |", name, len(a),
			part(a, .5), part(a, .99), len(b), part(b, .5), part(b, .99), part(b, 1), part(b, .99)/part(a, .99)))
	}
	f.Logf("%s\n%s", f.Name(), strings.Join(lines, "\n"))
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost > 0 {
		f.Errorf("the leader was lost %d times", f.lost)
	}
}

// took returns the durations of a kind of requests, in milliseconds, sorted.
func took(all []sample, measure string) (out []float64) {
	for _, s := range all {
		if s.measure == measure && s.err == nil {
			out = append(out, float64(s.took.Microseconds())/1000)
		}
	}
	slices.Sort(out)
	return out
}

// part returns the value below which so much of the sorted values is.
func part(sorted []float64, of float64) float64 {
	return sorted[min(int(of*float64(len(sorted))), len(sorted)-1)]
}
