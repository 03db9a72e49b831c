// Package podlog provides the logs of containers on simulated nodes, from annotations of their pods.
//
// Package kubelet calls it (Logs.Log) in the place of the node's kubelet. The lines of a log are a pure function of the
// pod and the time (lines.go). A followed log waits for changes of the pod and for the clock (follow.go). Logs is safe
// for concurrent use.
package podlog

import (
	"context"
	"fmt"
	"io"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// Logs provides the logs of all simulated nodes. Its zero value is ready once its Part has started.
type Logs struct {
	cluster *cluster.Cluster

	mu        sync.Mutex
	followers map[string]map[chan struct{}]bool // by pod key; each channel signals changes of the pod
}

// Part connects the logs to the server.
func Part(l *Logs) part.Part {
	return part.Part{Name: "simulated logs", Handlers: func(h *part.Host) part.Handlers {
		l.cluster = cluster.Kubelets(h)
		h.View.Subscribe(l.observe)
		return part.Handlers{}
	}}
}

// Simulates implements kubelet.Simulation.
func (l *Logs) Simulates(node *watchcache.Entry) bool { return cluster.IsSimulated(node) }

// Log implements kubelet.Simulation.
func (l *Logs) Log(
	ctx context.Context, pod *corev1.Pod, container string, o *corev1.PodLogOptions,
) (io.ReadCloser, error) {
	node := pod.Spec.NodeName
	if cluster.IsDown(l.cluster.View.Collection(cluster.Nodes.Prefix).Snapshot().Get("", node)) {
		return nil, fmt.Errorf("dial tcp %s:10250: i/o timeout", cluster.NodeAddress(node))
	}
	r, err := runOf(pod, container, o.Previous)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return l.open(ctx, pod, container, r, o), nil
}

func (l *Logs) observe(events []*watchcache.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.followers) == 0 {
		return
	}
	for _, ev := range events {
		if !cluster.Pods.Is(ev) {
			continue
		}
		for follower := range l.followers[ev.Entry.Key()] {
			notify(follower)
		}
	}
}

// notify wakes a follower. Its channel holds one signal, which is enough.
func notify(follower chan struct{}) {
	select {
	case follower <- struct{}{}:
	default:
	}
}

func (l *Logs) join(key string) chan struct{} {
	follower := make(chan struct{}, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.followers == nil {
		l.followers = map[string]map[chan struct{}]bool{}
	}
	if l.followers[key] == nil {
		l.followers[key] = map[chan struct{}]bool{}
	}
	l.followers[key][follower] = true
	return follower
}

func (l *Logs) leave(key string, follower chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.followers[key], follower)
	if len(l.followers[key]) == 0 {
		delete(l.followers, key)
	}
}
