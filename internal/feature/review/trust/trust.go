package trust

import (
	"context"
	"encoding/json"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/verb"
)

const (
	namespace = metav1.NamespaceSystem
	name      = "extension-apiserver-authentication"
	manager   = "kube-apiserver"
)

// publisher brings the ConfigMap up to date.
type publisher struct {
	verbs    *verb.Verbs
	required information
}

// sync writes missing values. It does not access etcd if nothing is missing.
func (k *publisher) sync(ctx context.Context) error {
	call, err := k.verbs.Call(ref.ConfigMaps.GroupResource(), namespace, name, verb.ServerUser())
	if err != nil {
		return err
	}
	entry := k.verbs.View().Collection(ref.ConfigMaps.Prefix).Snapshot().Get(namespace, name)
	if entry == nil {
		obj, err := k.verbs.New(call, object.Object{
			"metadata": object.Object{"name": name, "namespace": namespace}, "data": k.data(nil),
		})
		if err != nil {
			return err
		}
		_, err = k.verbs.Create(ctx, call, obj, metav1.CreateOptions{FieldManager: manager})
		return control.IgnoreExists(err)
	}
	var there corev1.ConfigMap
	if err := json.Unmarshal(entry.JSON(), &there); err != nil {
		return err
	}
	if maps.Equal(there.Data, dataOf(object.Object{"data": k.data(there.Data)})) {
		return nil
	}
	_, err = k.verbs.Update(ctx, call, metav1.UpdateOptions{FieldManager: manager},
		func(obj object.Object) (object.Object, error) {
			obj["data"] = k.data(dataOf(obj))
			return k.verbs.New(call, obj)
		})
	if apierrors.IsRequestEntityTooLargeError(err) ||
		apierrors.IsInvalid(err) && strings.Contains(err.Error(), "Too long") {
		// The values of others have made it too large: delete it, and each server adds its own again.
		if _, gone := k.verbs.Delete(ctx, call, metav1.DeleteOptions{}); gone != nil {
			return gone
		}
	}
	return err
}

func (k *publisher) data(old map[string]string) object.Object {
	data := object.Object{}
	for key, value := range k.required.merge(parse(old), k.verbs.Now()).data() {
		data[key] = value
	}
	return data
}

// dataOf returns the data of a ConfigMap.
func dataOf(obj object.Object) map[string]string {
	data := map[string]string{}
	held, _ := obj["data"].(object.Object)
	for key, value := range held {
		data[key], _ = value.(string)
	}
	return data
}
