package control

import (
	"context"
	"errors"
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
	err := makeNamespaces(ctx, r)
	if err == nil {
		err = makeTracking(ctx, r)
	}
	if refused(ctx, err) {
		r.Log.Warn("objects that every cluster has cannot be made; it is tried again", "error", err)
		return nil
	}
	return err
}

// refused tells whether a write of the server's own ended in an answer of the API: policies and webhooks may refuse
// it. That does not keep the server from starting, or whoever has configured it so could not change it any more; Keep
// tries again.
func refused(ctx context.Context, err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && ctx.Err() == nil && !apierrors.IsTimeout(err) // which is the store's
}

func makeNamespaces(ctx context.Context, r *rest.Server) (err error) {
	for _, name := range systemNamespaces {
		if r.View.Collection("namespaces").Snapshot().Get("", name) != nil {
			continue
		}
		if failure := makeNamespace(ctx, r, name); failure != nil {
			err = errors.Join(err, fmt.Errorf("namespace %s: %w", name, failure))
		}
	}
	return err
}

func makeNamespace(ctx context.Context, r *rest.Server, name string) error {
	call, err := r.Call(namespacesResource, "", name, itself())
	if err != nil {
		return err
	}
	ns, err := r.New(call, rest.Object{"metadata": rest.Object{"name": name}})
	if err != nil {
		return err
	}
	_, err = r.Create(ctx, call, ns, metav1.CreateOptions{FieldManager: "kube-apiserver"})
	return existing(err)
}
