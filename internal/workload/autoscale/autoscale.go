// Package autoscale scales workloads by what their pods use: Kubernetes' horizontal pod autoscaler, as a server that
// simulates workloads runs it. What pods use (package measure) is what package usage serves as metrics.k8s.io, at the
// moment of a look.
//
// look.go is one look at one autoscaler, source.go what a metric proposes. pods.go, limit.go and history.go are pure:
// the replicas that usage asks for, how far and how fast an autoscaler may go, and what it has proposed and done.
package autoscale

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// period is the time between two looks at an autoscaler.
const period = 15 * time.Second

// Part brings the controller.
func Part(shared *cluster.Shared) part.Part {
	return part.Part{Name: "horizontal pod autoscaler", Loops: []part.Loop{
		cluster.Loop("horizontal-pod-autoscaler-controller", 5, func(c *cluster.Cluster) control.Reconciler {
			c.User, c.Component = control.ControllerUser("horizontal-pod-autoscaler"), "horizontal-pod-autoscaler"
			return &autoscalers{Cluster: c, index: shared.Of(c.Host), memories: map[string]*memory{}}
		}),
	}}
}

// autoscalers looks at HorizontalPodAutoscalers. Its keys are theirs.
type autoscalers struct {
	*cluster.Cluster
	index *cluster.Index

	mu       sync.Mutex
	memories map[string]*memory // by key
}

// memory is what is known of an autoscaler beside its object. As in Kubernetes a restart forgets it.
type memory struct {
	uid types.UID
	// past belongs to who looks at the autoscaler: there is one look at a time.
	past history
	// selects are the pods of its target, nil if they are not known yet. It is under autoscalers.mu.
	selects labels.Selector
}

func (a *autoscalers) Observe(ev *watchcache.Event, need func(string)) {
	if cluster.HorizontalPodAutoscalers.Is(ev) && (ev.Prev == nil || ev.Type == watchcache.Deleted || wantsElse(ev)) {
		need(ev.Entry.Key())
	}
}

// wantsElse reports whether an autoscaler has another spec than before. Its status is what a look at it writes, and its
// next look is due in time.
func wantsElse(ev *watchcache.Event) bool {
	if ev.Prev.Unreadable() != nil || ev.Entry.Unreadable() != nil {
		return true
	}
	now, err1 := codec.Field(ev.Entry.JSON(), "spec")
	was, err2 := codec.Field(ev.Prev.JSON(), "spec")
	return err1 != nil || err2 != nil || !bytes.Equal(now, was)
}

func (a *autoscalers) Reconcile(ctx context.Context, key string) error {
	namespace, name, _ := strings.Cut(key, "/")
	was := cluster.HorizontalPodAutoscalers.Read(a.index, namespace, name)
	if was == nil {
		a.forget(key)
		return nil
	}
	l := &look{
		autoscalers: a, hpa: was.DeepCopy(), about: cluster.HorizontalPodAutoscalers.Ref(was),
		memory: a.remember(key, was.UID), now: a.Now(),
	}
	l.scale(ctx)
	if !equality.Semantic.DeepEqual(&was.Status, &l.hpa.Status) {
		_, err := cluster.HorizontalPodAutoscalers.UpdateStatus(ctx, a.Cluster, was,
			func(now *autoscalingv2.HorizontalPodAutoscaler) error {
				now.Status = l.hpa.Status
				return nil
			})
		if control.IgnoreNotFound(err) != nil {
			l.warn(ctx, "FailedUpdateStatus", err)
		}
	}
	return control.Again(period)
}

// remember returns the memory of an autoscaler. One that was made anew under its name starts with none.
func (a *autoscalers) remember(key string, uid types.UID) *memory {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := a.memories[key]
	if m == nil || m.uid != uid {
		m = &memory{uid: uid}
		a.memories[key] = m
	}
	return m
}

func (a *autoscalers) forget(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.memories, key)
}

// selecting notes which pods an autoscaler's target has, and returns which autoscalers have some of the pods:
// "namespace/name".
func (a *autoscalers) selecting(of *look, selects labels.Selector, pods []*corev1.Pod) (all []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	of.memory.selects = selects
	for key, m := range a.memories {
		namespace, _, _ := strings.Cut(key, "/")
		if namespace == of.hpa.Namespace && m.selects != nil && slices.ContainsFunc(pods, func(p *corev1.Pod) bool {
			return m.selects.Matches(labels.Set(p.Labels))
		}) {
			all = append(all, key)
		}
	}
	slices.Sort(all)
	return all
}
