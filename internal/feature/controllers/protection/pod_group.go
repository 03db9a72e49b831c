package protection

import (
	"bytes"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// newGroupProtection returns the protection of groups with pods that have not ended. Only admission gives groups the
// finalizer.
func newGroupProtection(h *part.Host) *protection {
	return &protection{
		Host: h, resource: ref.PodGroups.GroupResource(),
		prefix: "podgroups", finalizer: "scheduling.k8s.io/podgroup-protection", as: "podgroup-protection-controller",
		admitted: true, freed: groupsFreed, used: groupUsed,
	}
}

// groupsFreed requests the group of a pod that was deleted or has ended.
func groupsFreed(ev *watchcache.Event, need func(string)) {
	if ev.Collection.Prefix() != ref.Pods.Prefix {
		return
	}
	if ev.Type == watchcache.Deleted || ended(ev.Entry) {
		needGroup(ev.Entry, need)
	}
	if ev.Prev != nil && ev.Prev.UID != ev.Entry.UID { // deleted and recreated, seen as one change
		needGroup(ev.Prev, need)
	}
}

func needGroup(pod *watchcache.Entry, need func(string)) {
	if group := groupOf(pod); group != "" {
		need(pod.Namespace + "/" + group)
	}
}

// groupOf returns the group of a pod, or "" if it has none.
func groupOf(pod *watchcache.Entry) string {
	data := pod.JSON()
	if !bytes.Contains(data, []byte(`"podGroupName"`)) {
		return ""
	}
	var in struct {
		Spec struct {
			SchedulingGroup struct{ PodGroupName string }
		}
	}
	if json.Unmarshal(data, &in) != nil {
		return ""
	}
	return in.Spec.SchedulingGroup.PodGroupName
}

func groupUsed(v *watchcache.View, group *watchcache.Entry) bool {
	used := false
	v.Collection(ref.Pods.Prefix).Snapshot().Scan(group.Namespace, "", func(pod *watchcache.Entry) bool {
		used = !ended(pod) && groupOf(pod) == group.Name
		return !used
	})
	return used
}

func ended(pod *watchcache.Entry) bool {
	phase := corev1.PodPhase(field(pod, "status.phase"))
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}
