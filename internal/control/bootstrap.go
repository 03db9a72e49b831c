package control

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// systemNamespaces exist in every cluster.
var systemNamespaces = []string{"default", "kube-system", "kube-public", "kube-node-lease"}

// Bootstrap creates the namespaces that clients expect on a new server. It runs after the view has loaded and before
// the server is ready.
func Bootstrap(ctx context.Context, r *verb.Verbs) error {
	err := KeepNamespaces(ctx, r)
	if Refused(ctx, err) {
		r.Log().Warn("default namespaces cannot be created; retried every 10 seconds", "error", err)
		return nil
	}
	return err
}

// KeepNamespaces creates missing system namespaces. If all exist, it writes nothing and does not query etcd.
func KeepNamespaces(ctx context.Context, r *verb.Verbs) (err error) {
	for _, name := range systemNamespaces {
		if r.View().Collection("namespaces").Snapshot().Get("", name) != nil {
			continue
		}
		if failure := makeNamespace(ctx, r, name); failure != nil {
			err = errors.Join(err, fmt.Errorf("namespace %s: %w", name, failure))
		}
	}
	return err
}

func makeNamespace(ctx context.Context, r *verb.Verbs, name string) error {
	call, err := r.Call(namespacesResource, "", name, verb.ServerUser())
	if err != nil {
		return err
	}
	ns, err := r.New(call, object.Object{"metadata": object.Object{"name": name}})
	if err != nil {
		return err
	}
	_, err = r.Create(ctx, call, ns, metav1.CreateOptions{FieldManager: "kube-apiserver"})
	return IgnoreExists(err)
}
