// Package services implements the parts of services other than their allocation: the ServiceCIDRs of their addresses,
// the records of addresses and ports, and the service "kubernetes" with its endpoints.
//
// It is a part: loops that write through the verbs, and objects that are created before the first request and recreated
// when a client deletes them. Source: pkg/controlplane, pkg/registry/core/service/ipallocator/controller and
// pkg/controller/servicecidrs of Kubernetes 1.36.
package services

import (
	"context"
	"errors"
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/part"
)

// Settings are the server's settings for services.
type Settings struct {
	// Ranges are the networks of --service-cluster-ip-range. The first is the default family's.
	Ranges []netip.Prefix
	// Keep is true if a cluster that exists keeps its range, if it has one range of the same family.
	Keep bool
	// Advertised returns the address of the server for others, or the reason that there is none.
	Advertised func() (netip.Addr, error)
}

// services is the part of one server.
type services struct {
	*part.Host
	ranges []netip.Prefix
	keeps  bool // the stored range replaces ranges
}

// Part brings the loops and objects of services.
func Part(c Settings) part.Part {
	return part.Part{
		Name: "services",
		Loops: []part.Loop{
			{
				Name: repairController, Always: true, Workers: 1,
				New: func(h *part.Host) control.Reconciler { return &allocationRepair{h} },
			},
			{
				Name: rangeController, Workers: 1,
				New: func(h *part.Host) control.Reconciler { return &serviceRanges{h} },
			},
		},
		Start: func(ctx context.Context, h *part.Host) error {
			if err := (&services{h, c.Ranges, c.Keep}).start(ctx); err != nil {
				return err
			}
			announce(ctx, h, c.Advertised)
			return nil
		},
		Keep: func(ctx context.Context, h *part.Host) error { return (&services{h, c.Ranges, c.Keep}).keep(ctx) },
	}
}

// keep recreates the objects of start after a client has deleted them. This is also the way to change the range of a
// cluster: the administrator starts the server with a new flag and deletes the old ServiceCIDR.
func (s *services) keep(ctx context.Context) (err error) {
	s.keepRange()
	if !rangeSettled(s.Verbs, s.ranges) {
		err = s.makeRange(ctx)
	}
	if s.View.Collection(ref.Services.Prefix).Snapshot().Get(metav1.NamespaceDefault, kubernetesService) == nil {
		err = errors.Join(err, bootstrapService(ctx, s.Verbs, s.ranges[0], s.Port))
	}
	return err
}

// announce makes the server an endpoint of the service "kubernetes" while it runs.
func announce(ctx context.Context, h *part.Host, advertised func() (netip.Addr, error)) {
	ip, err := advertised()
	if err != nil || h.Port == 0 {
		h.Log.Info("the service kubernetes gets no endpoint: name one with --advertise-address", "error", err)
		return
	}
	ctx, cancel := h.Starting(ctx)
	defer cancel()
	endpoints := &EndpointReconciler{
		Verbs: h.Verbs, Store: h.Store, Storing: h.Storing, Address: ip, Port: h.Port,
	}
	if err := endpoints.Announce(ctx); err != nil {
		h.Log.Warn("the endpoints of the service kubernetes are not up to date; retried every 10 seconds", "error", err)
	}
	h.Background(func(ctx context.Context) error { endpoints.Run(ctx); return nil })
}
