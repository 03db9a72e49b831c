package play

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/verb"
	"github.com/bowsprit/bowsprit/internal/verb/decode"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
	"github.com/bowsprit/bowsprit/internal/workload/stage"
)

// play performs the remaining actions of a job's Stage. A stage.Failure or an API status error is the Stage's fault.
func (p *player) play(ctx context.Context, t target, j *job) error {
	if j.acts == nil {
		o, err := p.object(ctx, t, j.stage)
		if err != nil {
			return err
		}
		if j.acts, err = j.stage.Steps(o, p.functions(t)); err != nil {
			return &stage.Failure{Stage: j.stage, Err: err}
		}
	}
	for ; j.done < len(j.acts); j.done++ {
		if err := p.do(ctx, t, j.stage, j.acts[j.done]); err != nil {
			return err
		}
	}
	return nil
}

func (p *player) do(ctx context.Context, t target, s *stage.Stage, a stage.Act) error {
	switch {
	case a.Event != nil:
		p.Report(ctx, cluster.Event{
			About: p.reference(t), Type: a.Event.Type, Reason: a.Event.Reason, Message: a.Event.Message,
		})
		return nil
	case a.Apply != nil:
		return p.apply(ctx, t, a.Apply)
	}
	w := write{verb: "delete", name: t.entry.Name, namespace: t.entry.Namespace, of: t.of, version: s.Of.Version}
	if a.Delete {
		call, err := p.call(ctx, w)
		if err != nil {
			return err
		}
		none, uid := int64(0), types.UID(t.entry.UID)
		_, err = p.Verbs.Delete(ctx, call, metav1.DeleteOptions{
			GracePeriodSeconds: &none, Preconditions: &metav1.Preconditions{UID: &uid},
		})
		return err
	}
	w.verb, w.subresource, w.as = "patch", a.Patch.Subresource, a.Patch.As
	call, err := p.call(ctx, w)
	if err != nil {
		return err
	}
	data, err := withUID(a.Patch, t.entry.UID)
	if err != nil {
		return &stage.Failure{Stage: s, Err: err}
	}
	return p.patch(ctx, call, decode.Patch{Type: a.Patch.Type, Data: data})
}

// withUID restricts a patch to the object with a uid, so that it does not apply to a recreated object.
func withUID(p *stage.Patch, uid string) ([]byte, error) {
	if p.Type == types.JSONPatchType {
		var ops []any
		if err := json.Unmarshal(p.Data, &ops); err != nil {
			return nil, fmt.Errorf("the patch is no list of operations: %w", err)
		}
		return json.Marshal(append([]any{map[string]any{"op": "test", "path": "/metadata/uid", "value": uid}}, ops...))
	}
	var change map[string]any
	if err := json.Unmarshal(p.Data, &change); err != nil {
		return nil, fmt.Errorf("the patch is no object: %w", err)
	}
	if p.Subresource == "scale" { // a Scale has its own metadata
		return p.Data, nil
	}
	meta, ok := change["metadata"].(map[string]any)
	if !ok {
		meta = map[string]any{}
	}
	meta["uid"] = uid
	if change == nil {
		change = map[string]any{}
	}
	change["metadata"] = meta
	return json.Marshal(change)
}

func (p *player) patch(ctx context.Context, call *verb.Call, patch decode.Patch) error {
	options := metav1.PatchOptions{FieldManager: p.Manager}
	var err error
	switch {
	case call.Subresource == "scale":
		_, err = p.Verbs.PatchScale(ctx, call, patch, options)
	case patch.IsApply():
		force := true
		options.Force = &force
		_, err = p.Verbs.Apply(ctx, call, patch, options)
	default:
		_, err = p.Verbs.Patch(ctx, call, patch, options)
	}
	return err
}

// apply creates the object that a patch describes, or patches it if it exists.
func (p *player) apply(ctx context.Context, t target, a *stage.Patch) error {
	value, err := codec.DecodeJSON(a.Data)
	obj, ok := value.(object.Object)
	if err != nil || !ok {
		return apierrors.NewBadRequest("the template of apply writes no object")
	}
	gv, err := schema.ParseGroupVersion(object.String(obj, "apiVersion"))
	kind := object.String(obj, "kind")
	if err != nil || gv.Version == "" || kind == "" {
		return apierrors.NewBadRequest("the template of apply must write apiVersion and kind")
	}
	r := p.Catalog.Snapshot().ByKind(gv.Group, kind)
	if r == nil {
		return apierrors.NewBadRequest(fmt.Sprintf("the server has no %s of %s", kind, gv))
	}
	meta := object.Meta(obj)
	w := write{verb: "patch", of: r, version: gv.Version, as: a.As, subresource: a.Subresource, always: true}
	if w.name = object.String(meta, "name"); w.name == "" {
		return apierrors.NewBadRequest("the template of apply must write metadata.name")
	}
	if r.Namespaced {
		w.namespace = cmp.Or(object.String(meta, "namespace"), t.entry.Namespace)
		meta["namespace"] = w.namespace
	}
	patch := decode.Patch{Type: a.Type}
	if patch.Data, err = json.Marshal(obj); err != nil {
		return err
	}
	if a.Type != types.ApplyPatchType && a.Subresource == "" {
		err := p.create(ctx, w, obj)
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	call, err := p.call(ctx, w)
	if err != nil {
		return err
	}
	return p.patch(ctx, call, patch)
}

func (p *player) create(ctx context.Context, w write, obj object.Object) error {
	w.verb, w.name = "create", ""
	call, err := p.call(ctx, w)
	if err != nil {
		return err
	}
	fresh, err := p.Verbs.New(call, runtime.DeepCopyJSON(obj))
	if err != nil {
		return err
	}
	_, err = p.Verbs.Create(ctx, call, fresh, metav1.CreateOptions{FieldManager: p.Manager})
	return err
}

// write describes a request that writes.
type write struct {
	verb, namespace, name, subresource string
	of                                 *catalog.Resource
	version                            string
	as                                 *stage.Another
	always                             bool // authorize it for every kind
}

// call returns the call for a write. Writes to pods and nodes belong to the simulation. All other writes are authorized
// as kwok's service account, so that creating Stages does not extend a user's rights.
func (p *player) call(ctx context.Context, w write) (*verb.Call, error) {
	v := w.of.Version(w.version)
	if v == nil || !v.Served {
		return nil, apierrors.NewBadRequest(
			fmt.Sprintf("the server has no version %s of %s", w.version, w.of.Qualified()))
	}
	if w.subresource != "" && !w.of.HasSubresource(v, w.subresource) && (w.subresource != "scale" || v.Scale == nil) {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s have no subresource %s", w.of.Qualified(), w.subresource))
	}
	u := p.User
	info := &request.Info{
		Verb: w.verb, IsResource: true, APIPrefix: "apis", Group: w.of.Group, Version: w.version,
		Namespace: w.namespace, Resource: w.of.Plural, Subresource: w.subresource, Name: w.name,
	}
	if w.as != nil {
		var info *request.Info
		u, info = another(w.as.Username)
		if err := authz.Require(ctx, p.Authorizer, p.User, info); err != nil {
			return nil, err
		}
	}
	kind := schema.GroupKind{Group: w.of.Group, Kind: w.of.Kind}
	if w.as != nil || w.always || kind != cluster.PodKind && kind != cluster.NodeKind {
		if err := authz.Require(ctx, p.Authorizer, u, info); err != nil {
			return nil, err
		}
	}
	call, err := p.Verbs.Call(catalog.GroupResource{Group: w.of.Group, Resource: w.of.Plural}, w.namespace, w.name, u)
	if err != nil {
		return nil, err
	}
	return call.In(v).Under(w.subresource), nil
}

// another returns a user by name, and the request attributes of impersonating that user.
func another(name string) (user.Info, *request.Info) {
	u := &user.DefaultInfo{Name: name, Groups: []string{user.AllAuthenticated}}
	info := &request.Info{Verb: "impersonate", IsResource: true, Resource: "users", Name: name}
	if account, ok := strings.CutPrefix(name, "system:serviceaccount:"); ok {
		namespace, account, _ := strings.Cut(account, ":")
		u.Groups = append(u.Groups, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
		info.Resource, info.Namespace, info.Name = "serviceaccounts", namespace, account
	}
	return u, info
}

// reference returns how events name an object.
func (p *player) reference(t target) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: t.entry.APIVersion, Kind: t.of.Kind, Namespace: t.entry.Namespace, Name: t.entry.Name,
		UID: types.UID(t.entry.UID), ResourceVersion: fmt.Sprint(t.entry.Revision),
	}
}
