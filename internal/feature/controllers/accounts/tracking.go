package accounts

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/auth/serviceaccount"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
	"github.com/bowsprit/bowsprit/internal/verb/decode"
)

// trackingConfigMap holds, under the key trackingSince, the day from which the use of tokens in secrets is recorded: an
// older token without a record has not been used since. Kubernetes' cleaner of such tokens reads it.
const (
	trackingConfigMap = "kube-apiserver-legacy-service-account-token-tracking"
	trackingSince     = "since"
)

// trackingSettled reports whether the ConfigMap holds a day.
func trackingSettled(r *verb.Verbs) bool {
	entry := r.View().Collection(ref.ConfigMaps.Prefix).Snapshot().Get(metav1.NamespaceSystem, trackingConfigMap)
	if entry == nil {
		return false
	}
	day, _ := entry.Field("data." + trackingSince)
	_, err := time.Parse(time.DateOnly, day)
	return err == nil
}

// makeTracking creates or corrects the ConfigMap.
func makeTracking(ctx context.Context, r *verb.Verbs) error {
	if trackingSettled(r) {
		return nil
	}
	err := trackToday(ctx, r)
	if err != nil {
		return fmt.Errorf("ConfigMap %s: %w", trackingConfigMap, err)
	}
	return nil
}

func trackToday(ctx context.Context, r *verb.Verbs) error {
	call, err := r.Call(configMapsResource, metav1.NamespaceSystem, trackingConfigMap, verb.ServerUser())
	if err != nil {
		return err
	}
	today := r.Now().UTC().Format(time.DateOnly)
	if r.View().Collection(ref.ConfigMaps.Prefix).Snapshot().Get(call.Namespace, call.Name) != nil {
		_, err = r.Update(ctx, call, metav1.UpdateOptions{FieldManager: "kube-apiserver"},
			func(obj object.Object) (object.Object, error) {
				data, _ := obj["data"].(object.Object)
				if data == nil {
					data = object.Object{}
					obj["data"] = data
				}
				data[trackingSince] = today
				return obj, nil
			})
		return control.IgnoreNotFound(err)
	}
	obj, err := r.New(call, object.Object{
		"metadata": object.Object{"name": call.Name, "namespace": call.Namespace},
		"data":     object.Object{trackingSince: today},
	})
	if err != nil {
		return err
	}
	_, err = r.Create(ctx, call, obj, metav1.CreateOptions{FieldManager: "kube-apiserver"})
	return control.IgnoreExists(err)
}

// noteTokenUse labels a secret with the day on which its token was used. It logs failures: they are no reason to reject
// the token. ctx is the context of the authenticated request, which does not see the write.
func noteTokenUse(ctx context.Context, r *verb.Verbs, secret *watchcache.Entry, day string) {
	call, err := r.Call(secretsResource, secret.Namespace, secret.Name, verb.ServerUser())
	if err == nil {
		patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"labels":{%q:%q}}}`, secret.UID, serviceaccount.LastUsedLabel,
			day)
		_, err = r.Patch(request.NewContext(ctx, nil), call, decode.Patch{Type: types.MergePatchType, Data: patch},
			metav1.PatchOptions{FieldManager: "kube-apiserver"})
	}
	if err != nil && ctx.Err() == nil {
		r.Log().Warn("the last use of a secret's token cannot be recorded", "secret", secret.Key(), "error", err)
	}
}
