package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// ownership holds the parts of an object that the garbage collector reads.
type ownership struct {
	finalizers []string
	raw        json.RawMessage // ownerReferences, nil if there are none
}

// ownershipOf decodes an entry; nil gives the zero ownership. Most objects have neither owners nor a waiting deletion,
// and are not decoded.
func ownershipOf(e *watchcache.Entry) (o ownership) {
	if e == nil {
		return ownership{}
	}
	doc := e.Peek()
	if !e.Deleting && !bytes.Contains(doc, []byte(`"ownerReferences":[`)) &&
		!bytes.Contains(doc, []byte(`"finalizers":[`)) {
		return ownership{}
	}
	meta := watchcache.PartOf(doc, "metadata")
	if raw := watchcache.PartOf(meta, "finalizers"); raw != nil && json.Unmarshal(raw, &o.finalizers) != nil {
		return ownership{}
	}
	o.raw = watchcache.PartOf(meta, "ownerReferences")
	return o
}

func (o ownership) references() []metav1.OwnerReference {
	var refs []metav1.OwnerReference
	if len(o.raw) == 0 || json.Unmarshal(o.raw, &refs) != nil {
		return nil
	}
	return refs
}

func sameOwner(a, b metav1.OwnerReference) bool {
	return a.UID == b.UID && a.Name == b.Name && a.Kind == b.Kind && a.APIVersion == b.APIVersion
}

var (
	errUnknownKind     = errors.New("the kind is not served")
	errRemoteKind      = errors.New("another server answers for the kind")
	errNamespacedOwner = errors.New("cluster-scoped objects cannot refer to namespaced owners")
)

// stateOf determines the state of the owner that an object in the namespace refers to. The version does not matter: the
// same object has the same name in every version.
func (g *collector) stateOf(namespace string, ref metav1.OwnerReference) (ownerState, error) {
	res := g.kindOf(ref)
	if res == nil && g.remotes.kindOf(ref) != nil {
		return dangling, errRemoteKind
	}
	if res == nil {
		return dangling, fmt.Errorf("owner %s %s of %s: %w", ref.Kind, ref.Name, ref.APIVersion, errUnknownKind)
	}
	if !res.Namespaced {
		namespace = ""
	} else if namespace == "" {
		return dangling, errNamespacedOwner
	}
	switch e := g.View.Collection(res.Prefix).Snapshot().Get(namespace, ref.Name); {
	case e != nil && e.Unreadable() != nil:
		return solid, nil // it may be the owner
	case e == nil || e.UID != string(ref.UID):
		return dangling, nil
	case waitsForDependents(e):
		return waiting, nil
	}
	return solid, nil
}

func (g *collector) kindOf(ref metav1.OwnerReference) *catalog.Resource {
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	if r := g.Catalog.Snapshot().ByKind(kind.Group, kind.Kind); r != nil && !r.Virtual {
		return r
	}
	return nil
}

// waitsForCollector reports whether the collector removes one of the finalizers.
func waitsForCollector(finalizers []string) bool {
	return slices.Contains(finalizers, metav1.FinalizerDeleteDependents) ||
		slices.Contains(finalizers, metav1.FinalizerOrphanDependents)
}

func waitsForDependents(e *watchcache.Entry) bool {
	return e.Deleting && slices.Contains(Finalizers(e), metav1.FinalizerDeleteDependents)
}

// reportForeign records an Event if an owner exists, but in a namespace where it cannot own the item.
func (g *collector) reportForeign(ctx context.Context, it item, ref metav1.OwnerReference) {
	res := g.kindOf(ref)
	if res == nil || !res.Namespaced {
		return
	}
	// An owner has one name; only its namespace can differ.
	objects, found := g.View.Collection(res.Prefix).Snapshot(), false
	g.View.Collection("namespaces").Snapshot().Scan("", "", func(ns *watchcache.Entry) bool {
		e := objects.Get(ns.Name, ref.Name)
		found = e != nil && e.UID == string(ref.UID)
		return !found
	})
	if !found {
		return
	}
	err := g.record(ctx, occurrence{
		component: "garbage-collector-controller",
		about: corev1.ObjectReference{
			Kind: it.resource.Kind, APIVersion: it.entry.APIVersion, Namespace: it.entry.Namespace, Name: it.entry.Name,
			UID: types.UID(it.entry.UID),
		},
		kind: corev1.EventTypeWarning, reason: "OwnerRefInvalidNamespace",
		message: fmt.Sprintf("ownerRef [%s/%s, namespace: %s, name: %s, uid: %s] does not exist in namespace %q",
			ref.APIVersion, ref.Kind, it.entry.Namespace, ref.Name, ref.UID, it.entry.Namespace),
	})
	if err != nil {
		g.Log.Info("event not recorded", "object", it.entry.Key(), "error", err)
	}
}
