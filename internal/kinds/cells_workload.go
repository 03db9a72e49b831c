package kinds

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

func podTemplateCells(t *corev1.PodTemplate, _ catalog.Env) []any {
	names, images := containerNames(t.Template.Spec.Containers)
	return []any{t.Name, names, images, labelText(t.Template.Labels)}
}

func replicationControllerCells(rc *corev1.ReplicationController, e catalog.Env) []any {
	var names, images string
	if rc.Spec.Template != nil {
		names, images = containerNames(rc.Spec.Template.Spec.Containers)
	}
	return []any{
		rc.Name, int64(deref(rc.Spec.Replicas, 0)), int64(rc.Status.Replicas), int64(rc.Status.ReadyReplicas),
		ago(rc.CreationTimestamp, e), names, images, labelText(rc.Spec.Selector),
	}
}

func replicaSetCells(rs *appsv1.ReplicaSet, e catalog.Env) []any {
	names, images := containerNames(rs.Spec.Template.Spec.Containers)
	return []any{
		rs.Name, int64(deref(rs.Spec.Replicas, 0)), int64(rs.Status.Replicas), int64(rs.Status.ReadyReplicas),
		ago(rs.CreationTimestamp, e), names, images, metav1.FormatLabelSelector(rs.Spec.Selector),
	}
}

func deploymentCells(d *appsv1.Deployment, e catalog.Env) []any {
	names, images := containerNames(d.Spec.Template.Spec.Containers)
	selects := "<invalid>"
	if s, err := metav1.LabelSelectorAsSelector(d.Spec.Selector); err == nil {
		selects = s.String()
	}
	return []any{
		d.Name, fmt.Sprintf("%d/%d", d.Status.ReadyReplicas, deref(d.Spec.Replicas, 0)),
		int64(d.Status.UpdatedReplicas), int64(d.Status.AvailableReplicas),
		ago(d.CreationTimestamp, e), names, images, selects,
	}
}

func statefulSetCells(s *appsv1.StatefulSet, e catalog.Env) []any {
	names, images := containerNames(s.Spec.Template.Spec.Containers)
	return []any{s.Name, fmt.Sprintf("%d/%d", s.Status.ReadyReplicas, deref(s.Spec.Replicas, 0)),
		ago(s.CreationTimestamp, e), names, images}
}

func daemonSetCells(d *appsv1.DaemonSet, e catalog.Env) []any {
	names, images := containerNames(d.Spec.Template.Spec.Containers)
	s := d.Status
	return []any{
		d.Name, int64(s.DesiredNumberScheduled), int64(s.CurrentNumberScheduled), int64(s.NumberReady),
		int64(s.UpdatedNumberScheduled), int64(s.NumberAvailable),
		labelText(d.Spec.Template.Spec.NodeSelector), ago(d.CreationTimestamp, e), names, images,
		metav1.FormatLabelSelector(d.Spec.Selector),
	}
}

func controllerRevisionCells(r *appsv1.ControllerRevision, e catalog.Env) []any {
	owner := none
	if ref := metav1.GetControllerOf(r); ref != nil {
		gv, _ := schema.ParseGroupVersion(ref.APIVersion)
		owner = resourceName(gv.Group, ref.Kind, ref.Name)
	}
	return []any{r.Name, owner, r.Revision, ago(r.CreationTimestamp, e)}
}

// resourceName is "deployment.apps/x", as kubectl prints it.
func resourceName(group, kind, name string) string {
	gk := schema.GroupKind{Group: group, Kind: kind}
	if gk.Empty() {
		return name
	}
	return lower(gk.String()) + "/" + name
}

func jobCells(j *batchv1.Job, e catalog.Env) []any {
	completions := ""
	switch parallel := deref(j.Spec.Parallelism, 0); {
	case j.Spec.Completions != nil:
		completions = fmt.Sprintf("%d/%d", j.Status.Succeeded, *j.Spec.Completions)
	case parallel > 1:
		completions = fmt.Sprintf("%d/1 of %d", j.Status.Succeeded, parallel)
	default:
		completions = fmt.Sprintf("%d/1", j.Status.Succeeded)
	}
	took := ""
	switch start, end := j.Status.StartTime, j.Status.CompletionTime; {
	case start == nil:
	case end == nil:
		took = duration.HumanDuration(e.Now.Sub(start.Time))
	default:
		took = duration.HumanDuration(end.Sub(start.Time))
	}
	names, images := containerNames(j.Spec.Template.Spec.Containers)
	return []any{j.Name, jobState(j), completions, took, ago(j.CreationTimestamp, e), names, images,
		metav1.FormatLabelSelector(j.Spec.Selector)}
}

func jobState(j *batchv1.Job) string {
	is := func(kind batchv1.JobConditionType) bool {
		for _, c := range j.Status.Conditions {
			if c.Type == kind {
				return c.Status == corev1.ConditionTrue
			}
		}
		return false
	}
	switch {
	case is(batchv1.JobComplete):
		return "Complete"
	case is(batchv1.JobFailed):
		return "Failed"
	case j.DeletionTimestamp != nil:
		return "Terminating"
	case is(batchv1.JobSuspended):
		return "Suspended"
	case is(batchv1.JobFailureTarget):
		return "FailureTarget"
	case is(batchv1.JobSuccessCriteriaMet):
		return "SuccessCriteriaMet"
	}
	return "Running"
}

func cronJobCells(c *batchv1.CronJob, e catalog.Env) []any {
	last := none
	if c.Status.LastScheduleTime != nil {
		last = ago(*c.Status.LastScheduleTime, e)
	}
	suspend := unset
	if c.Spec.Suspend != nil {
		suspend = map[bool]string{true: "True", false: "False"}[*c.Spec.Suspend]
	}
	job := c.Spec.JobTemplate.Spec
	names, images := containerNames(job.Template.Spec.Containers)
	return []any{
		c.Name, c.Spec.Schedule, deref(c.Spec.TimeZone, none), suspend, int64(len(c.Status.Active)), last,
		ago(c.CreationTimestamp, e),
		names, images, metav1.FormatLabelSelector(job.Selector),
	}
}

func budgetCells(b *policyv1.PodDisruptionBudget, e catalog.Env) []any {
	least, most := "N/A", "N/A"
	if b.Spec.MinAvailable != nil {
		least = b.Spec.MinAvailable.String()
	}
	if b.Spec.MaxUnavailable != nil {
		most = b.Spec.MaxUnavailable.String()
	}
	return []any{b.Name, least, most, int64(b.Status.DisruptionsAllowed), ago(b.CreationTimestamp, e)}
}
