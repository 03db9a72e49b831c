package apps

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestAllOutdated checks the pods that a rolling update deletes next. A letter is a pod, by ordinal: o and n are
// available with the old and the new revision, O and N unavailable, x and y being deleted, - missing.
func TestAllOutdated(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pods      string
		most      string // maxUnavailable
		partition int32
		parallel  bool
		want      string
	}{
		{pods: "ooooo", want: "4"},
		{pods: "ooooo", most: "2", want: "4 3"},
		{pods: "ooooo", most: "9", want: "4 3 2 1 0"},
		{pods: "ooooo", most: "59%", want: "4 3"},
		{pods: "ooooo", most: "1%", want: "4"},
		{pods: "ooooo", most: "9", partition: 3, want: "4 3"},
		{pods: "ooonn", most: "2", want: "2 1"},
		{pods: "ooonN", most: "2", want: "2"},
		{pods: "oooN-", most: "2", want: ""},
		{pods: "ooox-", most: "3", want: "2"},
		{pods: "Oooon", most: "2", partition: 2, want: "3"},
		{pods: "oooOo", most: "2", want: "4"},
		// A parallel set replaces its broken pods first, whatever their number.
		{pods: "ooOOo", most: "1", parallel: true, want: "3 2"},
		{pods: "ooOoo", most: "2", parallel: true, want: "2 4"},
		{pods: "oOOoN", most: "1", parallel: true, partition: 2, want: "2"},
		{pods: "ooxoy", most: "3", parallel: true, want: "3"},
		{pods: "nnnnn", most: "5", parallel: true, want: ""},
	} {
		r := look(3, int32(len(test.pods)))
		r.update.Name = "new"
		r.set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: &test.partition}
		if test.most != "" {
			most := intstr.Parse(test.most)
			r.set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = &most
		}
		if test.parallel {
			r.set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
		}
		var pods []*corev1.Pod
		for i, letter := range test.pods {
			p := podOf(i + 3)
			p.Labels = map[string]string{appsv1.StatefulSetRevisionLabel: "old"}
			if strings.ContainsRune("nNy", letter) {
				p.Labels[appsv1.StatefulSetRevisionLabel] = "new"
			}
			if strings.ContainsRune("onxy", letter) {
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			}
			if strings.ContainsRune("xy", letter) {
				p.DeletionTimestamp = &metav1.Time{}
			}
			if letter == '-' {
				p.Status.Phase = ""
			}
			pods = append(pods, p)
		}
		var got []string
		for _, p := range r.allOutdated(pods) {
			_, n := ordinal(p)
			got = append(got, string(rune('0'+n-3)))
		}
		if !slices.Equal(got, strings.Fields(test.want)) {
			t.Errorf("%+v: deletes %q", test, got)
		}
	}
}
