package schema

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// extensions checks x-kubernetes-preserve-unknown-fields, -map-type, -list-type and -list-map-keys.
func (k *keywords) extensions(p *apiextensionsv1.JSONSchemaProps, at *spot) {
	if p.XPreserveUnknownFields != nil && !*p.XPreserveUnknownFields {
		k.add(field.Invalid(at.child("x-kubernetes-preserve-unknown-fields"), false, "must be true or undefined"))
	}
	if p.XMapType != nil {
		k.typeMustBe(p, "object", "x-kubernetes-map-type", at)
		k.oneOf(*p.XMapType, "x-kubernetes-map-type", []string{"atomic", "granular"}, at)
	}
	if p.XListType != nil {
		if k.typeMustBe(p, "array", "x-kubernetes-list-type", at) && !k.options.AllowNonAtomicSets {
			k.setItems(p, at)
		}
		k.oneOf(*p.XListType, "x-kubernetes-list-type", []string{"atomic", "set", "map"}, at)
	}
	if len(p.XListMapKeys) > 0 {
		const why = "must be map if x-kubernetes-list-map-keys is non-empty"
		if p.XListType == nil {
			k.add(field.Required(at.child("x-kubernetes-list-type"), why))
		} else if *p.XListType != "map" {
			k.add(field.Invalid(at.child("x-kubernetes-list-type"), *p.XListType, why))
		}
	}
	if p.XListType != nil && *p.XListType == "map" {
		k.mapItems(p, at)
	}
	if !k.options.AllowLooseMapKeys {
		k.errs = append(k.errs, looseMapKeys(p, at)...)
	}
}

func (k *keywords) typeMustBe(p *apiextensionsv1.JSONSchemaProps, want, keyword string, at *spot) bool {
	why := "must be " + want + " if " + keyword + " is specified"
	switch p.Type {
	case want:
		return true
	case "":
		k.add(field.Required(at.child("type"), why))
	default:
		k.add(field.Invalid(at.child("type"), p.Type, why))
	}
	return false
}

func (k *keywords) oneOf(value, keyword string, values []string, at *spot) {
	if !slices.Contains(values, value) {
		k.add(field.NotSupported(at.child(keyword), value, values))
	}
}

// setItems checks that the items of a set are compared as wholes.
func (k *keywords) setItems(p *apiextensionsv1.JSONSchemaProps, at *spot) {
	const why = "must be atomic as item of a list with x-kubernetes-list-type=set"
	if !hasNonAtomicSet(p) {
		return
	}
	items := itemsOf(p)
	keyword := "x-kubernetes-list-type"
	if items.Type == "object" {
		keyword = "x-kubernetes-map-type"
	}
	// The value is the list type in both cases, a slip of kube-apiserver's that clients see.
	k.add(field.Invalid(at.child("items").Child(keyword), items.XListType, why))
}

// hasNonAtomicSet reports whether p is a set with non-atomic items. Lists are atomic by default, maps are not.
func hasNonAtomicSet(p *apiextensionsv1.JSONSchemaProps) bool {
	items := itemsOf(p)
	if p.XListType == nil || *p.XListType != "set" || items == nil {
		return false
	}
	switch items.Type {
	case "array":
		return items.XListType != nil && *items.XListType != "atomic"
	case "object":
		return items.XMapType == nil || *items.XMapType != "atomic"
	}
	return false
}

// mapItems checks that the items of a map list have the list's keys.
func (k *keywords) mapItems(p *apiextensionsv1.JSONSchemaProps, at *spot) {
	if len(p.XListMapKeys) == 0 {
		k.add(field.Required(at.child("x-kubernetes-list-map-keys"),
			"must not be empty if x-kubernetes-list-type is map"))
	}
	if p.Items == nil {
		k.add(field.Required(at.child("items"), "must have a schema if x-kubernetes-list-type is map"))
		return
	}
	items := p.Items.Schema
	if items == nil {
		k.add(field.Invalid(at.child("items"), KubeValue(*p.Items),
			"must only have a single schema if x-kubernetes-list-type is map"))
		return
	}
	if items.Type != "object" {
		k.add(field.Invalid(at.child("items").Child("type"), items.Type,
			"must be object if parent array's x-kubernetes-list-type is map"))
		return
	}
	seen := map[string]bool{}
	for _, key := range p.XListMapKeys {
		if s, ok := items.Properties[key]; !ok {
			k.add(field.Invalid(at.child("x-kubernetes-list-map-keys"), p.XListMapKeys,
				"entries must all be names of item properties"))
		} else if s.Type == "array" || s.Type == "object" {
			k.add(field.Invalid(at.child("items").Child("properties").Key(key).Child("type"), items.Type,
				"must be a scalar type if parent array's x-kubernetes-list-type is map"))
		}
		if seen[key] {
			k.add(field.Invalid(at.child("x-kubernetes-list-map-keys"), p.XListMapKeys,
				"must not contain duplicate entries"))
		}
		seen[key] = true
	}
}

// looseMapKeys checks that an item of a set or map list cannot be null, and that an item of a map list has its keys.
func looseMapKeys(p *apiextensionsv1.JSONSchemaProps, at *spot) (errs field.ErrorList) {
	items := itemsOf(p)
	if items == nil || p.XListType == nil || *p.XListType != "set" && *p.XListType != "map" {
		return nil
	}
	if items.Nullable {
		errs = append(errs,
			field.Forbidden(at.child("items").Child("nullable"), "cannot be nullable when x-kubernetes-list-type is "+
				*p.XListType))
	}
	if *p.XListType != "map" {
		return errs
	}
	required := sets.New(items.Required...)
	for _, key := range p.XListMapKeys {
		s, ok := items.Properties[key]
		if !ok {
			continue
		}
		path := at.child("items").Child("properties").Key(key)
		if !required.Has(key) && s.Default == nil {
			errs = append(errs,
				field.Required(path.Child("default"),
					"this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"))
		}
		if s.Nullable {
			errs = append(errs,
				field.Forbidden(path.Child("nullable"),
					"this property is in x-kubernetes-list-map-keys, so it cannot be nullable"))
		}
	}
	return errs
}
