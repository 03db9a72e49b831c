package controllers

import (
	"context"
	"fmt"
	"net/netip"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/catalog"
	"github.com/bowsprit/bowsprit/internal/rest"
)

// BootstrapService makes the service "kubernetes", by which programs in a cluster find the server. services is where
// services have their addresses, and port is the server's own. It has no endpoints: nothing forwards to them.
func BootstrapService(ctx context.Context, r *rest.Server, services netip.Prefix, port int) error {
	const name, namespace = "kubernetes", "default"
	if r.View.Collection("services/specs").Snapshot().Get(namespace, name) != nil {
		return nil
	}
	call, err := r.Call(catalog.GroupResource{Resource: "services"}, namespace, name, identity("bootstrap"))
	if err != nil {
		return err
	}
	address, family := services.Masked().Addr().Next(), "IPv4"
	if address.Is6() {
		family = "IPv6"
	}
	service, err := r.New(call, rest.Object{
		"metadata": rest.Object{"name": name, "namespace": namespace, "labels": rest.Object{"component": "apiserver", "provider": "kubernetes"}},
		"spec": rest.Object{
			"type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
			"clusterIP": address.String(), "clusterIPs": []any{address.String()}, "ipFamilies": []any{family}, "ipFamilyPolicy": "SingleStack",
			"ports": []any{rest.Object{"name": "https", "protocol": "TCP", "port": int64(443), "targetPort": int64(port)}},
		},
	})
	if err != nil {
		return fmt.Errorf("service %s: %w", name, err)
	}
	if _, err := r.Create(ctx, call, service, metav1.CreateOptions{FieldManager: "kube-apiserver"}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("service %s: %w", name, err)
	}
	return nil
}
