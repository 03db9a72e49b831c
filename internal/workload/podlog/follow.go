package podlog

import (
	"context"
	"io"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// reader reads a log: the lines written so far and, if it follows, later lines until the container ends. It has no
// goroutine of its own.
type reader struct {
	logs      *Logs
	ctx       context.Context // of the request; Read ends with it
	pod       *corev1.Pod
	container string
	run       run
	options   *corev1.PodLogOptions

	notified chan struct{} // signals changes of the pod; nil if the log is not followed
	seen     int           // number of log lines already processed
	ready    []byte        // bytes to return from Read
	left     int64         // remaining byte limit; negative means no limit
	atEnd    bool
	closed   bool
}

func (l *Logs) open(
	ctx context.Context, pod *corev1.Pod, container string, r run, o *corev1.PodLogOptions,
) io.ReadCloser {
	out := &reader{logs: l, ctx: ctx, pod: pod, container: container, run: r, options: o, left: -1}
	if o.LimitBytes != nil {
		out.left = *o.LimitBytes
	}
	if o.Follow && r.ended.IsZero() {
		out.notified = l.join(key(pod))
	}
	first, _ := written(pod, container, r, l.cluster.Now())
	out.add(wanted(first, o, l.cluster.Now()))
	out.seen = len(first)
	out.atEnd = out.atEnd || out.notified == nil
	return out
}

func key(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

// add appends lines to the output. Simulated containers write only to stdout.
func (r *reader) add(lines []line) {
	if s := r.options.Stream; s != nil && *s == corev1.LogStreamStderr {
		return
	}
	for _, l := range lines {
		if r.options.Timestamps {
			r.ready = append(l.at.UTC().AppendFormat(r.ready, stampFormat), ' ')
		}
		r.ready = append(append(r.ready, l.text...), '\n')
	}
	if r.left >= 0 && int64(len(r.ready)) >= r.left {
		r.ready, r.atEnd = r.ready[:r.left], true
	}
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	for len(r.ready) == 0 {
		if r.atEnd {
			return 0, io.EOF
		}
		if err := r.more(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.ready)
	r.ready = r.ready[n:]
	if r.left >= 0 {
		r.left -= int64(n)
	}
	return n, nil
}

// more adds the lines written since the last call, or waits until there may be some.
func (r *reader) more() error {
	pod := cluster.Pods.Get(r.logs.cluster, r.pod.Namespace, r.pod.Name)
	if pod == nil || pod.UID != r.pod.UID {
		r.atEnd = true
		return nil
	}
	there := true
	if r.run, there = r.run.again(pod, r.container); !there {
		r.atEnd = true
		return nil
	}
	now := r.logs.cluster.Now()
	lines, next := written(pod, r.container, r.run, now)
	if len(lines) > r.seen {
		r.add(lines[r.seen:])
		r.seen = len(lines)
		return nil
	}
	if !r.run.ended.IsZero() {
		r.atEnd = true
		return nil
	}
	if next > 0 {
		stop := r.logs.cluster.AfterFunc(next, func() { notify(r.notified) })
		defer stop()
		if !r.logs.cluster.Now().Before(now.Add(next)) { // the clock was moved meanwhile
			return nil
		}
	}
	select {
	case <-r.notified:
		return nil
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}

// Close implements io.Closer.
func (r *reader) Close() error {
	if r.notified != nil && !r.closed {
		r.closed = true
		r.logs.leave(key(r.pod), r.notified)
	}
	return nil
}
