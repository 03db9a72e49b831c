package workloads

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// side is one of the two servers, with a copy of its objects that watches keep current. So many stories can wait at the
// same time without requests to the server.
type side struct {
	name   string
	client dynamic.Interface
	copies map[string]cache.SharedIndexInformer // by resource

	// places is whether it matters on which nodes pods are.
	places bool

	mu sync.Mutex
	// changes counts the changes in each namespace, and past lists the pods that appeared and disappeared, in order.
	changes map[string]int
	past    map[string][]string
}

// newSide watches a server until the test ends.
func newSide(t *testing.T, name string, settings *rest.Config) *side {
	t.Helper()
	client, err := dynamic.NewForConfig(settings)
	if err != nil {
		t.Fatal(err)
	}
	s := &side{
		name: name, client: client, copies: map[string]cache.SharedIndexInformer{},
		changes: map[string]int{}, past: map[string][]string{},
	}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	for resource, gvr := range kinds {
		informer := factory.ForResource(gvr).Informer()
		s.copies[resource] = informer
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { s.note(o, "+") },
			UpdateFunc: func(_, o any) { s.note(o, "") },
			DeleteFunc: func(o any) { s.note(o, "-") },
		}); err != nil {
			t.Fatal(err)
		}
	}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	return s
}

// note counts a change. It records pods of StatefulSets that appear and disappear in order, because their order
// matters.
func (s *side) note(obj any, how string) {
	o, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return
	}
	namespace := o.GetNamespace()
	if o.GetKind() == "PersistentVolume" {
		namespace, _, _ = unstructured.NestedString(o.Object, "spec", "claimRef", "namespace")
		namespace = cmp.Or(o.GetLabels()["story"], namespace)
	}
	if o.GetKind() == "Node" {
		namespace = o.GetLabels()["story"]
	} else if story := nodesStory(o); story != "" {
		namespace = story
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes[namespace]++
	if of := metav1.GetControllerOf(o); how != "" && o.GetKind() == "Pod" && of != nil && of.Kind == "StatefulSet" {
		s.past[namespace] = append(s.past[namespace], how+o.GetName())
	}
}

func (s *side) changed(namespace string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes[namespace]
}

// history returns the pods of StatefulSets that appeared (+) and disappeared (-) in a namespace. Pods of ordered sets
// are in their order, without regard to other sets.
func (s *side) history(namespace string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	sets := map[string][]string{}
	for _, text := range s.past[namespace] {
		set := text[1:strings.LastIndexByte(text, '-')]
		sets[set] = append(sets[set], text)
	}
	var out []string
	for set, all := range sets {
		if o := s.get("statefulsets", namespace, set); o != nil {
			policy, _, _ := unstructured.NestedString(o.Object, "spec", "podManagementPolicy")
			strategy, _, _ := unstructured.NestedString(o.Object, "spec", "updateStrategy", "type")
			switch {
			case policy == "Parallel":
				slices.Sort(all)
			case strategy == "Recreate":
				sortGone(all)
			}
		} else {
			slices.Sort(all) // pods deleted with a set have no order
		}
		out = append(out, set+": "+strings.Join(all, " "))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// sortGone sorts each sequence of pods that disappeared. An update with the strategy Recreate deletes them
// concurrently.
func sortGone(all []string) {
	for from := 0; from < len(all); from++ {
		to := from
		for to < len(all) && all[to][0] == '-' {
			to++
		}
		slices.Sort(all[from:to])
		from = max(from, to-1)
	}
}

// get returns an object, or nil. The caller must not change it.
func (s *side) get(resource, namespace, name string) *unstructured.Unstructured {
	key := namespace + "/" + name
	if ofCluster(resource) {
		key = name
	}
	o, ok, _ := s.copies[resource].GetIndexer().GetByKey(key)
	if !ok {
		return nil
	}
	return o.(*unstructured.Unstructured)
}

// list returns the objects of a namespace, which the caller may change. For volumes it returns the volumes with the
// namespace's claims and label.
func (s *side) list(resource, namespace string) (out []*unstructured.Unstructured) {
	store := s.copies[resource].GetIndexer()
	objects := store.List()
	if !ofCluster(resource) {
		objects, _ = store.ByIndex(cache.NamespaceIndex, namespace)
	}
	if resource == "events" { // events of nodes are in the default namespace
		others, _ := store.ByIndex(cache.NamespaceIndex, metav1.NamespaceDefault)
		for _, o := range others {
			if nodesStory(o.(*unstructured.Unstructured)) == namespace {
				objects = append(slices.Clip(objects), o)
			}
		}
	}
	for _, o := range objects {
		u := o.(*unstructured.Unstructured)
		if ofCluster(resource) {
			claim, _, _ := unstructured.NestedString(u.Object, "spec", "claimRef", "namespace")
			if claim != namespace && u.GetLabels()["story"] != namespace {
				continue
			}
		}
		out = append(out, u.DeepCopy())
	}
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	return out
}

// reach waits until the copy has the result of a write, or a newer state.
func (s *side) reach(ctx context.Context, resource string, written *unstructured.Unstructured) error {
	want, _ := strconv.ParseUint(written.GetResourceVersion(), 10, 64)
	return poll(ctx, func() (bool, error) {
		o := s.get(resource, written.GetNamespace(), written.GetName())
		if o == nil {
			newest, err := strconv.ParseUint(s.copies[resource].LastSyncResourceVersion(), 10, 64)
			return err == nil && newest > want, nil // it was created and deleted
		}
		has, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
		return has >= want, err
	})
}

// ofCluster reports whether objects of a kind are in no namespace.
func ofCluster(resource string) bool { return resource == "persistentvolumes" || resource == "nodes" }

// nodesStory returns the story of a node that an event is about, "" of other objects.
func nodesStory(o *unstructured.Unstructured) string {
	about, _, _ := unstructured.NestedStringMap(o.Object, "involvedObject")
	if about["kind"] != "Node" {
		return ""
	}
	return about["name"][:max(0, strings.LastIndexByte(about["name"], '-'))]
}

// poll waits until done returns true.
func poll(ctx context.Context, done func() (bool, error)) error {
	for wait := 10 * time.Millisecond; ; wait = min(wait*3/2, 100*time.Millisecond) {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited in vain: %w", ctx.Err())
		case <-time.After(wait):
		}
	}
}
