package apps

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// revisionHashLabel is the label with the hash in the name of a StatefulSet's revision.
const revisionHashLabel = "controller.kubernetes.io/hash"

// RevisionData returns the data of a ControllerRevision for a template: a strategic merge patch that restores it.
func RevisionData(template *corev1.PodTemplateSpec) ([]byte, error) {
	data, err := json.Marshal(template)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, err
	}
	fields["$patch"] = "replace"
	return json.Marshal(map[string]any{"spec": map[string]any{"template": fields}})
}

// templateOf returns the template that a ControllerRevision holds.
func templateOf(r *appsv1.ControllerRevision) (corev1.PodTemplateSpec, error) {
	var patch struct {
		Spec struct{ Template corev1.PodTemplateSpec }
	}
	if err := json.Unmarshal(r.Data.Raw, &patch); err != nil {
		return corev1.PodTemplateSpec{}, fmt.Errorf("read the template of revision %s: %w", r.Name, err)
	}
	return patch.Spec.Template, nil
}

// RevisionHash returns the hash in the name of a StatefulSet's revision. collisions is the number of name collisions so
// far.
func RevisionHash(data []byte, collisions int32) string {
	h := fnv.New32()
	_, _ = h.Write(data)
	_, _ = h.Write([]byte(strconv.FormatInt(int64(collisions), 10)))
	return rand.SafeEncodeString(fmt.Sprint(h.Sum32()))
}

// RevisionName returns the name of an object's revision.
func RevisionName(of, hash string) string { return of[:min(len(of), 223)] + "-" + hash }

// newRevision returns the revision of a StatefulSet's template.
func newRevision(
	set *appsv1.StatefulSet, ref metav1.OwnerReference, number int64, collisions int32,
) (*appsv1.ControllerRevision, error) {
	data, err := RevisionData(&set.Spec.Template)
	if err != nil {
		return nil, err
	}
	hash := RevisionHash(data, collisions)
	labels := with(set.Spec.Template.Labels, revisionHashLabel, hash)
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: set.Namespace, Name: RevisionName(set.Name, hash), Labels: labels,
			Annotations: maps.Clone(set.Annotations), OwnerReferences: []metav1.OwnerReference{ref},
		},
		Data: runtime.RawExtension{Raw: data}, Revision: number,
	}, nil
}

// byRevision sorts revisions, the oldest first.
func byRevision(list []*appsv1.ControllerRevision) {
	slices.SortStableFunc(list, func(a, b *appsv1.ControllerRevision) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Name, b.Name))
	})
}

// deleteRevision deletes a revision; a missing one is no error.
func deleteRevision(ctx context.Context, c *cluster.Cluster, r *appsv1.ControllerRevision) error {
	return control.IgnoreNotFound(cluster.ControllerRevisions.Delete(ctx, c, r, metav1.DeleteOptions{}))
}
