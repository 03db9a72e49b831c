package rest

import (
	"context"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
)

// isApply tells whether a patch is server-side apply, in YAML or CBOR.
func isApply(kind types.PatchType) bool {
	return kind == types.ApplyYAMLPatchType || kind == types.ApplyCBORPatchType
}

// decodeApply decodes the body of an apply; repeated is the error about keys that stand in it twice, if strict looks
// for them.
func decodeApply(kind types.PatchType, body []byte, strict bool) (applied Object, repeated, err error) {
	if kind == types.ApplyCBORPatchType {
		err = codec.UnmarshalCBOR(body, &applied)
		if applied == nil {
			applied = Object{}
		}
	} else {
		applied, repeated, err = codec.DecodeApply(body, strict)
	}
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
	}
	return applied, repeated, nil
}

// Apply is server-side apply: body is the YAML, JSON or, by its kind, CBOR of the fields that the manager
// o.FieldManager wants. An object that does not exist is created.
func (s *Server) Apply(ctx context.Context, c *Call, kind types.PatchType, body []byte, o metav1.PatchOptions) (*Result,
	error) {
	c.applies = true
	for {
		res, err := s.replace(ctx, c, updateOptionsOf(o), func(e *watchcache.Entry, old Object) (Object, error) {
			obj, err := s.merge(ctx, c, old, kind, body, o)
			if err == nil && (e.IsConverted() || e.APIVersion != c.apiVersion()) {
				// A converted object may lack defaults, and obj shares its values. Kubernetes fills them in only if
				// the apply changes something.
				if sameButOwnership(obj, old) {
					return obj, c.matches(obj)
				}
				obj = runtime.DeepCopyJSON(obj)
			}
			return c.normalizeApplied(obj, err)
		})
		if !apierrors.IsNotFound(err) || c.Subresource != "" {
			return res, err
		}
		res, err = s.applyNew(ctx, c, kind, body, o)
		if apierrors.IsAlreadyExists(err) || retry(err) {
			continue // somebody was faster: apply to what they made
		}
		return res, err
	}
}

// applyNew creates an object by apply.
func (s *Server) applyNew(
	ctx context.Context, c *Call, kind types.PatchType, body []byte, o metav1.PatchOptions,
) (*Result, error) {
	if c.Resource.Terminating {
		return nil, terminating(c, "create")
	}
	defer s.lock(c)()
	s.refresh(c)
	obj, err := c.normalizeApplied(s.merge(ctx, c, nil, kind, body, o))
	if err != nil {
		return nil, err
	}
	meta := object.Meta(obj)
	if uid := object.String(meta, "uid"); uid != "" {
		return nil,
			apierrors.NewConflict(c.groupResource(), c.Name,
				fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", uid))
	}
	delete(meta, "resourceVersion") // one that nothing can have is not asked for
	a := s.admissionAttributes(ctx, c, admit.Create, c.Name,
		&metav1.CreateOptions{DryRun: o.DryRun, FieldManager: o.FieldManager, FieldValidation: o.FieldValidation},
		isDryRun(o.DryRun))
	a.Object = obj
	res, err := s.storeNew(ctx, c, a)
	if err == nil {
		res.Created = true
	}
	return res, err
}

// merge applies the body to the live object (nil if there is none). The result shares live's values.
func (s *Server) merge(
	ctx context.Context, c *Call, live Object, kind types.PatchType, body []byte, o metav1.PatchOptions,
) (Object, error) {
	own, err := s.ownership(ctx, c)
	if err != nil {
		return nil, err
	}
	validation := fieldValidation(o.FieldValidation)
	applied, repeated, err := decodeApply(kind, body, validation != metav1.FieldValidationIgnore)
	if err != nil {
		return nil, err
	}
	obj, err := own.Apply(live, applied, o.FieldManager, o.Force != nil && *o.Force, s.Now())
	if err != nil {
		return nil, err
	}
	if repeated != nil {
		if validation == metav1.FieldValidationStrict {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("error strict decoding YAML: %v", repeated))
		}
		c.warnStrict(ctx, []string{repeated.Error()})
	}
	return obj, nil
}

// sameButOwnership reports whether a and b differ in nothing but metadata.managedFields.
func sameButOwnership(a, b Object) bool {
	metaA, metaB := maps.Clone(object.Meta(a)), maps.Clone(object.Meta(b))
	delete(metaA, "managedFields")
	delete(metaB, "managedFields")
	return sameBeyondMeta(a, b) && codec.Equal(metaA, metaB)
}

// normalizeApplied gives what merge returned what a decoded object has: defaults, and a name and a namespace that
// agree with the path. A custom object gets defaults, and the form of metadata, only: what was applied is known to its
// schema, or merge has refused it.
func (c *Call) normalizeApplied(obj Object, err error) (Object, error) {
	if err != nil {
		return nil, err
	}
	if !c.Resource.Custom() {
		if _, err := c.normalize(obj); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return obj, c.matches(obj)
	}
	if _, err := checkMeta(obj); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	sch, err := c.Version.Schema()
	if err != nil {
		return nil, err
	}
	if sch != nil {
		sch.NormalizeApplied(obj)
	}
	return obj, c.matches(obj)
}
