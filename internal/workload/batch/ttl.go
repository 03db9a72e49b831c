package batch

import (
	"context"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// expiry deletes finished Jobs after their ttlSecondsAfterFinished.
type expiry struct {
	*cluster.Cluster
	index *cluster.Index
}

func (x *expiry) Observe(ev *watchcache.Event, need func(string)) {
	if cluster.Jobs.Is(ev) && ev.Type != watchcache.Deleted {
		need(ev.Entry.Key())
	}
}

func (x *expiry) Reconcile(ctx context.Context, key string) error {
	namespace, name, _ := strings.Cut(key, "/")
	job := cluster.Jobs.Read(x.index, namespace, name)
	if job == nil || job.DeletionTimestamp != nil || job.Spec.TTLSecondsAfterFinished == nil {
		return nil
	}
	end, ok := finishedAt(job)
	if !ok {
		return nil
	}
	if left := end.Add(time.Duration(*job.Spec.TTLSecondsAfterFinished) * time.Second).Sub(x.Now()); left > 0 {
		return control.Again(left)
	}
	policy, uid, version := metav1.DeletePropagationForeground, job.UID, job.ResourceVersion
	err := cluster.Jobs.Delete(ctx, x.Cluster, job, metav1.DeleteOptions{
		PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return cluster.Soon(err)
}

// finishedAt returns when a Job has ended, and whether it has.
func finishedAt(job *batchv1.Job) (time.Time, bool) {
	for _, c := range job.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time, true
		}
	}
	return time.Time{}, false
}
