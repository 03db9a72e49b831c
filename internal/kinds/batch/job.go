package batch

import (
	"fmt"
	"math"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
	"github.com/bowsprit/bowsprit/internal/object"
)

func jobKind() rule.Kind {
	return rule.Of[batchv1.Job](rule.Kind{
		Group: batchV1, Kind: "Job", DropGated: pod.DropGatedAt("spec", "template", "spec"), Plural: "jobs",
		Categories: rule.CategoryAll, Status: true,
		Generation: true,
		Strategy: &catalog.Strategy{Cells: rule.Printed(jobCells), Default: defaultJob, Read: separateLabels,
			PrepareCreate: prepareJobCreate, UnconditionalUpdate: true, Dependents: catalog.OrphanDependents,
			WarnDependents: podsStay,
			FieldLabels: map[string]func(object.Object) string{
				"status.successful": rule.CountAt("status", "succeeded"),
			},
			UnknownField: "field label %q not supported for Job"},
		Warn: warnJob,
	})
}

func jobCells(j *batchv1.Job, e catalog.Env) []any {
	completions := ""
	switch parallel := rule.Deref(j.Spec.Parallelism, 0); {
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
	names, images := pod.ContainerNames(j.Spec.Template.Spec.Containers)
	return []any{j.Name, jobState(j), completions, took, rule.Ago(j.CreationTimestamp, e), names, images,
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

func defaultJob(obj object.Object) {
	pod.DefaultTemplate(obj)
	spec := object.Child(obj, "spec")
	if spec["completions"] == nil && spec["parallelism"] == nil {
		spec["completions"] = int64(1)
	}
	rule.SetDefault(spec, "parallelism", int64(1))
	if spec["backoffLimitPerIndex"] != nil {
		rule.SetDefault(spec, "backoffLimit", int64(math.MaxInt32))
	}
	rule.SetDefault(spec, "backoffLimit", int64(6))
	if spec["podFailurePolicy"] != nil {
		rule.SetDefault(spec, "podReplacementPolicy", "Failed")
	}
	rule.SetDefault(spec, "podReplacementPolicy", "TerminatingOrFailed")
	labelAsTemplate(obj)
}

// labelAsTemplate sets the labels of a job without labels to its template's: one shared map, see prepareJobCreate.
func labelAsTemplate(obj object.Object) {
	meta := object.Child(obj, "metadata")
	if have, _ := meta["labels"].(map[string]any); len(have) == 0 {
		if labels := pod.TemplateLabels(object.Child(obj, "spec")); labels != nil {
			meta["labels"] = labels
		}
	}
}

// separateLabels gives a job that shares the labels of its template a map of its own.
func separateLabels(obj object.Object) {
	meta := object.Child(obj, "metadata")
	if labels, ok := meta["labels"].(map[string]any); ok {
		meta["labels"] = runtime.DeepCopyJSON(labels)
	}
}

// podsStay is the warning for a deletion of jobs without a propagation policy.
const podsStay = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning"

// prepareJobCreate generates a selector that matches only the job's own pods, unless the job sets manualSelector. A job
// without labels also gets the labels that are added here, since in Kubernetes it shares one map with its template.
func prepareJobCreate(obj object.Object, _ catalog.Env) {
	defer func() {
		labelAsTemplate(obj) // all labels of the template are set by now
		separateLabels(obj)
	}()
	obj["status"] = map[string]any{}
	spec := object.Child(obj, "spec")
	if spec["manualSelector"] == true {
		return
	}
	name, uid := object.String(obj, "metadata", "name"), object.String(obj, "metadata", "uid")
	labels := object.Child(object.Child(object.Child(spec, "template"), "metadata"), "labels")
	rule.SetDefault(labels, "job-name", name)
	rule.SetDefault(labels, "batch.kubernetes.io/job-name", name)
	rule.SetDefault(labels, "controller-uid", uid)
	rule.SetDefault(labels, "batch.kubernetes.io/controller-uid", uid)
	rule.SetDefault(object.Child(object.Child(spec, "selector"), "matchLabels"), "batch.kubernetes.io/controller-uid",
		uid)
}

func warnJob(w *rule.Warnings) {
	w.NameIsHostname("Pod names and hostnames")
	warnJobSpec(w, object.Map(w.Obj, "spec"), field.NewPath("spec"))
}

func warnCronJob(w *rule.Warnings) {
	w.NameIsHostname("Pod names and hostnames")
	warnJobSpec(w, object.Map(w.Obj, "spec", "jobTemplate", "spec"), field.NewPath("spec", "jobTemplate", "spec"))
	if w.Old != nil && strings.Contains(object.String(object.Map(w.Obj, "spec"), "schedule"), "TZ") {
		w.AddText(
			"cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details")
	}
}

func warnJobSpec(w *rule.Warnings, spec object.Object, path *field.Path) {
	if w.Unchanged() {
		return
	}
	completions, _ := object.Int(spec, "completions")
	parallelism, _ := object.Int(spec, "parallelism")
	if indexed(spec) && completions > 100_000 && parallelism > 10_000 {
		w.Addf(path,
			"In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail")
	}
	pod.WarnTemplate(w, object.Map(spec, "template"), path.Child("template"))
}

// jobFunctions are the functions that job.txt names.
func jobFunctions() rule.Functions {
	return rule.Functions{
		"completionMode":    completionMode,
		"failedIndexes":     failedIndexes,
		"failurePolicy":     failurePolicy,
		"generatedSelector": generatedSelector,
		"jobRestartPolicy":  jobRestartPolicy,
		"jobSelector":       jobSelector,
		"jobStatus":         jobStatus,
		"jobUpdate":         jobUpdate,
		"podHostnames":      podHostnames,
		"podTemplate":       pod.Template,
		"replacementPolicy": replacementPolicy,
		"successPolicy":     successPolicy,
	}
}
