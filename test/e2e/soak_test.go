package e2e

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

const (
	soakObjects = 5000
	soakClients = 6
	soakSamples = 30 // over the whole time
)

// TestSoak loads one server with a mix of requests for the time in E2E_SOAK (30m), with 5,000 changing objects. Its
// memory must not grow after a warm-up, and after the load it must have as many goroutines as before. Without E2E_SOAK
// the test is skipped, because growth only shows after some minutes.
func TestSoak(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("E2E_SOAK"))
	if err != nil {
		t.Skip("E2E_SOAK is not a duration such as 30m")
	}
	server := startServer(t, "--data-dir="+t.TempDir())
	s := newSoak(t, server)
	ctx, stop := context.WithTimeout(bounded(t, length+10*time.Minute), length)
	defer stop()
	s.fill(t, ctx)
	before := goroutines(t, s.client)
	var load sync.WaitGroup
	for range soakClients {
		load.Go(func() { s.work(ctx) })
	}
	load.Go(func() { s.watch(ctx) })
	var memory []int // MB
	tick := time.NewTicker(length / soakSamples)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-tick.C:
			memory = append(memory, residentMB(t, server))
			t.Logf("%v MB, %d goroutines, %d requests, %d errors", memory[len(memory)-1], goroutines(t, s.client),
				s.requests.Load(), s.failures.Load())
		case <-ctx.Done():
		}
	}
	load.Wait()
	if first := s.firstFailure.Load(); first != nil {
		t.Errorf("%d of %d requests failed, the first with: %s", s.failures.Load(), s.requests.Load(), *first)
	}
	judgeMemory(t, memory)
	// The server finishes requests of disconnected clients a moment later.
	var after int
	for wait := bounded(t, time.Minute); wait.Err() == nil; {
		if after = goroutines(t, s.client); after <= before+5 {
			return
		}
	}
	t.Errorf("%d goroutines after the load, %d before", after, before)
}

// judgeMemory compares the last third of the samples with the middle one; the first is for warming up.
func judgeMemory(t *testing.T, samples []int) {
	t.Helper()
	third := len(samples) / 3
	if third == 0 {
		t.Fatal("no samples")
	}
	middle, last := slices.Sorted(slices.Values(samples[third:2*third])),
		slices.Sorted(slices.Values(samples[2*third:]))
	was, is := middle[len(middle)/2], last[len(last)/2]
	t.Logf("memory: median %d MB in the middle third, %d MB in the last", was, is)
	if is > was+was/10+10 {
		t.Errorf("memory grows: %d MB in the middle third, %d MB in the last", was, is)
	}
}

// soak is the load on a server.
type soak struct {
	objects  dynamic.ResourceInterface
	watcher  dynamic.ResourceInterface
	client   kubernetes.Interface
	requests atomic.Int64
	failures atomic.Int64

	firstFailure atomic.Pointer[string]
}

func newSoak(t *testing.T, server *process) *soak {
	t.Helper()
	ctx := bounded(t, commandLimit)
	config := server.config(t)
	config.Timeout = time.Minute
	client := dynamic.NewForConfigOrDie(config)
	if _, err := client.Resource(definitionsGVR).Create(ctx, definition("soak.example.com", "things", "Thing"),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	gvr := schema.GroupVersionResource{Group: "soak.example.com", Version: "v1", Resource: "things"}
	return &soak{
		objects: client.Resource(gvr).Namespace("default"),
		watcher: dynamic.NewForConfigOrDie(server.config(t)).Resource(gvr).Namespace("default"),
		client:  kubernetes.NewForConfigOrDie(config),
	}
}

func thing(n, version int) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "soak.example.com/v1", "kind": "Thing",
		"metadata": map[string]any{
			"name": fmt.Sprintf("thing-%d", n), "labels": map[string]any{"part": strconv.Itoa(n % 10)},
		},
		"spec": map[string]any{"version": int64(version), "text": strings.Repeat("x", 1000+rand.IntN(3000))},
	}}
}

func (s *soak) fill(t *testing.T, ctx context.Context) {
	var all sync.WaitGroup
	for c := range soakClients {
		all.Go(func() {
			for n := c; n < soakObjects; n += soakClients {
				if _, err := s.objects.Create(ctx, thing(n, 0), metav1.CreateOptions{}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

func (s *soak) work(ctx context.Context) {
	for i := 0; ctx.Err() == nil; i++ {
		n := rand.IntN(soakObjects)
		name := fmt.Sprintf("thing-%d", n)
		var err error
		switch draw := rand.IntN(100); {
		case draw < 30:
			_, err = s.objects.Get(ctx, name, metav1.GetOptions{})
		case draw < 60:
			_, err = s.objects.Patch(ctx, name, types.MergePatchType, []byte(fmt.Sprintf(`{"spec":{"version":%d}}`, i)),
				metav1.PatchOptions{})
		case draw < 70:
			_, err = s.objects.Apply(ctx, name, thing(n, i), metav1.ApplyOptions{FieldManager: "soak", Force: true})
		case draw < 82:
			err = s.objects.Delete(ctx, name, metav1.DeleteOptions{})
		case draw < 94:
			_, err = s.objects.Create(ctx, thing(n, i), metav1.CreateOptions{})
		case draw < 97:
			_, err = s.objects.List(ctx, metav1.ListOptions{LabelSelector: "part=3", Limit: 100})
		case draw < 99:
			err = s.pages(ctx)
		default:
			_, err = s.objects.List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		}
		s.requests.Add(1)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) && ctx.Err() == nil {
			s.failures.Add(1)
			text := err.Error()
			s.firstFailure.CompareAndSwap(nil, &text)
		}
	}
}

// pages lists everything, page by page, at one revision.
func (s *soak) pages(ctx context.Context) error {
	o := metav1.ListOptions{Limit: 500}
	for {
		list, err := s.objects.List(ctx, o)
		if err != nil || list.GetContinue() == "" {
			return err
		}
		o.Continue = list.GetContinue()
	}
}

// watch begins watches and leaves them after some hundred events, one after the other.
func (s *soak) watch(ctx context.Context) {
	for ctx.Err() == nil {
		w, err := s.watcher.Watch(ctx, metav1.ListOptions{})
		if err != nil {
			continue
		}
		for range 300 {
			if _, ok := <-w.ResultChan(); !ok {
				break
			}
		}
		w.Stop()
	}
}

var goroutineTotal = regexp.MustCompile(`goroutine profile: total (\d+)`)

// goroutines returns how many the server has.
func goroutines(t *testing.T, client kubernetes.Interface) int {
	t.Helper()
	raw, err := client.Discovery().RESTClient().Get().AbsPath("/debug/pprof/goroutine").Param("debug",
		"1").DoRaw(bounded(t, commandLimit))
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(string(bytes.TrimSpace(goroutineTotal.FindSubmatch(raw)[1])))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// residentMB returns the resident memory of the server, in MB.
func residentMB(t *testing.T, server *process) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("memory can be read on Linux only")
	}
	return int(resident(t, server.cmd.Process.Pid) >> 20)
}
