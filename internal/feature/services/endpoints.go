package services

import (
	"context"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/convert"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/feature/replicas/presence"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/store"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// EndpointReconciler maintains the endpoints of the service "kubernetes": it adds this server, and removes terminated
// ones. Servers that share an etcd find each other by keys that expire, as kube-apiservers do
// (--endpoint-reconciler-type=lease).
type EndpointReconciler struct {
	Verbs *verb.Verbs
	// Store holds the keys by which servers find each other, which are not objects.
	Store   *store.Store
	Storing *convert.Storing
	// Address and Port are where others reach the server.
	Address netip.Addr
	Port    int
}

var (
	endpointsResource = ref.Endpoints.GroupResource()
	slicesResource    = ref.EndpointSlices.GroupResource()
)

const (
	kubernetesService = "kubernetes"
	// withdrawTimeout bounds the wait for etcd at the end of a server.
	withdrawTimeout = 3 * time.Second
)

// Run announces the server every ten seconds, until ctx ends; then it withdraws.
func (p *EndpointReconciler) Run(ctx context.Context) {
	tick := time.NewTicker(presence.Every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := p.Announce(ctx); err != nil && ctx.Err() == nil {
				p.Verbs.Log().Warn("the endpoints of the service kubernetes are not up to date", "error", err)
			}
		case <-ctx.Done():
			if err := p.withdraw(context.WithoutCancel(ctx)); err != nil {
				p.Verbs.Log().Info("this server is still among the endpoints of the service kubernetes", "error", err)
			}
			return
		}
	}
}

// Announce sets the endpoints to all running servers, including this one.
func (p *EndpointReconciler) Announce(ctx context.Context) error {
	if err := p.sign(ctx); err != nil {
		return fmt.Errorf("key of this server: %w", err)
	}
	return p.publish(ctx, p.servers())
}

// withdraw removes the server from the endpoints. With an etcd of its own the server is the only one, and stays listed.
func (p *EndpointReconciler) withdraw(ctx context.Context) error {
	was, err := p.presence().Withdraw(ctx)
	if err != nil || !was {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, withdrawTimeout)
	defer cancel()
	return p.publish(ctx, slices.DeleteFunc(p.servers(), func(ip string) bool { return ip == p.Address.String() }))
}

// sign writes the server's key.
func (p *EndpointReconciler) sign(ctx context.Context) error {
	return p.presence().Sign(ctx, nil,
		object.Object{"addresses": []any{object.Object{"ip": p.Address.String()}}})
}

func (p *EndpointReconciler) presence() presence.Key {
	return presence.Key{
		View: p.Verbs.View(), Store: p.Store, Storing: p.Storing, Prefix: presence.Endpoints, Name: p.Address.String(),
	}
}

// servers returns the sorted addresses of the servers with a key, including this one.
func (p *EndpointReconciler) servers() []string {
	ips := []string{p.Address.String()}
	p.Verbs.View().Collection(presence.Endpoints).Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
		if e.Name != ips[0] {
			ips = append(ips, e.Name)
		}
		return true
	})
	slices.Sort(ips)
	return ips
}

// publish writes the Endpoints and the EndpointSlice of the service. Existing ports stay while there are addresses.
func (p *EndpointReconciler) publish(ctx context.Context, ips []string) error {
	ports := []any{object.Object{"name": "https", "port": int64(p.Port), "protocol": "TCP"}}
	if old, err := p.stored(endpointsResource); err != nil {
		return err
	} else if subsets, _ := old["subsets"].([]any); len(subsets) == 1 && p.Store.Shared() {
		if subset, _ := subsets[0].(object.Object); len(ips) > 1 && subset["ports"] != nil {
			ports = subset["ports"].([]any)
		}
	}
	var addresses, targets, subsets []any
	for _, ip := range ips {
		addresses = append(addresses, object.Object{"ip": ip})
		targets = append(targets, object.Object{"addresses": []any{ip}, "conditions": object.Object{"ready": true}})
	}
	if len(ips) > 0 {
		subsets = []any{object.Object{"addresses": addresses, "ports": ports}}
	} else {
		ports = nil
	}
	kind := "IPv4"
	if p.Address.Is6() {
		kind = "IPv6"
	}
	err := p.write(ctx, endpointsResource, discoveryv1.LabelSkipMirror, "true", object.Object{"subsets": subsets})
	if err == nil {
		err = p.write(ctx, slicesResource, discoveryv1.LabelServiceName, kubernetesService,
			object.Object{"addressType": kind, "endpoints": targets, "ports": ports})
	}
	return err
}

// write creates the object "kubernetes" of a resource, or updates its fields if they differ.
func (p *EndpointReconciler) write(
	ctx context.Context, gr catalog.GroupResource, label, value string, fields object.Object,
) error {
	call, err := p.Verbs.Call(gr, metav1.NamespaceDefault, kubernetesService, verb.ServerUser())
	if err != nil {
		return err
	}
	merge := func(obj object.Object) object.Object {
		meta, _ := obj["metadata"].(object.Object)
		labels, _ := meta["labels"].(object.Object)
		if labels == nil {
			labels = object.Object{}
			meta["labels"] = labels
		}
		labels[label] = value
		for name, v := range fields {
			if list, ok := v.([]any); ok && len(list) == 0 {
				delete(obj, name)
				continue
			}
			obj[name] = v
		}
		return obj
	}
	old, err := p.stored(gr)
	if err != nil {
		return err
	}
	if old == nil {
		obj, err := p.Verbs.New(call,
			merge(object.Object{
				"metadata": object.Object{"name": kubernetesService, "namespace": metav1.NamespaceDefault},
			}))
		if err != nil {
			return err
		}
		_, err = p.Verbs.Create(ctx, call, obj, metav1.CreateOptions{FieldManager: "kube-apiserver"})
		return control.IgnoreExists(err)
	}
	if before, err := p.stored(gr); err != nil || reflect.DeepEqual(before, merge(old)) {
		return err
	}
	_, err = p.Verbs.Update(ctx, call, metav1.UpdateOptions{FieldManager: "kube-apiserver"},
		func(obj object.Object) (object.Object, error) {
			return p.Verbs.New(call, merge(obj))
		})
	return err
}

// stored returns the stored object "kubernetes" of a resource, or nil if there is none.
func (p *EndpointReconciler) stored(gr catalog.GroupResource) (object.Object, error) {
	r := p.Verbs.Catalog().Snapshot().Resource(gr.Group, gr.Resource)
	e := p.Verbs.View().Collection(r.Prefix).Snapshot().Get(metav1.NamespaceDefault, kubernetesService)
	if e == nil {
		return nil, nil
	}
	v, err := codec.DecodeJSON(e.JSON())
	obj, _ := v.(object.Object)
	return obj, err
}
