// Package autoscale implements Kubernetes' horizontal pod autoscaler for a server that simulates workloads. It reads
// the usage of pods from package measure, the source of package usage's metrics.k8s.io, at the time of each reconcile.
//
// look.go is one reconcile of an autoscaler; source.go evaluates one metric. pods.go, limit.go and history.go are pure:
// the replicas for a usage, the limits of scaling, and the recent proposals and changes.
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

// period is the time between two reconciles of an autoscaler.
const period = 15 * time.Second

// Feature gates of the controller.
const (
	zeroGate       = "HPAScaleToZero"
	generationGate = "HPAGeneration"
)

// Part returns the controller. Without its feature gates it behaves as in 1.36.
func Part(shared *cluster.Shared, openGates []string) part.Part {
	return part.Part{Name: "horizontal pod autoscaler", Loops: []part.Loop{
		cluster.Loop("horizontal-pod-autoscaler-controller", 5, func(c *cluster.Cluster) control.Reconciler {
			c.User, c.Component = control.ControllerUser("horizontal-pod-autoscaler"), "horizontal-pod-autoscaler"
			return &autoscalers{
				Cluster: c, index: shared.Of(c.Host), memories: map[string]*memory{},
				toZero:      slices.Contains(openGates, zeroGate),
				generations: slices.Contains(openGates, generationGate),
			}
		}),
	}}
}

// autoscalers reconciles HorizontalPodAutoscalers. Its keys are their keys.
type autoscalers struct {
	*cluster.Cluster
	index *cluster.Index
	// toZero and generations are the gates: targets without pods, and observed generations.
	toZero, generations bool

	mu       sync.Mutex
	memories map[string]*memory // by key
}

// memory is the state of an autoscaler outside its object. As in Kubernetes a restart loses it.
type memory struct {
	uid types.UID
	// past is used only by the reconcile of the autoscaler; there is one at a time.
	past history
	// selects selects the pods of its target, nil if they are not known yet. autoscalers.mu guards it.
	selects labels.Selector
}

func (a *autoscalers) Observe(ev *watchcache.Event, need func(string)) {
	if cluster.HorizontalPodAutoscalers.Is(ev) && (ev.Prev == nil || ev.Type == watchcache.Deleted || wantsElse(ev)) {
		need(ev.Entry.Key())
	}
}

// wantsElse reports whether the spec of an autoscaler has changed. Its own reconciles write its status, and schedule
// the next one.
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

// remember returns the memory of an autoscaler. A recreated autoscaler gets a new one.
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

// selecting records the pods of an autoscaler's target, and returns the "namespace/name" of all autoscalers that select
// some of them.
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
