package volume

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var modes = map[string]corev1.PersistentVolumeAccessMode{
	"o": corev1.ReadWriteOnce, "r": corev1.ReadOnlyMany, "m": corev1.ReadWriteMany,
}

func parseModes(text string) (out []corev1.PersistentVolumeAccessMode) {
	for _, m := range text {
		out = append(out, modes[string(m)])
	}
	return out
}

// parse makes a volume from its name, size, access modes, class and the claim that it is reserved for.
func parse(text string) *corev1.PersistentVolume {
	f := append(strings.Split(text, " "), "", "")
	v := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: f[0], Labels: map[string]string{"name": f[0]}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(f[1])},
			AccessModes: parseModes(f[2]), StorageClassName: strings.Trim(f[3], "-"),
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable},
	}
	if f[4] != "" {
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: f[4]}
	}
	return v
}

// TestMatch checks that a claim gets its reserved volume, or else the smallest one that fits with the fewest modes.
func TestMatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		modes, class, selects string
		waits                 bool
		volumes, want         string
	}{
		{"o", "", "", false, "a 3Gi o|b 2Gi o|c 1Mi o", "b"},
		{"o", "", "", false, "a 1Gi om|b 5Gi o", "b"},
		{"om", "", "", false, "a 1Gi o|b 5Gi omr|c 6Gi om", "c"},
		{"m", "", "", false, "a 1Gi o", ""},
		{"o", "fast", "", false, "a 1Gi o|b 2Gi o fast", "b"},
		{"o", "", "b", false, "a 1Gi o|b 2Gi o", "b"},
		{"o", "", "", false, "a 1Gi o|b 2Gi o - claim", "b"},
		{"o", "", "", false, "a 1Gi o - other|b 2Gi o", "b"},
		{"o", "", "", true, "a 1Gi o", ""},
		{"o", "", "", true, "a 1Gi o|b 2Gi o - claim", "b"},
	} {
		claim := &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "claim"},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: parseModes(c.modes), StorageClassName: &c.class,
				Resources: corev1.VolumeResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
				},
			},
		}
		if c.selects != "" {
			claim.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"name": c.selects}}
		}
		var all []*corev1.PersistentVolume
		for _, text := range strings.Split(c.volumes, "|") {
			all = append(all, parse(text))
		}
		got := ""
		v, err := match(claim, all, c.waits)
		if v != nil {
			got = v.Name
		}
		if err != nil || got != c.want {
			t.Errorf("%+v: %q (%v)", c, got, err)
		}
	}
}

// TestSatisfies checks the errors for a claim that names an unsuitable volume.
func TestSatisfies(t *testing.T) {
	t.Parallel()
	block := corev1.PersistentVolumeBlock
	for _, c := range []struct {
		change func(*corev1.PersistentVolume)
		want   string
	}{
		{func(*corev1.PersistentVolume) {}, "<nil>"},
		{func(v *corev1.PersistentVolume) { v.DeletionTimestamp = &metav1.Time{} },
			`the volume is marked for deletion "v"`},
		{func(v *corev1.PersistentVolume) { v.Spec.Capacity = nil }, "requested PV is too small"},
		{func(v *corev1.PersistentVolume) { v.Spec.StorageClassName = "x" }, "storageClassName does not match"},
		{func(v *corev1.PersistentVolume) { v.Spec.VolumeAttributesClassName = new("x") },
			"volumeAttributesClassName does not match"},
		{func(v *corev1.PersistentVolume) { v.Spec.VolumeMode = &block }, "incompatible volumeMode"},
		{func(v *corev1.PersistentVolume) { v.Spec.AccessModes = parseModes("r") }, "incompatible accessMode"},
	} {
		claim := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: parseModes("o"), Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		}}
		v := parse("v 1Gi o")
		c.change(v)
		if got := fmt.Sprint(satisfies(v, claim)); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}
