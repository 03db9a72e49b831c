// Package protection keeps claims, volumes, classes of attributes and groups of pods from being deleted while something
// uses them.
package protection

import (
	"slices"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/part"
)

// Part brings the loops, that of groups of pods if their feature gate is open.
func Part(openGates []string) part.Part {
	return part.Part{Name: "protection of objects in use", Loops: []part.Loop{
		{
			Name: "persistentvolumeclaim-protection-controller", Workers: 1,
			New: func(h *part.Host) control.Reconciler { return newClaimProtection(h) },
		},
		{
			Name: "persistentvolume-protection-controller", Workers: 1,
			New: func(h *part.Host) control.Reconciler { return newVolumeProtection(h) },
		},
		{
			Name: "volumeattributesclass-protection-controller", Workers: 1,
			New: func(h *part.Host) control.Reconciler { return newAttributesProtection(h) },
		},
		{
			Name: "podgroup-protection-controller", Workers: 1,
			New: func(h *part.Host) control.Reconciler {
				if !slices.Contains(openGates, "GenericWorkload") {
					return nil
				}
				return newGroupProtection(h)
			},
		},
	}}
}
