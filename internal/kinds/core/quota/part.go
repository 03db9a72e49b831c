package quota

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// Part brings quotas: the plugin that charges new objects to them, and the loop that keeps their status.
func Part() part.Part {
	var plugin *Plugin // nil if it is switched off
	return part.Part{
		Name: "quotas",
		Admission: []part.Plugin{{Name: plugin.Name(), At: part.AtLast, New: func(h *part.Host) (admit.Plugin, error) {
			plugin = newPlugin(h)
			return plugin, nil
		}}},
		Loops: []part.Loop{{Name: "resourcequota-controller", Workers: 5, New: func(h *part.Host) control.Reconciler {
			return newQuotas(h, plugin)
		}}},
	}
}

func newPlugin(h *part.Host) *Plugin {
	for _, l := range h.Admission.Limited {
		if !Limits(l) {
			h.Log.Warn("--admission-control-config-file limits what quotas do not count here: no request is refused",
				"resource", l.Resource, "matchContains", l.MatchContains, "matchScopes", l.MatchScopes)
		}
	}
	return &Plugin{
		View: h.View, Now: time.Now, Limited: h.Admission.Limited,
		Update: func(ctx context.Context, namespace, name string, change func(quota map[string]any) error) error {
			return updateStatus(ctx, h.Verbs, namespace, name, change)
		},
	}
}

// updateStatus changes the status of a ResourceQuota by compare-and-swap. A quota that is gone limits nothing any more.
func updateStatus(
	ctx context.Context, r *verb.Verbs, namespace, name string, change func(map[string]any) error,
) error {
	who := &user.DefaultInfo{Name: user.APIServerUser, Groups: []string{user.SystemPrivilegedGroup}}
	call, err := r.Call(catalog.GroupResource{Resource: "resourcequotas"}, namespace, name, who)
	if err != nil {
		return err
	}
	call.Subresource = "status"
	_, err = r.Update(ctx, call, metav1.UpdateOptions{FieldManager: "kube-apiserver"},
		func(obj object.Object) (object.Object, error) {
			return obj, change(obj)
		})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
