package accounts

import (
	"bytes"
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

var (
	accountsResource   = ref.ServiceAccounts.GroupResource()
	configMapsResource = ref.ConfigMaps.GroupResource()
	secretsResource    = ref.Secrets.GroupResource()
)

// defaultAccount is the service account that every namespace has.
const defaultAccount = "default"

// accounts creates the default service account of every namespace. Its keys are names of namespaces.
type accounts struct{ *part.Host }

func (a accounts) Observe(ev *watchcache.Event, need func(string)) {
	switch ev.Collection.Prefix() {
	case "namespaces":
		needActive(ev, need)
	case "serviceaccounts":
		if ev.Type == watchcache.Deleted && ev.Entry.Name == defaultAccount {
			need(ev.Entry.Namespace)
		}
	}
}

// needActive requests a new or changed namespace.
func needActive(ev *watchcache.Event, need func(string)) {
	if ev.Type != watchcache.Deleted && !ev.Entry.Deleting {
		need(ev.Entry.Name)
	}
}

func (a accounts) Reconcile(ctx context.Context, namespace string) error {
	if !active(a.Host, namespace) ||
		a.View.Collection(ref.ServiceAccounts.Prefix).Snapshot().Get(namespace, defaultAccount) != nil {
		return nil
	}
	return create(ctx, a.Host, accountsResource, "service-account-controller", object.Object{
		"metadata": object.Object{"name": defaultAccount, "namespace": namespace},
	})
}

// active reports whether new objects may be made in a namespace.
func active(h *part.Host, namespace string) bool {
	ns := h.View.Collection(ref.Namespaces.Prefix).Snapshot().Get("", namespace)
	if ns == nil || ns.Deleting {
		return false
	}
	phase, _ := ns.Field("status.phase")
	return phase == string(corev1.NamespaceActive)
}

// create creates an object. It is no error if another writer has created it meanwhile, or the namespace is being
// deleted.
func create(ctx context.Context, h *part.Host, gr catalog.GroupResource, controller string, obj object.Object) error {
	namespace, _ := obj["metadata"].(object.Object)["namespace"].(string)
	call, err := h.Verbs.Call(gr, namespace, "", control.ControllerUser(controller))
	if err != nil {
		return err
	}
	if obj, err = h.Verbs.New(call, obj); err != nil {
		return err
	}
	_, err = h.Verbs.Create(ctx, call, obj, metav1.CreateOptions{FieldManager: "kube-controller-manager"})
	if apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) ||
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	return err
}

const (
	rootCAName        = "kube-root-ca.crt"
	rootCAKey         = "ca.crt"
	descriptionKey    = "kubernetes.io/description"
	rootCADescription = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. " +
		"No other usage is guaranteed across distributions of Kubernetes clusters."
)

// rootCA publishes the server's root certificates in every namespace. Its keys are names of namespaces.
type rootCA struct{ *part.Host }

func (r rootCA) Observe(ev *watchcache.Event, need func(string)) {
	switch ev.Collection.Prefix() {
	case "namespaces":
		needActive(ev, need)
	case "configmaps":
		if ev.Entry.Name == rootCAName && ev.Type != watchcache.Added {
			need(ev.Entry.Namespace)
		}
	}
}

func (r rootCA) Reconcile(ctx context.Context, namespace string) error {
	if !active(r.Host, namespace) {
		return nil
	}
	want := string(r.Certificates.ServerCA())
	e := r.View.Collection(ref.ConfigMaps.Prefix).Snapshot().Get(namespace, rootCAName)
	if e == nil {
		return create(ctx, r.Host, configMapsResource, "root-ca-cert-publisher", object.Object{
			"metadata": object.Object{
				"name": rootCAName, "namespace": namespace,
				"annotations": object.Object{descriptionKey: rootCADescription},
			},
			"data": object.Object{rootCAKey: want},
		})
	}
	description, _ := e.Field(`metadata.annotations.kubernetes\.io/description`)
	have, _ := codec.Field(e.JSON(), "data")
	if description != "" && bytes.Equal(have, codec.AppendJSON(nil, object.Object{rootCAKey: want})) {
		return nil
	}
	call, err := r.Verbs.Call(configMapsResource, namespace, rootCAName,
		control.ControllerUser("root-ca-cert-publisher"))
	if err != nil {
		return err
	}
	_, err = r.Verbs.Update(ctx, call, metav1.UpdateOptions{FieldManager: "kube-controller-manager"},
		func(obj object.Object) (object.Object, error) {
			meta := obj["metadata"].(object.Object)
			annotations, _ := meta["annotations"].(object.Object)
			if annotations == nil {
				annotations = object.Object{}
				meta["annotations"] = annotations
			}
			annotations[descriptionKey] = rootCADescription
			obj["data"] = object.Object{rootCAKey: want}
			return obj, nil
		})
	return control.IgnoreNotFound(err)
}
