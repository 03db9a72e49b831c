package scheduler

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	helper "k8s.io/component-helpers/storage/volume"
)

// disk returns a volume of a class in one zone.
func disk(name, class, zone string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{zone}},
				}}},
			}},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable},
	}
}

// open returns a claim of a class that waits for a pod.
func open(name, class string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		},
	}
}

// TestVolumes checks that a pod goes to a node where its volumes are, or can be created.
func TestVolumes(t *testing.T) {
	t.Parallel()
	classes := map[string]*storagev1.StorageClass{
		"local": {Provisioner: helper.NotSupportedProvisioner},
		"made":  {Provisioner: "example.com/disk"},
		"west": {Provisioner: "example.com/disk", AllowedTopologies: []corev1.TopologySelectorTerm{{
			MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: "zone", Values: []string{"west"}}},
		}}},
		"gone": nil,
	}
	selected := open("c", "made")
	selected.Annotations = map[string]string{helper.AnnSelectedNode: "b"}
	chosen := open("c", "local")
	chosen.Annotations = selected.Annotations
	type claims = []*corev1.PersistentVolumeClaim
	type disks = []*corev1.PersistentVolume
	const none = "0/3 nodes are available: 3 node(s) didn't find available persistent volumes to bind." + preempting +
		"0/3 nodes are available: 3 Preemption is not helpful for scheduling."
	for _, c := range []struct {
		name    string
		volumes volumes
		want    string // the node, or the reason that there is none
	}{
		{"bound in the west", volumes{bound: disks{disk("d", "", "west")}}, "c"},
		{"bound in two zones", volumes{bound: disks{disk("d", "", "west"), disk("e", "", "east")}},
			"0/3 nodes are available: 3 node(s) didn't match PersistentVolume's node affinity." + preempting +
				"0/3 nodes are available: 3 Preemption is not helpful for scheduling."},
		{"bound to nothing", volumes{bound: disks{nil}},
			"0/3 nodes are available: 3 node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)." + preempting +
				"0/3 nodes are available: 3 Preemption is not helpful for scheduling."},
		{"a volume that is there", volumes{open: claims{open("c", "local")},
			all: disks{disk("d", "local", "west")}}, "c"},
		{"one volume for two claims", volumes{open: claims{open("c", "local"), open("d", "local")},
			all: disks{disk("d", "local", "west")}}, none},
		{"two volumes for two claims", volumes{open: claims{open("c", "local"), open("d", "local")},
			all: disks{disk("d", "local", "west"), disk("e", "local", "west")}}, "c"},
		{"of another class", volumes{open: claims{open("c", "local")}, all: disks{disk("d", "made", "west")}}, none},
		{"made anywhere", volumes{open: claims{open("c", "made")}}, "a"},
		{"made in the west", volumes{open: claims{open("c", "west")}}, "c"},
		{"being made", volumes{open: claims{selected}}, "b"},
		{"chosen, and nothing makes it", volumes{open: claims{chosen}}, none},
		{"one bound in the west, one open", volumes{bound: disks{disk("d", "", "west")}, open: claims{open("c", "local")}},
			"0/3 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity, " +
				"3 node(s) didn't find available persistent volumes to bind." + preempting +
				"0/3 nodes are available: 3 Preemption is not helpful for scheduling."},
		{"of no class", volumes{open: claims{open("c", "gone")}}, none},
	} {
		m, p := cluster3(), pod("p", "1")
		c.volumes.classes = classes
		p.volumes = &c.volumes
		d := m.decide(p, func(string) map[string]string { return nil })
		if got := d.node + d.because; got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestPromise checks that a promise is kept when all claims are bound, and broken when one is to be bound elsewhere or
// has lost its volume.
func TestPromise(t *testing.T) {
	t.Parallel()
	type claims = []*corev1.PersistentVolumeClaim
	type disks = []*corev1.PersistentVolume
	on := func(node string) *corev1.PersistentVolumeClaim {
		c := open("c", "made")
		c.Annotations = map[string]string{helper.AnnSelectedNode: node}
		return c
	}
	reserved := disk("d", "local", "west")
	reserved.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "c"}
	for _, c := range []struct {
		name        string
		volumes     volumes
		all, broken bool
	}{
		{"all bound", volumes{}, true, false},
		{"without its volume", volumes{bound: disks{nil}}, true, true},
		{"being made", volumes{open: claims{on("a")}}, false, false},
		{"being made elsewhere", volumes{open: claims{on("b")}}, false, true},
		{"reserved", volumes{open: claims{open("c", "local")}, all: disks{reserved}}, false, false},
		{"not reserved", volumes{open: claims{open("e", "local")}, all: disks{reserved}}, false, true},
	} {
		if all, broken := c.volumes.satisfied("a"); all != c.all || broken != c.broken {
			t.Errorf("%s: %v, %v", c.name, all, broken)
		}
	}
}
