package bootstrap

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/verb"
)

const manager = "kube-apiserver"

// attempts is how often an object is looked at that others write at the same time.
const attempts = 5

// reconcile creates an object of the policy, or adds missing parts to the stored one.
func (b *bootstrap) reconcile(ctx context.Context, line string) error {
	want := Object{json: line}
	if err := json.Unmarshal([]byte(line), &want); err != nil {
		return err
	}
	var err error
	for range attempts {
		err = b.reconcileOnce(ctx, &want)
		// Another server does the same, or a client changes it.
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			break
		}
		if _, late := b.host.View.Fresh(ctx); late != nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", want.Kind, want.Name, err)
	}
	return nil
}

func (b *bootstrap) reconcileOnce(ctx context.Context, want *Object) error {
	call, err := b.call(want, want.Name)
	if err != nil {
		return err
	}
	e := b.host.View.Collection(want.resource()).Snapshot().Get(want.Namespace, want.Name)
	if e == nil {
		return b.create(ctx, call, want)
	}
	var have Object
	if err := json.Unmarshal(e.JSON(), &have); err != nil {
		return err
	}
	if have.Annotations[rbacv1.AutoUpdateAnnotationKey] == "false" {
		return nil
	}
	if want.RoleRef != have.RoleRef { // roleRef is immutable
		uid := types.UID(e.UID)
		if _, err := b.host.Verbs.Delete(ctx, call,
			metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}); err != nil {
			return err
		}
		if call, err = b.call(want, want.Name); err != nil {
			return err
		}
		return b.create(ctx, call, want)
	}
	if !complete(&have, want) {
		return nil
	}
	_, err = b.host.Verbs.Update(ctx, call, metav1.UpdateOptions{FieldManager: manager},
		func(obj object.Object) (object.Object, error) {
			var now Object
			if err := json.Unmarshal(codec.AppendJSON(nil, obj), &now); err != nil {
				return nil, err
			}
			complete(&now, want)
			return write(obj, &now)
		})
	return err
}

func (b *bootstrap) call(o *Object, name string) (*verb.Call, error) {
	return b.host.Verbs.Call(catalog.GroupResource{Group: rbacv1.GroupName, Resource: o.resource()}, o.Namespace, name,
		verb.ServerUser())
}

func (b *bootstrap) create(ctx context.Context, call *verb.Call, want *Object) error {
	obj, err := decodeLine(want.json)
	if err != nil {
		return err
	}
	return b.make(ctx, call, obj)
}

func (b *bootstrap) make(ctx context.Context, call *verb.Call, obj object.Object) error {
	obj, err := b.host.Verbs.New(call, obj)
	if err != nil {
		return err
	}
	_, err = b.host.Verbs.Create(ctx, call, obj, metav1.CreateOptions{FieldManager: manager})
	return err
}

// split copies subjects, labels and annotations of the older binding to a binding that was split off from it: an
// administrator may have restricted the older one.
func (b *bootstrap) split(ctx context.Context, line string) error {
	bindings := b.host.View.Collection(ref.ClusterRoleBindings.Prefix).Snapshot()
	from := bindings.Get("", "system:discovery")
	if from == nil || bindings.Get("", splitOff) != nil {
		return nil
	}
	old, err := decodeLine(string(from.JSON()))
	if err != nil {
		return err
	}
	obj, err := decodeLine(line)
	if err != nil {
		return err
	}
	object.SetOrDelete(obj, "subjects", old["subjects"], old["subjects"] != nil)
	for _, name := range []string{"labels", "annotations"} {
		v := object.Meta(old)[name]
		object.SetOrDelete(object.Meta(obj), name, v, v != nil)
	}
	call, err := b.call(&Object{TypeMeta: metav1.TypeMeta{Kind: "ClusterRoleBinding"}}, splitOff)
	if err != nil {
		return err
	}
	return control.IgnoreExists(b.make(ctx, call, obj))
}

// splitOff is a binding that was part of another one until Kubernetes 1.14.
const splitOff = "system:public-info-viewer"

// complete adds the missing parts of want to have, and reports whether there were any.
func complete(have, want *Object) (changed bool) {
	changed = addMissing(&have.Annotations, want.Annotations)
	changed = addMissing(&have.Labels, want.Labels) || changed
	if covered, missing := validation.Covers(have.Rules, want.Rules); !covered {
		have.Rules = append(have.Rules, missing...)
		changed = true
	}
	switch {
	case want.AggregationRule == nil && have.AggregationRule != nil:
		have.AggregationRule = nil
		changed = true
	case want.AggregationRule != nil:
		if have.AggregationRule == nil {
			have.AggregationRule = &rbacv1.AggregationRule{}
		}
		list := &have.AggregationRule.ClusterRoleSelectors
		for _, s := range want.AggregationRule.ClusterRoleSelectors {
			if !slices.ContainsFunc(*list, func(t metav1.LabelSelector) bool {
				return equality.Semantic.DeepEqual(s, t)
			}) {
				*list = append(*list, s)
				changed = true
			}
		}
	}
	for _, s := range want.Subjects {
		if !slices.Contains(have.Subjects, s) {
			have.Subjects = append(have.Subjects, s)
			changed = true
		}
	}
	return changed
}

// addMissing adds missing keys to a map. It keeps existing values, since an administrator may have set them.
func addMissing(have *map[string]string, want map[string]string) (changed bool) {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if _, ok := (*have)[key]; ok {
			continue
		}
		if *have == nil {
			*have = map[string]string{}
		}
		(*have)[key] = want[key]
		changed = true
	}
	return changed
}

// write writes the fields that complete changes into obj.
func write(obj object.Object, o *Object) (object.Object, error) {
	raw, err := json.Marshal(map[string]any{
		"metadata":        map[string]any{"labels": o.Labels, "annotations": o.Annotations},
		"aggregationRule": o.AggregationRule, "rules": o.Rules, "subjects": o.Subjects,
	})
	if err != nil {
		return nil, err
	}
	changed, err := decodeLine(string(raw))
	if err != nil {
		return nil, err
	}
	optional := "subjects"
	if o.RoleRef == (rbacv1.RoleRef{}) {
		optional = "aggregationRule"
		obj["rules"] = changed["rules"] // null if there are none
	}
	object.SetOrDelete(obj, optional, changed[optional], changed[optional] != nil)
	for _, name := range []string{"labels", "annotations"} {
		v := object.Meta(changed)[name]
		object.SetOrDelete(object.Meta(obj), name, v, v != nil)
	}
	return obj, nil
}
