package e2e

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestLinearizable makes many clients write and read few objects while processes are killed. It checks that one order
// of all requests explains the responses, each request taking effect at one moment between its start and its response
// (Herlihy and Wing; package porcupine searches for the order). It also checks that every watch delivered exactly the
// changes between the lists around it.
//
// E2E_OPERATIONS is the number of requests; the default suits every day, 200000 a long search.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	operations := 3000
	if n, err := strconv.Atoi(os.Getenv("E2E_OPERATIONS")); err == nil {
		operations = n
	}
	t.Run("one server", func(t *testing.T) {
		t.Parallel()
		s := startSite(t)
		h := newHistory(t, operations, s)
		h.run(t, func(int) { s.server.kill(); s.start() })
	})
	t.Run("three servers on three etcd members", func(t *testing.T) {
		t.Parallel()
		etcd := startCluster(t, 3, nil)
		var sites []*site
		for range 3 {
			sites = append(sites, startSite(t, "--etcd-servers="+etcd.endpoints()))
		}
		h := newHistory(t, operations, sites...)
		h.run(t, func(round int) {
			if round%2 == 0 {
				s := sites[rand.IntN(3)]
				s.server.kill()
				s.start()
				return
			}
			m := etcd.members[rand.IntN(3)]
			m.kill()
			if err := m.start(); err != nil {
				t.Error(err)
			}
		})
	})
}

// operation is a client's request and outcome its result. Values are unique, so a value identifies its write.
type (
	operation struct {
		verb  string // create, get, update, delete
		key   string
		value string // written by create and update
		old   string // the value that update replaces, read with the resourceVersion that it sends
	}
	outcome struct {
		value string // of get, "" without an object
		ok    bool   // of a write
		lost  bool   // whether the write happened is unknown
	}
)

// register is the model: one object with its value as the state, or "" while it does not exist.
var register = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[string][]porcupine.Operation{}
		for _, op := range history {
			key := op.Input.(operation).key
			byKey[key] = append(byKey[key], op)
		}
		var parts [][]porcupine.Operation
		for _, part := range byKey {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		is, q, a := state.(string), input.(operation), output.(outcome)
		if q.verb == "get" {
			return a.value == is, is
		}
		next, possible := q.value, false
		switch q.verb {
		case "create":
			possible = is == ""
		case "update":
			possible = is != "" && is == q.old
		case "delete":
			next, possible = "", is != ""
		}
		if a.lost { // it happened if it could; at the very end means never
			if possible {
				return true, next
			}
			return true, is
		}
		if !a.ok {
			return !possible, is
		}
		return possible, next
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
}

const (
	linearClients  = 12
	linearKeys     = 6   // at a time: few, so that clients meet
	linearPerKey   = 250 // requests before a new key: the search is quick in short histories
	linearPatience = 5 * time.Second
	killEvery      = 1000 // answers between two kills
)

// history is the requests of all clients.
type history struct {
	operations int
	clients    []rest.Interface // one for each server
	began      time.Time
	count      atomic.Int64
	values     atomic.Int64 // continues when count goes back, so that values stay unique

	mu struct {
		sync.Mutex
		all []porcupine.Operation
	}
}

func newHistory(t *testing.T, operations int, sites ...*site) *history {
	h := &history{operations: operations, began: time.Now()}
	for _, s := range sites {
		h.clients = append(h.clients, kubernetes.NewForConfigOrDie(s.server.config(t)).CoreV1().RESTClient())
	}
	return h
}

// run makes the requests, with a fault every now and then, and judges them.
func (h *history) run(t *testing.T, fault func(round int)) {
	ctx := bounded(t, time.Duration(h.operations)*10*time.Millisecond+5*time.Minute)
	seen := h.startWatch(t, ctx)
	var clients sync.WaitGroup
	for c := range linearClients {
		clients.Go(func() { h.client(ctx, c) })
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		clients.Wait()
	}()
	faults := 0
	for round, next := 0, int64(killEvery); ; {
		if h.count.Load() >= next {
			fault(round)
			faults++
			round, next = round+1, h.count.Load()+killEvery
		}
		select {
		case <-done:
		case <-time.After(time.Millisecond): // to read the count again
			continue
		}
		break
	}
	if ctx.Err() != nil {
		t.Fatalf("only %d of %d requests", h.count.Load(), h.operations)
	}
	lost := 0
	for _, op := range h.mu.all {
		if op.Output.(outcome).lost {
			lost++
		}
	}
	t.Logf("%d requests, %d with an unknown outcome, %d kills, %v", len(h.mu.all), lost, faults,
		time.Since(h.began).Round(time.Millisecond))
	switch result, info := porcupine.CheckOperationsVerbose(register, h.mu.all, 10*time.Minute); result {
	case porcupine.Illegal:
		file := "linearizable.html"
		if f, err := os.CreateTemp("", "linearizable-*.html"); err == nil {
			file = f.Name()
			porcupine.Visualize(register, info, f)
			f.Close()
		}
		t.Errorf("no order explains what the clients saw; see %s", file)
	case porcupine.Unknown:
		t.Error("the search for an order took too long")
	}
	h.judgeWatch(t, ctx, seen)
}

// client makes requests, each to any of the servers.
func (h *history) client(ctx context.Context, id int) {
	known := map[string]*corev1.ConfigMap{} // the last state of a key that this client has seen
	for ctx.Err() == nil {
		n := h.count.Add(1)
		if n > int64(h.operations) {
			return
		}
		key := fmt.Sprintf("key-%d-%d", n/(linearKeys*linearPerKey), rand.IntN(linearKeys))
		server := h.clients[rand.IntN(len(h.clients))]
		q := operation{key: key, value: fmt.Sprintf("%d-%d", id, h.values.Add(1))}
		switch draw := rand.IntN(10); {
		case draw < 3:
			q.verb = "get"
		case draw < 5:
			q.verb = "create"
		case draw < 6:
			q.verb = "delete"
		case known[key] == nil:
			q.verb = "get"
		default:
			q.verb, q.old = "update", known[key].Data["value"]
		}
		began := time.Since(h.began)
		got, a, drop := ask(ctx, server, q, known[key])
		ended := int64(time.Since(h.began))
		if got != nil {
			known[key] = got
		} else if q.verb != "create" {
			delete(known, key)
		}
		if drop {
			h.count.Add(-1)
			select { // no server runs; leave the processor to the starting one
			case <-ctx.Done():
			case <-time.After(time.Millisecond):
			}
			continue
		}
		if a.lost {
			ended = math.MaxInt64
		}
		h.mu.Lock()
		h.mu.all = append(h.mu.all,
			porcupine.Operation{ClientId: id, Input: q, Output: a, Call: int64(began), Return: ended})
		h.mu.Unlock()
	}
}

// ask makes one request, once: client-go's retries could execute a write twice without a trace.
func ask(ctx context.Context, c rest.Interface, q operation, known *corev1.ConfigMap) (got *corev1.ConfigMap, a outcome,
	drop bool) {
	ctx, cancel := context.WithTimeout(ctx, linearPatience)
	defer cancel()
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: q.key, Namespace: "default"}, Data: map[string]string{"value": q.value},
	}
	var request *rest.Request
	switch q.verb {
	case "get":
		request = c.Get().Name(q.key)
	case "create":
		request = c.Post().Body(object)
	case "update":
		object.ResourceVersion = known.ResourceVersion
		request = c.Put().Name(q.key).Body(object)
	case "delete":
		request = c.Delete().Name(q.key)
	}
	result := request.Namespace("default").Resource("configmaps").MaxRetries(0).Do(ctx)
	err := result.Error()
	switch {
	case err == nil && q.verb == "delete":
		return nil, outcome{ok: true}, false
	case err == nil:
		got = &corev1.ConfigMap{}
		if err := result.Into(got); err != nil {
			return nil, outcome{lost: q.verb != "get"}, q.verb == "get"
		}
		return got, outcome{ok: true, value: got.Data["value"]}, false
	case apierrors.IsNotFound(err), apierrors.IsAlreadyExists(err), apierrors.IsConflict(err):
		return nil, outcome{}, false
	case q.verb == "get", utilnet.IsConnectionRefused(err):
		// a read without a response has no effect, and this write was never sent
		return nil, outcome{}, true
	}
	return nil, outcome{lost: true}, false
}

// sighting is a state of an object in a watch or list.
type sighting struct {
	deleted  bool
	value    string
	revision int
}

// startWatch follows all objects from now on, through restarts of the servers. The channel delivers all events when the
// context is over or the wanted revision has come.
func (h *history) startWatch(t *testing.T, ctx context.Context) *watcher {
	list := &corev1.ConfigMapList{}
	if err := h.clients[0].Get().Namespace("default").Resource("configmaps").Do(ctx).Into(list); err != nil {
		t.Fatal(err)
	}
	w := &watcher{first: list, until: make(chan int, 1), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.err = w.follow(ctx, h.clients)
	}()
	return w
}

// watcher is one client that watches, and resumes at its last revision. A restarted server has no history; if no other
// server can help, the watcher lists and begins again, as informers do.
type watcher struct {
	first *corev1.ConfigMapList
	until chan int // the revision to stop at, once determined
	done  chan struct{}

	// Valid once done is closed:
	events []event
	gaps   int // how often it had to list
	err    error
}

// event is a change in the stream, or a list that replaces lost changes.
type event struct {
	key string
	sighting
	list *corev1.ConfigMapList
}

func (w *watcher) follow(ctx context.Context, clients []rest.Interface) error {
	at, stop, refused := w.first.ResourceVersion, math.MaxInt, 0
	for i := 0; ctx.Err() == nil; i++ {
		if refused == len(clients) {
			list := &corev1.ConfigMapList{}
			if err := clients[i%len(
				clients)].Get().Namespace(
				"default").Resource("configmaps").MaxRetries(0).Do(ctx).Into(list); err != nil {
				continue
			}
			at, refused = list.ResourceVersion, 0
			w.events = append(w.events, event{list: list})
			w.gaps++
		}
		if revision, err := strconv.Atoi(at); err != nil || revision >= stop {
			return err
		}
		stream, err := clients[i%len(clients)].Get().Namespace("default").Resource("configmaps").
			VersionedParams(&metav1.ListOptions{Watch: true, ResourceVersion: at},
				metav1.ParameterCodec).MaxRetries(0).Watch(ctx)
		if err != nil {
			continue // killed; the next one
		}
		ended := false
		for !ended {
			select {
			case stop = <-w.until:
				w.until = nil
				ended = true // it may have come already; look
			case ev, ok := <-stream.ResultChan():
				if !ok {
					ended = true
					break
				}
				m, isMap := ev.Object.(*corev1.ConfigMap)
				if !isMap {
					if status := apierrors.FromObject(ev.Object); apierrors.IsResourceExpired(status) ||
						apierrors.IsGone(status) {
						refused++
					}
					ended = true
					break
				}
				revision, err := strconv.Atoi(m.ResourceVersion)
				if err != nil {
					stream.Stop()
					return err
				}
				at, refused = m.ResourceVersion, 0
				w.events = append(w.events,
					event{key: m.Name, sighting: sighting{ev.Type == "DELETED", m.Data["value"], revision}})
				if revision >= stop {
					stream.Stop()
					return nil
				}
			}
		}
		stream.Stop()
	}
	return ctx.Err()
}

// judgeWatch compares the events of the watch with the lists before and after, and with the acknowledged writes.
func (h *history) judgeWatch(t *testing.T, ctx context.Context, w *watcher) {
	// One more write marks the end of the stream; servers may still be starting.
	marker := &corev1.ConfigMap{}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "end-", Namespace: "default"}}
	for marker.Name == "" {
		if err := h.clients[0].Post().Namespace(
			"default").Resource("configmaps").Body(object).Do(ctx).Into(marker); err != nil && ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	last := &corev1.ConfigMapList{}
	if err := h.clients[len(
		h.clients)-1].Get().Namespace("default").Resource("configmaps").Do(ctx).Into(last); err != nil {
		t.Fatal(err)
	}
	end, _ := strconv.Atoi(marker.ResourceVersion)
	w.until <- end
	<-w.done
	if w.err != nil {
		t.Fatal(w.err)
	}
	state := map[string]string{}
	for _, m := range w.first.Items {
		state[m.Name] = m.Data["value"]
	}
	times := map[string]int{} // how often a value was written
	revision := 0
	for _, ev := range w.events {
		if ev.list != nil {
			clear(state)
			for _, m := range ev.list.Items {
				state[m.Name] = m.Data["value"]
			}
			continue
		}
		if ev.revision <= revision {
			t.Errorf("event of revision %d after %d", ev.revision, revision)
		}
		revision = ev.revision
		if ev.deleted {
			delete(state, ev.key)
			continue
		}
		state[ev.key] = ev.value
		if ev.value != "" {
			times[ev.value]++
		}
	}
	is := map[string]string{}
	for _, m := range last.Items {
		is[m.Name] = m.Data["value"]
	}
	if len(is) != len(state) {
		t.Errorf("%d objects by the list, %d by the watch", len(is), len(state))
	}
	for name, value := range is {
		if state[name] != value {
			t.Errorf("%s is %q by the list, %q by the watch", name, value, state[name])
		}
	}
	for value, n := range times {
		if n != 1 {
			t.Errorf("%s was written %d times", value, n)
		}
	}
	t.Logf("the watch saw %d changes, with %d gaps", len(w.events), w.gaps)
	writes := slices.DeleteFunc(slices.Clone(h.mu.all), func(op porcupine.Operation) bool {
		verb := op.Input.(operation).verb
		return verb != "create" && verb != "update"
	})
	for _, op := range writes {
		q, a := op.Input.(operation), op.Output.(outcome)
		switch n := times[q.value]; {
		case a.ok && n == 0 && w.gaps == 0:
			t.Errorf("%s %s was acknowledged and did not happen", q.verb, q.value)
		case !a.ok && !a.lost && n > 0:
			t.Errorf("%s %s was refused and happened", q.verb, q.value)
		}
	}
}
