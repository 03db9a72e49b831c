package protection

import (
	"bytes"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// newClaimProtection keeps claims that pods on nodes use.
func newClaimProtection(h *part.Host) *protection {
	return &protection{
		Host: h, resource: ref.PersistentVolumeClaims.GroupResource(), prefix: ref.PersistentVolumeClaims.Prefix,
		finalizer: "kubernetes.io/pvc-protection",
		as:        "pvc-protection-controller", freed: claimsFreed, used: claimUsed,
	}
}

// newVolumeProtection returns the protection of bound volumes.
func newVolumeProtection(h *part.Host) *protection {
	return &protection{
		Host: h, resource: ref.PersistentVolumes.GroupResource(), prefix: ref.PersistentVolumes.Prefix,
		finalizer: "kubernetes.io/pv-protection",
		as:        "pv-protection-controller",
		used: func(_ *watchcache.View, e *watchcache.Entry) bool {
			return field(e, "status.phase") == string(corev1.VolumeBound)
		},
	}
}

// newAttributesProtection keeps the classes of attributes that claims and volumes name.
func newAttributesProtection(h *part.Host) *protection {
	return &protection{
		Host: h, resource: ref.VolumeAttributesClasses.GroupResource(),
		prefix:    "volumeattributesclasses",
		finalizer: "kubernetes.io/vac-protection", as: "volumeattributesclass-protection-controller",
		freed: attributesFreed, used: attributesUsed,
	}
}

// claimsFreed requests the claims of a pod that was deleted or has ended on its node.
func claimsFreed(ev *watchcache.Event, need func(string)) {
	if ev.Collection.Prefix() != ref.Pods.Prefix {
		return
	}
	pod := ev.Entry
	switch {
	case ev.Type == watchcache.Deleted || pod.Deleting:
	case ev.Prev != nil && ev.Prev.UID != pod.UID: // deleted and recreated, seen as one change
		pod = ev.Prev
	default:
		return
	}
	for _, v := range volumesOf(pod) {
		need(pod.Namespace + "/" + v.claim)
	}
}

// volume is a pod volume with a claim.
type volume struct {
	claim string
	own   bool // created for this pod
}

func volumesOf(pod *watchcache.Entry) []volume {
	data := pod.JSON()
	if !bytes.Contains(data, []byte(`"persistentVolumeClaim"`)) && !bytes.Contains(data, []byte(`"ephemeral"`)) {
		return nil
	}
	var in struct {
		Spec struct {
			Volumes []struct {
				Name                  string
				PersistentVolumeClaim *struct{ ClaimName string }
				Ephemeral             *struct{}
			}
		}
	}
	if json.Unmarshal(data, &in) != nil {
		return nil
	}
	var out []volume
	for _, v := range in.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			out = append(out, volume{v.PersistentVolumeClaim.ClaimName, false})
		case v.Ephemeral != nil:
			out = append(out, volume{pod.Name + "-" + v.Name, true})
		}
	}
	return out
}

// claimUsed reports whether a pod on a node uses the claim. A pod without a node will not start any more. An ephemeral
// claim is no longer used once the pod has ended on its node, even if the pod still exists.
func claimUsed(v *watchcache.View, claim *watchcache.Entry) bool {
	used := false
	v.Collection(ref.Pods.Prefix).Snapshot().Scan(claim.Namespace, "", func(pod *watchcache.Entry) bool {
		used = field(pod, "spec.nodeName") != "" && slices.ContainsFunc(volumesOf(pod), func(v volume) bool {
			return v.claim == claim.Name && (!v.own || !shutDown(pod) && controlledBy(claim, pod.UID))
		})
		return !used
	})
	return used
}

// shutDown reports whether a pod's node is done with it: it only waits to be removed.
func shutDown(pod *watchcache.Entry) bool {
	return pod.Deleting && field(pod, "metadata.deletionGracePeriodSeconds") == "0"
}

func controlledBy(e *watchcache.Entry, uid string) bool {
	var obj metav1.PartialObjectMetadata
	if json.Unmarshal(e.JSON(), &obj) != nil {
		return false
	}
	owner := metav1.GetControllerOfNoCopy(&obj)
	return owner != nil && string(owner.UID) == uid
}

// attributesFreed names the classes that a claim or a volume no longer names.
func attributesFreed(ev *watchcache.Event, need func(string)) {
	if p := ev.Collection.Prefix(); p != ref.PersistentVolumeClaims.Prefix && p != ref.PersistentVolumes.Prefix {
		return
	}
	now := attributesOf(ev.Entry)
	switch {
	case ev.Type == watchcache.Deleted:
		for _, name := range now {
			need(name)
		}
	case ev.Prev != nil:
		for _, name := range attributesOf(ev.Prev) {
			if !slices.Contains(now, name) {
				need(name)
			}
		}
	}
}

// attributesOf returns the classes of attributes that a claim or a volume names.
func attributesOf(e *watchcache.Entry) []string {
	var in struct {
		Spec   struct{ VolumeAttributesClassName string }
		Status struct {
			CurrentVolumeAttributesClassName string
			ModifyVolumeStatus               struct{ TargetVolumeAttributesClassName string }
		}
	}
	if json.Unmarshal(e.JSON(), &in) != nil {
		return nil
	}
	return slices.DeleteFunc([]string{
		in.Spec.VolumeAttributesClassName, in.Status.CurrentVolumeAttributesClassName,
		in.Status.ModifyVolumeStatus.TargetVolumeAttributesClassName,
	}, func(name string) bool { return name == "" })
}

func attributesUsed(v *watchcache.View, class *watchcache.Entry) bool {
	used := false
	for _, prefix := range []string{ref.PersistentVolumes.Prefix, ref.PersistentVolumeClaims.Prefix} {
		v.Collection(prefix).Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
			used = used || slices.Contains(attributesOf(e), class.Name)
			return !used
		})
	}
	return used
}

func field(e *watchcache.Entry, path string) string {
	value, _ := e.Field(path)
	return value
}
