package storageversion

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	apiserverinternalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
)

type status = apiserverinternalv1alpha1.StorageVersionStatus

// manager is the field manager of a server's writes.
const manager = "kube-apiserver"

// read decodes a StorageVersion.
func read(e *watchcache.Entry) (*apiserverinternalv1alpha1.StorageVersion, error) {
	v := &apiserverinternalv1alpha1.StorageVersion{}
	if err := json.Unmarshal(e.JSON(), v); err != nil {
		return nil, fmt.Errorf("decode storage version %s: %w", e.Name, err)
	}
	return v, nil
}

func has(all []entry, server string) bool {
	return slices.ContainsFunc(all, func(e entry) bool { return e.APIServerID == server })
}

// create creates a StorageVersion without entries: the status is a subresource.
func create(ctx context.Context, h *part.Host, name string) error {
	c, err := h.Verbs.Call(resource, "", name, verb.ServerUser())
	if err != nil {
		return err
	}
	obj, err := h.Verbs.New(c, object.Object{"metadata": object.Object{"name": name}, "spec": object.Object{}})
	if err == nil {
		_, err = h.Verbs.Create(ctx, c, obj, metav1.CreateOptions{FieldManager: manager})
	}
	return err
}

// change updates and summarizes the status of a StorageVersion, if edit reports a change.
func change(ctx context.Context, h *part.Host, name string, edit func(*status) bool) error {
	c, err := h.Verbs.Call(resource, "", name, verb.ServerUser())
	if err != nil {
		return err
	}
	c = c.Under("status")
	_, err = h.Verbs.Update(ctx, c, metav1.UpdateOptions{FieldManager: manager},
		func(obj object.Object) (object.Object, error) {
			v := &apiserverinternalv1alpha1.StorageVersion{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, v); err != nil {
				return nil, fmt.Errorf("decode storage version %s: %w", name, err)
			}
			if !edit(&v.Status) {
				return obj, nil
			}
			summarize(v, metav1.NewTime(h.Now()))
			now, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v.Status)
			obj["status"] = now
			return obj, err
		})
	return err
}

// leave removes entries from a StorageVersion, and deletes it if none is left.
func leave(ctx context.Context, h *part.Host, name string, gone func(entry) bool) error {
	e := h.View.Collection(ref.StorageVersions.Prefix).Snapshot().Get("", name)
	if e == nil {
		return nil
	}
	v, err := read(e)
	if err != nil || !slices.ContainsFunc(v.Status.StorageVersions, gone) {
		return err
	}
	if rest := slices.DeleteFunc(v.Status.StorageVersions, gone); len(rest) > 0 {
		err = change(ctx, h, name, func(s *status) bool {
			rest = slices.DeleteFunc(s.StorageVersions, gone)
			if len(rest) == 0 || len(rest) == len(s.StorageVersions) {
				return false
			}
			s.StorageVersions = rest
			return true
		})
		if err == nil && len(rest) == 0 { // all others have left meanwhile
			err = fmt.Errorf("storage version %s has changed meanwhile", name)
		}
	} else {
		err = remove(ctx, h, e)
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// remove deletes a StorageVersion unless it has changed: another server may have written its entry meanwhile.
func remove(ctx context.Context, h *part.Host, e *watchcache.Entry) error {
	c, err := h.Verbs.Call(resource, "", e.Name, verb.ServerUser())
	if err != nil {
		return err
	}
	seen := strconv.FormatInt(e.Revision, 10)
	_, err = h.Verbs.Delete(ctx, c, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &seen}})
	return err
}
