package systemclass

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/kinds/scheduling"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// systemClasses are the priority classes that every cluster has, with their descriptions.
var systemClasses = [][2]string{
	{"system-node-critical", "Used for system critical pods that must not be moved from their current node."},
	{"system-cluster-critical",
		"Used for system critical pods that must run in the cluster, but can be moved to another node if necessary."},
}

// makeClasses creates the system's priority classes before the first request that may name one. They can be deleted
// only by a deletecollection; the next start creates them again. A class that admission rejects does not prevent the
// start: the administrator must be able to change that configuration.
func makeClasses(ctx context.Context, r *verb.Verbs) error {
	for _, class := range systemClasses {
		name, description := class[0], class[1]
		call, err := r.Call(ref.PriorityClasses.GroupResource(), "", name,
			verb.ServerUser())
		if err != nil {
			return err
		}
		if r.View().Collection(ref.PriorityClasses.Prefix).Snapshot().Get("", name) != nil {
			continue
		}
		value, _ := scheduling.SystemPriority(name)
		obj, err := r.New(call,
			object.Object{"metadata": object.Object{"name": name}, "value": value, "description": description})
		if err != nil {
			return fmt.Errorf("priority class %s: %w", name, err)
		}
		if _, err := r.Create(ctx, call, obj,
			metav1.CreateOptions{FieldManager: "kube-apiserver"}); control.IgnoreExists(err) != nil {
			r.Log().Warn("a system priority class cannot be created; the next start retries", "name", name,
				"error", err)
		}
	}
	return nil
}
