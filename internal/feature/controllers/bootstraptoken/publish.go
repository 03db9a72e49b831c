package bootstraptoken

import (
	"bytes"
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/auth/rbac"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// publisher is the field manager of the ConfigMap's kubeconfig while the server owns it. Once another client has
// written it, perhaps for a load balancer, the server leaves it alone.
const publisher = "bowsprit"

// readRole is kubeadm's name of the role, and its binding, by which everyone may read the ConfigMap.
const readRole = "kubeadm:bootstrap-signer-clusterinfo"

// made is an object that is created if it is missing.
type made struct {
	resource catalog.GroupResource
	prefix   string // of its collection
	obj      object.Object
}

const rbacGroup = "rbac.authorization.k8s.io"

func role() made {
	return made{ref.Roles.GroupResource(), rbac.RolesPrefix, object.Object{
		"metadata": object.Object{"name": readRole, "namespace": metav1.NamespacePublic},
		"rules": []any{object.Object{
			"verbs": []any{"get"}, "apiGroups": []any{""}, "resources": []any{"configmaps"},
			"resourceNames": []any{clusterInfo},
		}},
	}}
}

func binding() made {
	return made{
		ref.RoleBindings.GroupResource(), rbac.RoleBindingsPrefix, object.Object{
			"metadata": object.Object{"name": readRole, "namespace": metav1.NamespacePublic},
			"roleRef":  object.Object{"apiGroup": rbacGroup, "kind": "Role", "name": readRole},
			"subjects": []any{object.Object{"apiGroup": rbacGroup, "kind": "User", "name": "system:anonymous"}},
		},
	}
}

// published holds the inputs of the last successful publish.
type published struct {
	url         string
	authorities []byte
	maps        *watchcache.Snapshot // of all ConfigMaps; nil before
}

// publish is the function publish, but does nothing while its inputs are unchanged since the last success.
func (p *published) publish(ctx context.Context, h *part.Host, url string, starting bool) error {
	now := published{url, h.Certificates.ServerCA(), h.View.Collection(ref.ConfigMaps.Prefix).Snapshot()}
	if !starting && p.maps != nil && p.url == url && bytes.Equal(p.authorities, now.authorities) &&
		p.maps.Same(now.maps) {
		return nil
	}
	if err := publish(ctx, h, url, starting); err != nil {
		return err
	}
	*p = now // the snapshot precedes this call's own writes
	return nil
}

// publish creates the ConfigMap and lets everyone read it, or updates its kubeconfig. It writes nothing if all is up to
// date. It replaces a kubeconfig with another URL only when the server starts: later the URL belongs to a server that
// shares the etcd and has started since.
func publish(ctx context.Context, h *part.Host, url string, starting bool) error {
	content, err := kubeconfig(url, h.Certificates.ServerCA())
	if err != nil {
		return err
	}
	info := made{configMaps, ref.ConfigMaps.Prefix, object.Object{
		"metadata": object.Object{"name": clusterInfo, "namespace": metav1.NamespacePublic},
		"data":     object.Object{keyKubeconfig: content},
	}}
	fresh := get(h, info) == nil // while the ConfigMap exists, an administrator may remove the role
	if fresh {
		for _, one := range []made{role(), binding(), info} {
			if err := create(ctx, h, one); err != nil {
				return err
			}
		}
		return nil
	}
	if there, _ := get(h, info).Field("data." + keyKubeconfig); !starting && !names(there, url) {
		return nil
	}
	return update(ctx, h, info, content)
}

func get(h *part.Host, m made) *watchcache.Entry {
	meta := object.Meta(m.obj)
	return h.View.Collection(m.prefix).Snapshot().Get(object.String(meta, "namespace"), object.String(meta, "name"))
}

func create(ctx context.Context, h *part.Host, m made) error {
	if get(h, m) != nil {
		return nil
	}
	call, err := h.Verbs.Call(m.resource, metav1.NamespacePublic, "", verb.ServerUser())
	if err != nil {
		return err
	}
	obj, err := h.Verbs.New(call, m.obj)
	if err != nil {
		return err
	}
	_, err = h.Verbs.Create(ctx, call, obj, metav1.CreateOptions{FieldManager: publisher})
	return control.IgnoreExists(err)
}

// update writes the kubeconfig if the server owns it and it has changed.
func update(ctx context.Context, h *part.Host, m made, content string) error {
	e := get(h, m)
	if there, _ := e.Field("data." + keyKubeconfig); there == content || !ours(e.JSON()) {
		return nil
	}
	call, err := h.Verbs.Call(m.resource, metav1.NamespacePublic, clusterInfo, verb.ServerUser())
	if err != nil {
		return err
	}
	_, err = h.Verbs.Update(ctx, call, metav1.UpdateOptions{FieldManager: publisher},
		func(obj object.Object) (object.Object, error) {
			object.Child(obj, "data")[keyKubeconfig] = content
			return obj, nil
		})
	return control.IgnoreNotFound(err)
}

// ours reports whether the server was the last to write the kubeconfig of the ConfigMap in doc.
func ours(doc []byte) bool {
	var m struct{ Metadata metav1.ObjectMeta }
	if json.Unmarshal(doc, &m) != nil {
		return false
	}
	for _, entry := range m.Metadata.ManagedFields {
		var fields struct {
			Data map[string]any `json:"f:data"`
		}
		if entry.Manager != publisher || entry.FieldsV1 == nil ||
			json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		if _, ok := fields.Data["f:"+keyKubeconfig]; ok {
			return true
		}
	}
	return false
}

// kubeconfig returns a kubeconfig without users, as kubeadm puts it into the ConfigMap.
func kubeconfig(url string, authorities []byte) (string, error) {
	text, err := clientcmd.Write(clientcmdapi.Config{Clusters: map[string]*clientcmdapi.Cluster{
		"": {Server: url, CertificateAuthorityData: authorities},
	}})
	return string(text), err
}

// names reports whether a kubeconfig names a server.
func names(text, url string) bool {
	config, err := clientcmd.Load([]byte(text))
	return err == nil && config.Clusters[""] != nil && config.Clusters[""].Server == url
}
