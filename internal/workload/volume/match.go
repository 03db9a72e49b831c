package volume

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	helper "k8s.io/component-helpers/storage/volume"
)

// match returns the volume for a claim, or nil if none fits: a volume reserved for it or, unless the claim waits for a
// pod, the smallest volume among the ones with the fewest access modes.
func match(
	claim *corev1.PersistentVolumeClaim, all []*corev1.PersistentVolume, waits bool,
) (*corev1.PersistentVolume, error) {
	groups := map[string][]*corev1.PersistentVolume{}
	var keys []string
	for _, v := range all {
		if !helper.CheckAccessModes(claim, v) {
			continue
		}
		modes := slices.Clone(v.Spec.AccessModes)
		slices.Sort(modes)
		key := fmt.Sprint(len(modes), modes)
		if groups[key] == nil {
			keys = append(keys, key)
		}
		groups[key] = append(groups[key], v)
	}
	slices.Sort(keys) // the number of modes is one digit
	for _, key := range keys {
		v, err := helper.FindMatchingVolume(claim, groups[key], nil, nil, waits, true)
		if v != nil || err != nil {
			return v, err
		}
	}
	return nil, nil
}

// satisfies returns why a claim cannot have the volume that it names, nil if it can.
func satisfies(v *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) error {
	size, wanted := v.Spec.Capacity[corev1.ResourceStorage], claim.Spec.Resources.Requests[corev1.ResourceStorage]
	switch {
	case v.DeletionTimestamp != nil:
		return fmt.Errorf("the volume is marked for deletion %q", v.Name)
	case size.Value() < wanted.Value():
		return errors.New("requested PV is too small")
	case helper.GetPersistentVolumeClass(v) != helper.GetPersistentVolumeClaimClass(claim):
		return errors.New("storageClassName does not match")
	case value(v.Spec.VolumeAttributesClassName) != value(claim.Spec.VolumeAttributesClassName):
		return errors.New("volumeAttributesClassName does not match")
	case helper.CheckVolumeModeMismatches(&claim.Spec, &v.Spec):
		return errors.New("incompatible volumeMode")
	case !helper.CheckAccessModes(claim, v):
		return errors.New("incompatible accessMode")
	}
	return nil
}

func value(s *string) string { return *cmp.Or(s, new("")) }
