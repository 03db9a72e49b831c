package crd

import (
	"context"
	"encoding/json"
	"reflect"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/crd/own"
)

// Rules returns the strategy of the kind CustomResourceDefinition. Checks common to all kinds are the caller's task:
// object metadata is not validated here, except for the name, which must match the spec.
//
// A definition is established by the write that creates it, so the strategy reads the other definitions of its group.
func Rules() *catalog.Strategy {
	v := NewValidator()
	return &catalog.Strategy{
		Decode:         decodeObject,
		Store:          dropEmpty,
		Default:        defaultObject,
		PrepareCreate:  prepareCreate,
		PrepareUpdate:  prepareUpdate,
		PrepareDelete:  prepareDelete,
		FencesContents: true,
		Validate: func(ctx context.Context, obj catalog.Object) field.ErrorList {
			def, errs := decodeFor(obj)
			if def == nil {
				return errs
			}
			errs = append(append(nameErrors(def), v.until(ctx).validateNew(def)...), checkSensitive(obj)...)
			if len(errs) == 0 {
				errs = checkOwn(ctx, obj, nil, def)
			}
			return errs
		},
		ValidateUpdate: func(ctx context.Context, obj, old catalog.Object, subresource string) field.ErrorList {
			if subresource == "status" {
				def, errs := decodeFor(withoutSpec(obj))
				if def == nil {
					return errs
				}
				return checkAcceptedNames(def)
			}
			def, errs := decodeFor(obj)
			was, oldErrs := decodeFor(old)
			if def == nil || was == nil {
				return append(errs, oldErrs...)
			}
			errs = append(v.until(ctx).validateChange(def, was), checkSensitive(obj)...)
			if len(errs) == 0 {
				errs = checkOwn(ctx, obj, old, def)
			}
			return errs
		},
		Proof:    proof,
		Warnings: warnings,
		Serial:   true,
	}
}

// decodeFor decodes a definition for validation. The object has passed Decode, so an error means that a later step
// broke it.
func decodeFor(obj catalog.Object) (*apiextensionsv1.CustomResourceDefinition, field.ErrorList) {
	def, err := Decode(obj)
	if err != nil {
		return nil, field.ErrorList{field.InternalError(nil, err)}
	}
	return def, nil
}

func withoutSpec(obj catalog.Object) catalog.Object {
	return catalog.Object{"metadata": obj["metadata"], "status": obj["status"]}
}

func nameErrors(def *apiextensionsv1.CustomResourceDefinition) (errs field.ErrorList) {
	for _, problem := range checkName(def, def.Name) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), def.Name, problem))
	}
	return errs
}

func prepareCreate(obj catalog.Object, e catalog.Env) {
	if metadata, _ := obj["metadata"].(map[string]any); metadata != nil {
		metadata["generation"] = int64(1)
	}
	setStatus(obj, &apiextensionsv1.CustomResourceDefinitionStatus{})
	addStoredVersion(obj)
	refreshStatus(obj, e)
}

func prepareUpdate(obj, old catalog.Object, subresource string, e catalog.Env) {
	if subresource == "status" {
		obj["spec"] = old["spec"]
		return
	}
	KeepSensitive(obj, old)
	own.DropColumns(obj, old)
	obj["status"] = clone(old["status"])
	metadata, _ := obj["metadata"].(map[string]any)
	before, _ := old["metadata"].(map[string]any)
	if metadata != nil && before != nil {
		generation, _ := before["generation"].(int64)
		if !reflect.DeepEqual(obj["spec"], old["spec"]) || annotationsChanged(obj, old) {
			generation++ // the annotations stand for fields of the spec
		}
		metadata["generation"] = generation
	}
	addStoredVersion(obj)
	refreshStatus(obj, e)
}

func prepareDelete(obj catalog.Object, e catalog.Env) (update bool) {
	if dig(obj, "metadata", "deletionTimestamp") != nil {
		return false
	}
	markDeleted(obj, e.Now)
	return true
}

// refreshStatus computes the conditions and accepted names.
func refreshStatus(obj catalog.Object, e catalog.Env) {
	def, err := decodeHead(obj)
	if err != nil {
		return // validation reports it
	}
	if status, changed := Status(def, Claims(e.Snapshot, def.Spec.Group, def.Name), e.Now); changed {
		setStatus(obj, status)
	}
}

// Refresh computes the status of a stored definition, decoded JSON, anew, in place: other definitions of its group may
// have taken or freed names. It reports whether anything changed.
func Refresh(obj map[string]any, others []Claim, now time.Time) (changed bool, err error) {
	def, err := Decode(obj)
	if err != nil {
		return false, err
	}
	status, changed := Status(def, others, now)
	if changed {
		setStatus(obj, status)
	}
	return changed, nil
}

// decodeHead is DecodeWithoutSchemas for decoded JSON.
func decodeHead(obj map[string]any) (*apiextensionsv1.CustomResourceDefinition, error) {
	if dig(obj, "spec", "preserveUnknownFields") == true {
		return Decode(obj) // its status depends on its schemas
	}
	spec, _ := obj["spec"].(map[string]any)
	list, _ := spec["versions"].([]any)
	versions := make([]any, len(list))
	for i := range list {
		versions[i] = without(list[i], "schema")
	}
	head := make(map[string]any, len(spec))
	for k, v := range spec {
		head[k] = v
	}
	if list != nil {
		head["versions"] = versions
	}
	return Decode(map[string]any{
		"metadata": without(obj["metadata"], "managedFields"), "spec": head, "status": obj["status"],
	})
}

// without returns a shallow copy of an object without one field.
func without(v any, name string) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := make(map[string]any, len(m))
	for k, v := range m {
		if k != name {
			out[k] = v
		}
	}
	return out
}

// addStoredVersion adds the storage version of a definition to status.storedVersions.
func addStoredVersion(obj catalog.Object) {
	status, _ := obj["status"].(map[string]any)
	versions, _ := dig(obj, "spec", "versions").([]any)
	if status == nil {
		return
	}
	stored, _ := status["storedVersions"].([]any)
	for _, v := range versions {
		m, _ := v.(map[string]any)
		if m["storage"] != true {
			continue
		}
		for _, have := range stored {
			if have == m["name"] {
				return
			}
		}
		status["storedVersions"] = append(append(make([]any, 0, len(stored)+1), stored...), m["name"])
		return
	}
}

// statusOf returns the status of a definition.
func statusOf(obj map[string]any) (*apiextensionsv1.CustomResourceDefinitionStatus, error) {
	def, err := Decode(map[string]any{"status": obj["status"]})
	if err != nil {
		return nil, err
	}
	return &def.Status, nil
}

// setStatus replaces the status of a definition.
func setStatus(obj map[string]any, status *apiextensionsv1.CustomResourceDefinitionStatus) {
	raw, err := json.Marshal(status)
	if err != nil {
		panic("crd: status cannot be encoded: " + err.Error()) // it holds only strings and times
	}
	var m map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &m); err != nil {
		panic("crd: status cannot be decoded: " + err.Error())
	}
	obj["status"] = m
}

// clone copies decoded JSON.
func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, child := range v {
			out[k] = clone(child)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, child := range v {
			out[i] = clone(child)
		}
		return out
	}
	return v
}
