package batch

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
	"github.com/bowsprit/bowsprit/internal/workload/replica"
)

// manage creates missing pods, or deletes surplus ones.
func (l *look) manage(ctx context.Context) error {
	if suspended(l.Job) {
		return l.remove(ctx, l.surplus(len(l.active)))
	}
	want := l.wanted()
	if surplus := l.surplus(max(0, int(l.running-want))); len(surplus) > 0 {
		return l.remove(ctx, surplus[:min(len(surplus), cluster.BurstMost)])
	}
	missing := want - l.running
	if replacesFailedOnly(l.Job) {
		missing -= l.terminating
	}
	if missing <= 0 {
		return nil
	}
	missing = min(missing, cluster.BurstMost)
	if l.Spec.BackoffLimitPerIndex == nil {
		if pause := l.backoff.remaining(l.now); pause > 0 {
			l.lookAfter(pause)
			return nil
		}
	}
	if !indexed(l.Job) {
		return l.create(ctx, slices.Repeat([]int{noIndex}, int(missing)))
	}
	free := l.freeIndexes(int(missing))
	if l.Spec.BackoffLimitPerIndex != nil {
		var pause time.Duration
		if free, pause = l.withoutPause(free); pause > 0 {
			l.lookAfter(pause)
			return nil
		}
	}
	return l.create(ctx, free)
}

// wanted returns the number of pods that should run.
func (l *look) wanted() int32 {
	parallel := *l.Spec.Parallelism
	if l.Spec.Completions == nil {
		if l.succeeded > 0 {
			return l.running // the running pods may end, and none is added
		}
		return parallel
	}
	return max(0, min(*l.Spec.Completions-l.succeeded, parallel))
}

// surplus returns at least n active pods to delete: first pods with duplicate or invalid indexes.
func (l *look) surplus(n int) []*corev1.Pod {
	left := slices.Clone(l.active)
	var out []*corev1.Pod
	if indexed(l.Job) {
		out, left = duplicates(left, l.completions())
	}
	if len(out) < n {
		replica.ByRemoval(left)
		out = append(out, left[:n-len(out)]...)
	}
	return out
}

// duplicates splits pods into pods to delete, with an invalid or duplicate index, and the others.
func duplicates(pods []*corev1.Pod, completions int) (out, left []*corev1.Pod) {
	byIndex(pods)
	for len(pods) > 0 {
		i := indexOf(pods[0])
		n := 1
		for n < len(pods) && indexOf(pods[n]) == i {
			n++
		}
		same := pods[:n:n]
		pods = pods[n:]
		if i == noIndex || i >= completions {
			out = append(out, same...)
			continue
		}
		replica.ByRemoval(same)
		out = append(out, same[:n-1]...)
		left = append(left, same[n-1])
	}
	return out, left
}

// remove deletes pods that must not be counted.
func (l *look) remove(ctx context.Context, pods []*corev1.Pod) error {
	maker := l.maker()
	removed := make([]bool, len(pods))
	err := cluster.AtOnce(len(pods), func(i int) error {
		if err := l.untrack(ctx, pods[i]); err != nil {
			return fmt.Errorf("removing completion finalizer: %w", err)
		}
		if err := control.IgnoreNotFound(maker.Delete(ctx, pods[i])); err != nil {
			return err
		}
		removed[i] = true
		return nil
	})
	for i, p := range pods {
		if !removed[i] {
			continue
		}
		l.running--
		l.terminating++
		if replica.IsReady(p) {
			l.ready--
		}
	}
	return err
}

// untrack removes the finalizer from a pod that is counted, or not to be counted. A missing pod is no error.
func (j *jobs) untrack(ctx context.Context, p *corev1.Pod) error {
	if !tracked(p) {
		return nil
	}
	to := cluster.Target{Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)}
	err := cluster.Pods.Edit(ctx, j.Cluster, to, func(pod object.Object) error {
		object.SetFinalizers(pod, slices.DeleteFunc(object.Finalizers(pod),
			func(f string) bool { return f == batchv1.JobTrackingFinalizer }))
		return nil
	})
	return control.IgnoreNotFound(err)
}

// freeIndexes returns indexes, n at most, that no pod has and none has done.
func (l *look) freeIndexes(n int) []int {
	taken := l.done.with(sorted(indexesOf(l.active)))
	if replacesFailedOnly(l.Job) {
		taken = taken.with(sorted(indexesOf(replica.Where(l.pods, replica.IsTerminating))))
	}
	if l.lost != nil {
		taken = taken.union(*l.lost)
	}
	return taken.free(n, l.completions())
}

// withoutPause returns the indexes that need no back-off, or else the shortest remaining back-off.
func (l *look) withoutPause(free []int) (now []int, pause time.Duration) {
	for _, i := range free {
		left := time.Duration(0)
		if p := l.delayed[i]; p != nil {
			left = backoff{allFailures(p) + 1, endOf(p)}.remaining(l.now)
		}
		switch {
		case left == 0:
			now = append(now, i)
		case pause == 0 || left < pause:
			pause = left
		}
	}
	if len(now) > 0 {
		return now, 0
	}
	return nil, pause
}

// create creates a pod for each index; noIndex stands for a pod without one.
func (l *look) create(ctx context.Context, of []int) error {
	maker := l.maker()
	ref := *metav1.NewControllerRef(l.was, cluster.Jobs.GroupVersionKind())
	made, err := cluster.SlowStart(len(of), func(i int) error { return maker.Create(ctx, l.newPod(of[i], ref)) })
	l.running += int32(made)
	return err
}

// longestPrefix is the number of bytes of a name that a generated name keeps.
const longestPrefix = 58

// newPod returns the pod of an index.
func (l *look) newPod(index int, ref metav1.OwnerReference) *corev1.Pod {
	p := replica.FromTemplate(&l.Spec.Template, l.was, ref)
	if !slices.Contains(p.Finalizers, batchv1.JobTrackingFinalizer) {
		p.Finalizers = append(p.Finalizers, batchv1.JobTrackingFinalizer)
	}
	if index == noIndex {
		return p
	}
	text := strconv.Itoa(index)
	p.Annotations = with(p.Annotations, batchv1.JobCompletionIndexAnnotation, text)
	p.Labels = with(p.Labels, batchv1.JobCompletionIndexAnnotation, text)
	p.Spec.Hostname = l.Name + "-" + text
	end := "-" + text + "-"
	p.GenerateName = l.Name[:min(len(l.Name), longestPrefix-len(end))] + end
	for i := range p.Spec.InitContainers {
		addIndexVariable(&p.Spec.InitContainers[i])
	}
	for i := range p.Spec.Containers {
		addIndexVariable(&p.Spec.Containers[i])
	}
	if l.Spec.BackoffLimitPerIndex != nil {
		counted, ignored := l.failuresBefore(l.delayed[index])
		p.Annotations[batchv1.JobIndexFailureCountAnnotation] = fmt.Sprint(counted)
		if ignored > 0 {
			p.Annotations[batchv1.JobIndexIgnoredFailureCountAnnotation] = fmt.Sprint(ignored)
		}
	}
	return p
}

// failuresBefore returns the failure counts of an index including its last pod, which may be nil.
func (l *look) failuresBefore(last *corev1.Pod) (counted, ignored int32) {
	if last == nil {
		return 0, 0
	}
	counted, ignored = failures(last)
	if judge(l.Spec.PodFailurePolicy, last).counts() {
		return counted + 1, ignored
	}
	return counted, ignored + 1
}

// indexVariable is the environment variable with the index of a container's pod.
const indexVariable = "JOB_COMPLETION_INDEX"

func addIndexVariable(c *corev1.Container) {
	if slices.ContainsFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == indexVariable }) {
		return
	}
	c.Env = append(c.Env, corev1.EnvVar{
		Name: indexVariable, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
			FieldPath: fmt.Sprintf("metadata.labels['%s']", batchv1.JobCompletionIndexAnnotation),
		}},
	})
}

func with(m map[string]string, key, value string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}
