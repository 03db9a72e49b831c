package controllers

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/rest"
)

// systemNamespaces exist in every cluster.
var systemNamespaces = []string{"default", "kube-system", "kube-public", "kube-node-lease"}

// Bootstrap makes the objects that clients expect of a new server. It is done once the view is loaded and before the
// server says that it is ready.
func Bootstrap(ctx context.Context, r *rest.Server) error {
	for _, name := range systemNamespaces {
		call, err := r.Call(namespacesResource, "", name, identity("bootstrap"))
		if err != nil {
			return err
		}
		if r.View.Collection("namespaces").Snapshot().Get("", name) != nil {
			continue
		}
		ns, err := r.New(call, rest.Object{"metadata": rest.Object{"name": name}})
		if err != nil {
			return fmt.Errorf("namespace %s: %w", name, err)
		}
		if _, err := r.Create(ctx, call, ns, metav1.CreateOptions{FieldManager: "kube-apiserver"}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("namespace %s: %w", name, err)
		}
	}
	return nil
}
