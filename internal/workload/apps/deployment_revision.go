package apps

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Annotations of Deployments and their ReplicaSets.
const (
	revisionAnnotation = "deployment.kubernetes.io/revision"
	historyAnnotation  = "deployment.kubernetes.io/revision-history"
	// desiredAnnotation and maxAnnotation are how many replicas the Deployment had, and how many pods it might have,
	// when the ReplicaSet was scaled last.
	desiredAnnotation = "deployment.kubernetes.io/desired-replicas"
	maxAnnotation     = "deployment.kubernetes.io/max-replicas"
)

// longestHistory is how long the annotation with former revisions may become.
const longestHistory = 2000

// ownAnnotations are annotations that are not copied between a Deployment and its ReplicaSets.
var ownAnnotations = []string{
	corev1.LastAppliedConfigAnnotation, revisionAnnotation, historyAnnotation, desiredAnnotation, maxAnnotation,
	appsv1.DeprecatedRollbackTo,
}

func setAnnotation(meta *metav1.ObjectMeta, key, value string) {
	if meta.Annotations == nil {
		meta.Annotations = map[string]string{}
	}
	meta.Annotations[key] = value
}

// revisionOf returns the revision of a ReplicaSet, 0 if it has none that can be read.
func revisionOf(set *appsv1.ReplicaSet) int64 {
	n, _ := strconv.ParseInt(set.Annotations[revisionAnnotation], 10, 64)
	return n
}

// maxRevision returns the highest revision.
func maxRevision(sets []*appsv1.ReplicaSet) (most int64) {
	for _, s := range sets {
		most = max(most, revisionOf(s))
	}
	return most
}

// lastRevision returns the second highest revision.
func lastRevision(sets []*appsv1.ReplicaSet) int64 {
	var revisions []int64
	for _, s := range sets {
		revisions = append(revisions, revisionOf(s))
	}
	slices.Sort(revisions)
	if len(revisions) < 2 {
		return 0
	}
	return revisions[len(revisions)-2]
}

// Annotate copies the annotations of a Deployment to its ReplicaSet, sets the revision, and reports whether anything
// has changed. It records former revisions in the history annotation. exists is false for a ReplicaSet about to be
// created.
func Annotate(d *appsv1.Deployment, set *appsv1.ReplicaSet, revision int64, exists bool) (changed bool) {
	for k, v := range d.Annotations {
		if old, ok := set.Annotations[k]; !slices.Contains(ownAnnotations, k) && (!ok || old != v) {
			setAnnotation(&set.ObjectMeta, k, v)
			changed = true
		}
	}
	text, had := set.Annotations[revisionAnnotation]
	old, err := strconv.ParseInt(text, 10, 64)
	if err != nil && text != "" {
		return false // a client wrote it; leave it alone
	}
	if old < revision {
		setAnnotation(&set.ObjectMeta, revisionAnnotation, strconv.FormatInt(revision, 10))
		changed = true
		if had {
			rememberRevision(set, text)
		}
	}
	return !exists && annotateSize(d, set) || changed
}

// rememberRevision adds a revision to the history annotation of a ReplicaSet, and drops the oldest if there are too
// many.
func rememberRevision(set *appsv1.ReplicaSet, revision string) {
	history := set.Annotations[historyAnnotation]
	if history == "" {
		setAnnotation(&set.ObjectMeta, historyAnnotation, revision)
		return
	}
	history += "," + revision
	for len(history) > longestHistory {
		_, rest, found := strings.Cut(history, ",")
		if !found {
			return
		}
		history = rest
	}
	setAnnotation(&set.ObjectMeta, historyAnnotation, history)
}

// annotateSize records the size of the Deployment on a ReplicaSet, and reports whether it has changed.
func annotateSize(d *appsv1.Deployment, set *appsv1.ReplicaSet) (changed bool) {
	for key, n := range map[string]int32{
		desiredAnnotation: *d.Spec.Replicas, maxAnnotation: sum(*d.Spec.Replicas, maxSurge(d)),
	} {
		if text := fmt.Sprint(n); set.Annotations[key] != text {
			setAnnotation(&set.ObjectMeta, key, text)
			changed = true
		}
	}
	return changed
}

// count returns the number in an annotation, and whether there is one.
func count(set *appsv1.ReplicaSet, annotation string) (int32, bool) {
	n, err := strconv.ParseUint(set.Annotations[annotation], 10, 31)
	return int32(n), err == nil
}

// scaled reports whether the Deployment has another size than when its ReplicaSets were scaled.
func scaled(d *appsv1.Deployment, sets []*appsv1.ReplicaSet) bool {
	return slices.ContainsFunc(active(sets), func(s *appsv1.ReplicaSet) bool {
		n, ok := count(s, desiredAnnotation)
		return ok && n != *d.Spec.Replicas
	})
}

// rollbackRevision returns the revision in the rollback annotation of extensions/v1beta1.
func rollbackRevision(d *appsv1.Deployment) (int64, bool) {
	n, err := strconv.ParseInt(d.Annotations[appsv1.DeprecatedRollbackTo], 10, 64)
	return n, err == nil
}

// takeAnnotations copies the annotations of the restored ReplicaSet to the Deployment.
func takeAnnotations(d *appsv1.Deployment, set *appsv1.ReplicaSet) {
	taken := map[string]string{}
	for k, v := range d.Annotations {
		if slices.Contains(ownAnnotations, k) {
			taken[k] = v
		}
	}
	for k, v := range set.Annotations {
		if !slices.Contains(ownAnnotations, k) {
			taken[k] = v
		}
	}
	d.Annotations = taken
}

// surplusHistory returns the old ReplicaSets without pods beyond the history limit.
func surplusHistory(d *appsv1.Deployment, old []*appsv1.ReplicaSet) (out []*appsv1.ReplicaSet) {
	limit := d.Spec.RevisionHistoryLimit
	if limit == nil || *limit == math.MaxInt32 {
		return nil
	}
	var alive []*appsv1.ReplicaSet
	for _, s := range old {
		if s.DeletionTimestamp == nil {
			alive = append(alive, s)
		}
	}
	slices.SortStableFunc(alive, func(a, b *appsv1.ReplicaSet) int {
		return cmp.Or(cmp.Compare(revisionOf(a), revisionOf(b)), olderFirst(a, b))
	})
	for _, s := range alive[:max(0, len(alive)-int(*limit))] {
		if s.Status.Replicas == 0 && *s.Spec.Replicas == 0 && s.Generation <= s.Status.ObservedGeneration {
			out = append(out, s)
		}
	}
	return out
}
