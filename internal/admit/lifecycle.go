package admit

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// Lifecycle refuses new objects in missing or terminating namespaces, and the deletion of namespaces that the server
// needs. It is Kubernetes' NamespaceLifecycle.
type Lifecycle struct {
	View *watchcache.View
}

var _ Mutator = Lifecycle{}

// Name returns kube's name for the plugin.
func (Lifecycle) Name() string { return "NamespaceLifecycle" }

// Protected reports whether a namespace may not be deleted.
func Protected(namespace string) bool {
	return namespace == metav1.NamespaceDefault || namespace == metav1.NamespaceSystem ||
		namespace == metav1.NamespacePublic
}

// Mutate changes nothing; as in Kubernetes it is a mutator so that no webhook is called for a write to a missing
// namespace. It uses the namespace in the view. If that is missing, it looks again after catching up, because another
// replica may just have created it.
func (l Lifecycle) Mutate(ctx context.Context, a *Attributes) error {
	if a.Operation == Delete && a.Resource.IsNamespace() && Protected(a.Name) {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, a.Name,
			fmt.Errorf("this namespace may not be deleted"))
	}
	if a.Operation != Create || !a.Resource.Namespaced || requestsAccess(a) {
		return nil
	}
	namespaces := l.View.Collection("namespaces")
	ns := namespaces.Snapshot().Get("", a.Namespace)
	if ns == nil {
		if _, err := l.View.Fresh(ctx); err != nil {
			return err
		}
		if ns = namespaces.Snapshot().Get("", a.Namespace); ns == nil {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, a.Namespace)
		}
	}
	if phase, _ := ns.Field("status.phase"); phase != string(corev1.NamespaceTerminating) {
		return nil
	}
	err := Forbidden(a,
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", a.Namespace))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: corev1.NamespaceTerminatingCause, Message: fmt.Sprintf("namespace %s is being terminated", a.Namespace),
		Field: "metadata.namespace",
	})
	return err
}

// requestsAccess reports whether a write is an access review for a namespace, which need not exist. The response must
// not reveal its existence to users without access.
func requestsAccess(a *Attributes) bool {
	return a.Resource.Group == "authorization.k8s.io" && a.Resource.Plural == "localsubjectaccessreviews"
}
