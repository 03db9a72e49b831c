package apps

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/kinds/pod"
	"github.com/bowsprit/bowsprit/internal/kinds/rule"
)

func replicaSetKind() rule.Kind {
	return rule.Of[appsv1.ReplicaSet](rule.Kind{
		Group: appsV1, Kind: "ReplicaSet", DropGated: pod.DropGatedAt("spec", "template", "spec"),
		Plural: "replicasets", Short: []string{"rs"},
		Categories: rule.CategoryAll,
		Status:     true, Generation: true, Scale: pod.Replicas(),
		Strategy: &catalog.Strategy{
			Cells: rule.Printed(replicaSetCells), Default: pod.DefaultTemplate, UnconditionalUpdate: true,
		},
		Warn: warnNamedWorkload,
	})
}

func replicaSetCells(rs *appsv1.ReplicaSet, e catalog.Env) []any {
	names, images := pod.ContainerNames(rs.Spec.Template.Spec.Containers)
	return []any{
		rs.Name, int64(rule.Deref(rs.Spec.Replicas, 0)), int64(rs.Status.Replicas), int64(rs.Status.ReadyReplicas),
		rule.Ago(rs.CreationTimestamp, e), names, images, metav1.FormatLabelSelector(rs.Spec.Selector),
	}
}
