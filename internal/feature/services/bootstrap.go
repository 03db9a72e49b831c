package services

import (
	"context"
	"fmt"
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/feature/services/address"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
)

var servicesResource = ref.Services.GroupResource()

// start creates the objects for services before the first request: the ServiceCIDR "kubernetes" for their addresses,
// the records of addresses and ports that an earlier version has not written, and the service "kubernetes", by which
// programs in a cluster find the server.
func (s *services) start(ctx context.Context) error {
	r := s.Verbs
	if _, err := s.View.Fresh(ctx); err != nil { // another replica may have created the objects
		return err
	}
	s.keepRange()
	if err := s.makeRange(ctx); err != nil {
		if !control.Refused(ctx, err) {
			return err
		}
		r.Log().Warn("the ServiceCIDR kubernetes cannot be written; retried", "error", err)
	}
	if err := restoreRecords(ctx, r); err != nil {
		return err
	}
	return bootstrapService(ctx, r, s.ranges[0], s.Port)
}

// makeRange creates the ServiceCIDR "kubernetes". It is ready at once, and not some time after the first request.
func (s *services) makeRange(ctx context.Context) error {
	err := bootstrapRange(ctx, s.Verbs, s.ranges)
	if err == nil && s.Runs(rangeController) {
		err = s.settleRange(ctx)
	}
	if err != nil {
		return fmt.Errorf("ServiceCIDR %s: %w", address.DefaultRange, err)
	}
	return nil
}

// restoreRecords writes missing records of the addresses and ports of services. It must finish before a client can
// request an address.
func restoreRecords(ctx context.Context, r *verb.Verbs) (err error) {
	r.View().Collection(ref.Services.Prefix).Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
		err = restoreRecordsOf(ctx, r, e.Namespace, e.Name)
		return err == nil
	})
	return err
}

func restoreRecordsOf(ctx context.Context, r *verb.Verbs, namespace, name string) error {
	call, err := r.Call(servicesResource, namespace, name, verb.ServerUser())
	if err == nil {
		err = r.Repair(ctx, call)
	}
	if err != nil {
		return fmt.Errorf("addresses of service %s/%s: %w", namespace, name, err)
	}
	return nil
}

func bootstrapService(ctx context.Context, r *verb.Verbs, services netip.Prefix, port int) error {
	const name, namespace = kubernetesService, metav1.NamespaceDefault
	there := func() bool { return r.View().Collection(ref.Services.Prefix).Snapshot().Get(namespace, name) != nil }
	if there() {
		return nil
	}
	call, err := r.Call(servicesResource, namespace, name, verb.ServerUser())
	if err != nil {
		return err
	}
	service, err := r.New(call, object.Object{
		"metadata": object.Object{
			"name": name, "namespace": namespace,
			"labels": object.Object{"component": "apiserver", "provider": "kubernetes"},
		},
		"spec": object.Object{
			"type": "ClusterIP", "sessionAffinity": "None", "clusterIP": address.First(services).String(),
			"ipFamilyPolicy": "SingleStack",
			"ports": []any{
				object.Object{"name": "https", "protocol": "TCP", "port": int64(443), "targetPort": int64(port)},
			},
		},
	})
	if err != nil {
		return fmt.Errorf("service %s: %w", name, err)
	}
	if _, err := r.Create(ctx, call, service, metav1.CreateOptions{FieldManager: "kube-apiserver"}); err != nil {
		if _, stale := r.View().Fresh(ctx); stale != nil {
			return stale
		}
		if !there() { // if another replica has created it meanwhile, its address is taken
			r.Log().Warn("the service kubernetes cannot be created; retried", "error", err)
		}
	}
	return nil
}
