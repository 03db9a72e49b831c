package services

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/feature/services/address"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// allocationRepair keeps the records equal to the addresses and ports of services, after changes by hand: it recreates
// deleted records, and deletes records of no service. This is the work of kube-apiserver's repair loops. Their other
// half, addresses that were reserved and not used, does not occur here except for the second of two addresses.
//
// It also deletes the Endpoints of a deleted service, as kube-apiserver does, so that a later service of the name does
// not inherit them.
//
// Its keys are "service namespace/name", "record prefix/name" and "endpoints namespace/name".
type allocationRepair struct {
	*part.Host
}

// repairController is the controller's name, kube's.
const repairController = "ipallocator-repair-controller"

var addressesResource = ref.IPAddresses.GroupResource()

// leakedFor is how long a record may precede its service: as long as a request can last.
const leakedFor = time.Minute

func (r *allocationRepair) Observe(ev *watchcache.Event, need func(string)) {
	prefix := ev.Collection.Prefix()
	if prefix == ref.Services.Prefix && ev.Type == watchcache.Deleted {
		need("endpoints " + ev.Entry.Key())
	}
	if prefix == ref.Services.Prefix && ev.Type == watchcache.Added &&
		!bytes.Contains(ev.Entry.JSON(), []byte(`"clusterIPs"`)) {
		need("service " + ev.Entry.Key()) // an older server has stored it, or there is nothing to do
	}
	if prefix != ref.IPAddresses.Prefix && prefix != address.PortsPrefix {
		return
	}
	if ev.Type != watchcache.Deleted {
		need("record " + prefix + "/" + ev.Entry.Name)
		return
	}
	if owner, _, err := ownerOf(ev.Entry); err == nil && owner.Resource == servicesResource.Resource {
		need("service " + owner.Namespace + "/" + owner.Name)
	}
}

func (r *allocationRepair) Sweep(need func(string)) {
	for _, prefix := range []string{ref.IPAddresses.Prefix, address.PortsPrefix} {
		r.View.Collection(prefix).Snapshot().Scan("", "", func(e *watchcache.Entry) bool {
			need("record " + prefix + "/" + e.Name)
			return true
		})
	}
}

func (r *allocationRepair) Reconcile(ctx context.Context, key string) error {
	kind, name, _ := strings.Cut(key, " ")
	first, last, _ := strings.Cut(name, "/")
	switch kind {
	case "service":
		return restoreRecordsOf(ctx, r.Verbs, first, last)
	case "endpoints":
		return r.deleteEndpoints(ctx, first, last)
	}
	e := r.View.Collection(first).Snapshot().Get("", last)
	if e == nil || first == ref.IPAddresses.Prefix && e.Labels[networkingv1.LabelManagedBy] != address.ManagedBy {
		return nil
	}
	owner, made, err := ownerOf(e)
	if err != nil {
		return err
	}
	if stray, err := r.stray(owner, first, last); err != nil || !stray {
		return err
	}
	if left := leakedFor - r.Now().Sub(made); left > 0 && first == ref.IPAddresses.Prefix {
		return control.Again(left)
	}
	r.Log.Warn("a record of an address or port belongs to no service; it is deleted", "key", name)
	if first == address.PortsPrefix {
		return r.Verbs.Free(ctx, first, last, e.Revision)
	}
	call, err := r.Verbs.Call(addressesResource, "", last, verb.ServerUser())
	if err == nil {
		_, err = r.Verbs.Delete(ctx, call, metav1.DeleteOptions{})
	}
	return control.IgnoreNotFound(err)
}

// deleteEndpoints deletes the Endpoints of a deleted service.
func (r *allocationRepair) deleteEndpoints(ctx context.Context, namespace, name string) error {
	if r.View.Collection(ref.Services.Prefix).Snapshot().Get(namespace, name) != nil {
		return nil
	}
	call, err := r.Verbs.Call(endpointsResource, namespace, name, verb.ServerUser())
	if err != nil || r.View.Collection(call.Resource.Prefix).Snapshot().Get(namespace, name) == nil {
		return err
	}
	_, err = r.Verbs.Delete(ctx, call, metav1.DeleteOptions{})
	return control.IgnoreNotFound(err)
}

// stray reports whether a record is of something that its owner does not have.
func (r *allocationRepair) stray(owner networkingv1.ParentReference, prefix, name string) (bool, error) {
	if owner.Group != "" || owner.Resource != servicesResource.Resource {
		return true, nil
	}
	call, err := r.Verbs.Call(servicesResource, owner.Namespace, owner.Name, verb.ServerUser())
	if err != nil {
		return false, err
	}
	return r.Verbs.Leaked(call, prefix, name)
}

// ownerOf returns the owner in a record, and its creation time.
func ownerOf(e *watchcache.Entry) (networkingv1.ParentReference, time.Time, error) {
	var record networkingv1.IPAddress // a port's record has the same fields
	if err := json.Unmarshal(e.JSON(), &record); err != nil {
		return networkingv1.ParentReference{}, time.Time{}, fmt.Errorf("record %s: %w", e.Name, err)
	}
	if record.Spec.ParentRef == nil {
		return networkingv1.ParentReference{}, record.CreationTimestamp.Time, nil
	}
	return *record.Spec.ParentRef, record.CreationTimestamp.Time, nil
}
