package kinds

import (
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// replicas is the scale of the kinds whose selector is a label selector.
func replicas() *catalog.Scale {
	return &catalog.Scale{SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas",
		Selector: func(obj catalog.Object) string {
			spec, _ := obj["spec"].(map[string]any)
			var selector metav1.LabelSelector
			in, _ := spec["selector"].(map[string]any)
			if runtime.DefaultUnstructuredConverter.FromUnstructured(in, &selector) != nil {
				return ""
			}
			s, err := metav1.LabelSelectorAsSelector(&selector)
			if err != nil {
				return ""
			}
			return s.String()
		}}
}

// controllerReplicas is the scale of a replication controller, whose selector is a map of labels.
func controllerReplicas() *catalog.Scale {
	scale := replicas()
	scale.Selector = func(obj catalog.Object) string {
		spec, _ := obj["spec"].(map[string]any)
		selector, _ := spec["selector"].(map[string]any)
		set := labels.Set{}
		for key, v := range selector {
			set[key], _ = v.(string)
		}
		return set.String()
	}
	return scale
}

// templateSpec is where most kinds that make pods say what is in them.
var templateSpec = []string{"spec", "template", "spec"}

// workloadKinds are those of apps, batch, autoscaling and policy.
func workloadKinds() []kind {
	return []kind{
		deploymentKind(),
		replicaSetKind(),
		statefulSetKind(),
		daemonSetKind(),
		controllerRevisionKind(),
		jobKind(),
		cronJobKind(),
		autoscalerKind(),
		podDisruptionBudgetKind(),
	}
}

func deploymentKind() kind {
	return of[appsv1.Deployment](kind{
		group: appsV1, kind: "Deployment", podSpec: templateSpec, plural: "deployments", short: []string{"deploy"},
		categories: all,
		status:     true, generation: true, scale: replicas(),
		reaches: map[string]catalog.ResetFields{"status": except("spec", "metadata.labels")},
		rules: &catalog.Strategy{
			Cells: printed(deploymentCells), Default: defaultDeployment, PrepareUpdate: prepareDeploymentUpdate,
			UnconditionalUpdate: true,
		},
	})
}

func replicaSetKind() kind {
	return of[appsv1.ReplicaSet](kind{
		group: appsV1, kind: "ReplicaSet", podSpec: templateSpec, plural: "replicasets", short: []string{"rs"},
		categories: all,
		status:     true, generation: true, scale: replicas(),
		rules: &catalog.Strategy{Cells: printed(replicaSetCells), Default: defaultTemplate, UnconditionalUpdate: true},
	})
}

func statefulSetKind() kind {
	return of[appsv1.StatefulSet](kind{
		group: appsV1, kind: "StatefulSet", podSpec: templateSpec, plural: "statefulsets", short: []string{"sts"},
		categories: all,
		status:     true, generation: true, scale: replicas(),
		rules: &catalog.Strategy{
			Cells: printed(statefulSetCells), Default: defaultStatefulSet, PrepareCreate: prepareStatefulSetCreate,
			PrepareUpdate: prepareStatefulSetUpdate, ValidName: validation.NameIsDNSLabel, UnconditionalUpdate: true,
		},
	})
}

func daemonSetKind() kind {
	return of[appsv1.DaemonSet](kind{
		group: appsV1, kind: "DaemonSet", podSpec: templateSpec, plural: "daemonsets", short: []string{"ds"},
		categories: all,
		status:     true, generation: true,
		rules: &catalog.Strategy{
			Cells: printed(daemonSetCells), Default: defaultDaemonSet, PrepareCreate: prepareDaemonSetCreate,
			PrepareUpdate: prepareDaemonSetUpdate, UnconditionalUpdate: true,
		},
	})
}

func controllerRevisionKind() kind {
	return of[appsv1.ControllerRevision](kind{
		group: appsV1, kind: "ControllerRevision", plural: "controllerrevisions",
		rules: &catalog.Strategy{Cells: printed(controllerRevisionCells), UnconditionalUpdate: true},
	})
}

func jobKind() kind {
	return of[batchv1.Job](kind{
		group: batchV1, kind: "Job", podSpec: templateSpec, plural: "jobs", categories: all, status: true,
		generation: true,
		rules: &catalog.Strategy{Cells: printed(jobCells), Default: defaultJob, Read: separateLabels,
			PrepareCreate: prepareJobCreate, UnconditionalUpdate: true, Dependents: catalog.OrphanDependents,
			WarnDependents: podsStay,
			FieldLabels:    map[string]func(catalog.Object) string{"status.successful": countAt("status", "succeeded")},
			UnknownField:   "field label %q not supported for Job"},
	})
}

func cronJobKind() kind {
	return of[batchv1.CronJob](kind{
		group: batchV1, kind: "CronJob", podSpec: []string{"spec", "jobTemplate", "spec", "template", "spec"},
		plural: "cronjobs", short: []string{"cj"}, categories: all, status: true, generation: true,
		rules: &catalog.Strategy{Cells: printed(cronJobCells), Default: defaultCronJob, UnconditionalUpdate: true},
	})
}

func podDisruptionBudgetKind() kind {
	return of[policyv1.PodDisruptionBudget](kind{
		group: policyV1, kind: "PodDisruptionBudget", plural: "poddisruptionbudgets", short: []string{"pdb"},
		anyFinalizer: true, status: true, generation: true,
		form: budgetForm(),
		rules: &catalog.Strategy{
			Cells: printed(budgetCells), Default: defaultBudget, ValidName: nameIsSegment, MetadataLast: true,
		},
	})
}

// autoscalerKind is the one kind that has two versions with different fields.
func autoscalerKind() kind {
	k := of[autoscalingv2.HorizontalPodAutoscaler](kind{
		group: autoscalingV2, kind: "HorizontalPodAutoscaler", plural: "horizontalpodautoscalers",
		short: []string{"hpa"}, categories: all,
		status: true,
		rules: &catalog.Strategy{
			Default: defaultAutoscaler, UnconditionalUpdate: true, Cells: printed(autoscalerCells),
		},
	})
	older := of[autoscalingv1.HorizontalPodAutoscaler](kind{
		status: true,
		rules: &catalog.Strategy{
			Default: defaultOlderAutoscaler, UnconditionalUpdate: true, Cells: printed(olderAutoscalerCells),
		},
	})
	k.also = []*version{{name: "v1", rank: 15, new: older.new, rules: older.rules}}
	k.convert = convertAutoscaler
	return k
}
