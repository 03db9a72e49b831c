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

// Lifecycle refuses new objects in namespaces that are missing or being deleted, and the deletion of the namespaces
// that the server cannot do without. It is kube's NamespaceLifecycle.
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

// Mutate changes nothing; it stands among the mutators, as in Kubernetes, so that no webhook is asked about a write to
// a namespace that is not there. It decides by the namespace as the view has it; one that the view does not know is
// looked for once more after catching up, since it may have been made on another replica a moment ago.
func (l Lifecycle) Mutate(ctx context.Context, a *Attributes) error {
	if a.Operation == Delete && a.Resource.IsNamespace() && Protected(a.Name) {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, a.Name,
			fmt.Errorf("this namespace may not be deleted"))
	}
	if a.Operation != Create || !a.Resource.Namespaced || asksForAccess(a) {
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

// asksForAccess reports whether a write is the question whether a user may do something in a namespace, which may be
// asked before the namespace is there. The answer must not tell who has no access whether it is.
func asksForAccess(a *Attributes) bool {
	return a.Resource.Group == "authorization.k8s.io" && a.Resource.Plural == "localsubjectaccessreviews"
}
