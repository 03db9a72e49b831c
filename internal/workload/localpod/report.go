package localpod

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
	"github.com/bowsprit/bowsprit/internal/workload/localpod/callback"
)

// writeEvery is the shortest time between two writes of a pod's status.
const writeEvery = 200 * time.Millisecond

// follow writes the states that the program's command reports to the status of the pod. It returns the reason of the
// route's end.
func (p *Pods) follow(ctx context.Context, r *route) error {
	ctx, cancel := context.WithCancelCause(ctx)
	states := make(chan callback.State, 1) // the last state
	read := make(chan struct{})
	defer func() { cancel(nil); <-read }()
	go func() {
		defer close(read)
		cancel(r.readStates(ctx, states))
	}()
	pod := r.pod
	for {
		select {
		case state := <-states:
			var err error
			pod, err = cluster.Pods.UpdateStatus(ctx, p.cluster, pod, func(pod *corev1.Pod) error {
				setAddresses(&pod.Status, r.addresses)
				setStatus(pod, state, p.cluster.Now())
				return nil
			})
			if err != nil {
				return fmt.Errorf("write the status: %w", err)
			}
			pause(ctx, writeEvery)
		case <-r.link.Done():
			return callback.ErrGone
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// readStates reads states from the program's command. A state that is not taken yet is replaced.
func (r *route) readStates(ctx context.Context, states chan callback.State) error {
	body, err := r.link.Get(ctx, callback.StatePath)
	if err != nil {
		return err
	}
	defer body.Close()
	in := bufio.NewScanner(body)
	in.Buffer(nil, callback.MaxState)
	for in.Scan() {
		var state callback.State
		if err := json.Unmarshal(in.Bytes(), &state); err != nil {
			return errors.New("the program's command reports an invalid state")
		}
		select {
		case <-states:
		default:
		}
		states <- state
	}
	return cmp.Or(in.Err(), io.EOF)
}

// fromObject decodes an object into a Go value.
func fromObject(obj object.Object, into any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(obj, into)
}
