// Package protection keeps claims, volumes and classes of attributes from being deleted while something uses them.
package protection

import (
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/part"
)

// Part brings the three loops.
func Part() part.Part {
	return part.Part{Name: "storage protection", Loops: []part.Loop{
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
	}}
}
