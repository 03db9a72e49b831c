// Package podgc removes the pods that no kubelet will remove: kube's pod garbage collector.
package podgc

import (
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/part"
)

// Part brings the loop.
func Part() part.Part {
	return part.Part{Name: "pod collector", Loops: []part.Loop{
		{
			Name: "pod-garbage-collector-controller", Workers: 1,
			New: func(h *part.Host) control.Reconciler { return newPodCollector(h) },
		},
	}}
}
