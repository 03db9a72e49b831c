// Package protection keeps claims, volumes, classes of attributes and groups of pods from being deleted while something
// uses them. It also reports since when claims are unused.
package protection

import (
	"slices"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/part"
)

// Part returns the loops. The gates decide on the condition Unused of claims and on the loop for groups of pods.
func Part(openGates []string) part.Part {
	return part.Part{Name: "protection of objects in use", Loops: []part.Loop{
		{
			Name: "persistentvolumeclaim-protection-controller", Workers: 1,
			New: func(h *part.Host) control.Reconciler {
				if !slices.Contains(openGates, unusedGate) {
					return newClaimProtection(h)
				}
				return &claimUsage{protection: newClaimProtection(h)}
			},
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
