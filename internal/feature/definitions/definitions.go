// Package definitions protects stored objects from writes of their definition.
//
// It is a part with the verb.Protection of CustomResourceDefinitions. An update is compared with the stored
// definition, and the stored objects are checked by the schemas before and after it (package compat). The client gets
// the findings as a warning, or as the errors of a refusal. The deletion of a definition with objects, and the removal
// of a version that has stored objects, can be refused. Two flags set the default, and two annotations of a definition
// override it.
//
// The protection is safe for concurrent use. A proof that it returns belongs to one write.
package definitions

import (
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/crd"
	"github.com/bowsprit/bowsprit/internal/feature/compat"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/storage/watchcache"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// ProtectAnnotation is the annotation of a definition that protects its objects, "true" or "false".
const ProtectAnnotation = "bowsprit.dev/protect-definition"

// Settings are the settings of definitions without the annotations.
type Settings struct {
	// Mode is the treatment of changes; "" means Warn.
	Mode compat.Mode
	// Protect refuses the deletion of definitions with objects.
	Protect bool
	// Within bounds the check of stored objects for a warning; 0 means 2 seconds.
	Within time.Duration
}

// Part returns the part.
func Part(s Settings) part.Part {
	if s.Mode == "" {
		s.Mode = compat.Warn
	}
	if s.Within == 0 {
		s.Within = 2 * time.Second
	}
	return part.Part{Name: "changes of definitions", Handlers: func(h *part.Host) part.Handlers {
		p := &protection{settings: s, view: h.View}
		return part.Handlers{Protections: map[string]verb.Protection{
			"customresourcedefinitions.apiextensions.k8s.io": {Proofs: p.proofs, Delete: p.mayDelete},
		}}
	}}
}

// protection checks writes of definitions.
type protection struct {
	settings Settings
	view     *watchcache.View
}

// proofs returns the checks before a write of a definition; old is nil for a new one.
func (p *protection) proofs(c *verb.Call, obj, old object.Object) ([]*catalog.Proof, field.ErrorList) {
	switch {
	case c.Subresource == "status":
		return p.forgotten(obj, old), nil
	case c.Subresource != "":
		return nil, nil
	}
	errs := checkAnnotations(obj, old)
	if len(errs) > 0 || old == nil || object.Meta(obj)["generation"] == object.Meta(old)["generation"] {
		return nil, errs // the generation changes with the spec
	}
	now, was, err := decode(c, obj, old)
	if err != nil {
		return nil, field.ErrorList{field.InternalError(nil, err)}
	}
	all := p.removed(now, was)
	for _, proof := range []*catalog.Proof{p.change(now, was), p.ends(now, was)} {
		if proof != nil {
			all = append(all, proof)
		}
	}
	return all, nil
}

// state is a definition before or after an update.
type state struct {
	*apiextensionsv1.CustomResourceDefinition
	object object.Object // in v1
}

// decode decodes both states of a definition of the call's version.
func decode(c *verb.Call, obj, old object.Object) (now, was state, err error) {
	for _, s := range []struct {
		from object.Object
		to   *state
	}{{obj, &now}, {old, &was}} {
		s.to.object = s.from
		if v1 := c.Resource.Version("v1"); c.Version != v1 {
			s.to.object = runtime.DeepCopyJSON(s.from)
			if err := crd.Convert(c.Version, v1, s.to.object); err != nil {
				return now, was, err
			}
		}
		if s.to.CustomResourceDefinition, err = crd.Decode(s.to.object); err != nil {
			return now, was, err
		}
	}
	return now, was, nil
}

// contents returns the kind of the objects of a definition.
func contents(def *apiextensionsv1.CustomResourceDefinition) catalog.GroupResource {
	return catalog.GroupResource{Group: def.Spec.Group, Resource: def.Spec.Names.Plural}
}
