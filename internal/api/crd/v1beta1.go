package crd

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/crd/own"
	"github.com/bowsprit/bowsprit/internal/api/reshape"
)

// Definitions of apiextensions.k8s.io/v1beta1 have parts common to all versions once, at the top of the spec, and need
// not have structural schemas. This file works on decoded JSON of both versions; the rules follow the conversion
// functions of k8s.io/apiextensions-apiserver/pkg/apis/apiextensions.

const (
	betaVersion = "apiextensions.k8s.io/v1beta1"
	v1Version   = "apiextensions.k8s.io/v1"
)

// Convert converts a definition between the versions, in place: catalog.Resource.Convert.
func Convert(from, to *catalog.Version, obj catalog.Object) error {
	switch {
	case from.Name == "v1beta1" && to.Name == "v1":
		toV1(obj)
	case from.Name == "v1" && to.Name == "v1beta1":
		toBeta(obj)
	default:
		return fmt.Errorf("definitions have no versions %s and %s", from.Name, to.Name)
	}
	return nil
}

// tops are the fields that v1beta1 has at the top of the spec and in each version; v1 has them in each version.
var tops = []struct{ top, each string }{
	{"validation", "schema"}, {"subresources", "subresources"},
	{"additionalPrinterColumns", "additionalPrinterColumns"},
	{"selectableFields", "selectableFields"},
}

// toV1 converts a definition of v1beta1 to v1. A field at the top overrides the field in all versions.
func toV1(obj catalog.Object) {
	obj["apiVersion"] = v1Version
	spec, _ := obj["spec"].(map[string]any)
	if spec == nil {
		return
	}
	versions, _ := spec["versions"].([]any)
	if name, _ := spec["version"].(string); len(versions) == 0 && name != "" {
		versions = []any{map[string]any{"name": name, "served": true, "storage": true}}
		spec["versions"] = versions
	}
	delete(spec, "version")
	for _, t := range tops {
		top, there := spec[t.top]
		delete(spec, t.top)
		for i, v := range versions {
			version, _ := v.(map[string]any)
			if version == nil {
				continue
			}
			if there && top != nil {
				version[t.each] = top
				if i > 0 {
					version[t.each] = clone(top) // objects share no values
				}
			}
			if t.each == "additionalPrinterColumns" {
				renameEach(version[t.each], "JSONPath", "jsonPath")
			}
		}
	}
	if spec["preserveUnknownFields"] == false {
		delete(spec, "preserveUnknownFields") // as the Go type of v1 writes it
	}
	conversion, _ := spec["conversion"].(map[string]any)
	if conversion != nil {
		conversionToV1(conversion)
	}
}

// toBeta converts a definition of v1 to v1beta1. Parts common to all versions move to the top.
func toBeta(obj catalog.Object) {
	obj["apiVersion"] = betaVersion
	spec, _ := obj["spec"].(map[string]any)
	if spec == nil {
		return
	}
	if spec["preserveUnknownFields"] == nil {
		spec["preserveUnknownFields"] = false
	}
	if conversion, _ := spec["conversion"].(map[string]any); conversion != nil {
		conversionToBeta(conversion)
	}
	versions, _ := spec["versions"].([]any)
	if len(versions) == 0 {
		return
	}
	first, _ := versions[0].(map[string]any)
	spec["version"] = first["name"]
	for _, t := range tops {
		common := first[t.each]
		same := true
		for _, v := range versions {
			version, _ := v.(map[string]any)
			if t.each == "additionalPrinterColumns" {
				renameEach(version[t.each], "jsonPath", "JSONPath")
			}
			same = same && equality.Semantic.DeepEqual(version[t.each], common)
		}
		if !same {
			continue
		}
		for _, v := range versions {
			version, _ := v.(map[string]any)
			delete(version, t.each)
		}
		if common != nil {
			spec[t.top] = common
		}
	}
}

func renameEach(list any, from, to string) {
	entries, _ := list.([]any)
	for _, e := range entries {
		if m, ok := e.(map[string]any); ok {
			if v, there := m[from]; there {
				m[to] = v
				delete(m, from)
			}
		}
	}
}

// defaultBeta sets the defaults of apiextensions.k8s.io/v1beta1.
func defaultBeta(obj catalog.Object) {
	spec, _ := obj["spec"].(map[string]any)
	if spec == nil {
		return
	}
	if text, _ := spec["scope"].(string); text == "" {
		spec["scope"] = string(apiextensionsv1beta1.NamespaceScoped)
	}
	names, _ := spec["names"].(map[string]any)
	kind, _ := names["kind"].(string)
	if text, _ := names["singular"].(string); names != nil && text == "" && kind != "" {
		names["singular"] = strings.ToLower(kind)
	}
	if text, _ := names["listKind"].(string); names != nil && text == "" && kind != "" {
		names["listKind"] = kind + "List"
	}
	versions, _ := spec["versions"].([]any)
	version, _ := spec["version"].(string)
	if len(versions) == 0 && version != "" {
		spec["versions"] = []any{map[string]any{"name": version, "served": true, "storage": true}}
	}
	if version == "" && len(versions) > 0 {
		if first, _ := versions[0].(map[string]any); first != nil {
			spec["version"] = first["name"]
		}
	}
	conversion, _ := spec["conversion"].(map[string]any)
	if conversion == nil {
		conversion = map[string]any{"strategy": string(apiextensionsv1beta1.NoneConverter)}
		spec["conversion"] = conversion
	}
	if reviews, _ := conversion["conversionReviewVersions"].([]any); len(reviews) == 0 &&
		conversion["strategy"] == string(apiextensionsv1beta1.WebhookConverter) {
		conversion["conversionReviewVersions"] = []any{"v1beta1"}
	}
	if service, _ := dig(conversion, "webhookClientConfig", "service").(map[string]any); service != nil &&
		service["port"] == nil {
		service["port"] = int64(443)
	}
	if spec["preserveUnknownFields"] == nil {
		spec["preserveUnknownFields"] = true
	}
	status, _ := obj["status"].(map[string]any)
	if status == nil {
		return
	}
	if stored, _ := status["storedVersions"].([]any); len(stored) == 0 {
		addStoredVersion(obj)
	}
}

// decodeBeta is the Decode function of v1beta1: it brings obj into the form of the Go type.
func decodeBeta(obj catalog.Object) (unknown []string, err error) {
	reshape.TakeRules(obj)
	own.TakeColumns(obj)
	own.TakeImmutable(obj)
	raw, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	typed := &apiextensionsv1beta1.CustomResourceDefinition{}
	strict, err := kjson.UnmarshalStrict(raw, typed, kjson.DisallowUnknownFields)
	if err != nil {
		return nil, err
	}
	for _, e := range strict {
		if f, ok := e.(kjson.FieldError); ok {
			unknown = append(unknown, f.FieldPath())
		}
	}
	// Through bytes: the types of schemas have custom encoders, which the converter ignores.
	if raw, err = json.Marshal(typed); err != nil {
		return nil, err
	}
	var out map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &out); err != nil {
		return nil, err
	}
	if meta, _ := out["metadata"].(map[string]any); meta != nil && meta["creationTimestamp"] == nil {
		delete(meta, "creationTimestamp")
	}
	clear(obj)
	maps.Copy(obj, out)
	return unknown, nil
}

// BetaRules returns the strategy of CustomResourceDefinitions of v1beta1: that of v1, applied after conversion to v1
// and back. A new definition that keeps unknown fields needs no schema, and no structural one.
func BetaRules(rules *catalog.Strategy) *catalog.Strategy {
	v := NewValidator()
	beta := *rules
	beta.Decode, beta.Default, beta.Store = decodeBeta, defaultBeta, nil
	beta.PrepareCreate = func(obj catalog.Object, e catalog.Env) {
		through(obj, func(v1 catalog.Object) { rules.PrepareCreate(v1, e) })
	}
	beta.PrepareUpdate = func(obj, old catalog.Object, subresource string, e catalog.Env) {
		through(obj, func(v1 catalog.Object) { rules.PrepareUpdate(v1, asV1(old), subresource, e) })
	}
	beta.PrepareDelete = func(obj catalog.Object, e catalog.Env) (update bool) {
		through(obj, func(v1 catalog.Object) { update = rules.PrepareDelete(v1, e) })
		return update
	}
	beta.Validate = func(ctx context.Context, obj catalog.Object) field.ErrorList {
		def, errs := decodeFor(asV1(obj))
		if def == nil {
			return errs
		}
		errs = append(nameErrors(def), v.until(ctx).validateFresh(def, betaLeave())...)
		v1 := asV1(obj)
		if errs = append(errs, checkSensitive(v1)...); len(errs) == 0 {
			errs = checkOwn(ctx, v1, nil, def)
		}
		return errs
	}
	beta.ValidateUpdate = func(ctx context.Context, obj, old catalog.Object, subresource string) field.ErrorList {
		if subresource == "status" {
			return rules.ValidateUpdate(ctx, asV1(obj), asV1(old), subresource)
		}
		def, errs := decodeFor(asV1(obj))
		was, oldErrs := decodeFor(asV1(old))
		if def == nil || was == nil {
			return append(errs, oldErrs...)
		}
		v1 := asV1(obj)
		errs = append(v.until(ctx).validateUpdated(def, was, betaLeave()), checkSensitive(v1)...)
		if len(errs) == 0 {
			errs = checkOwn(ctx, v1, asV1(old), def)
		}
		return errs
	}
	beta.Proof = func(obj, old catalog.Object) (*catalog.Proof, error) {
		if old != nil {
			old = asV1(old)
		}
		return rules.Proof(asV1(obj), old)
	}
	beta.Warnings = func(obj, _ catalog.Object, subresource string) []string {
		return rules.Warnings(asV1(obj), nil, subresource)
	}
	return &beta
}

// asV1 returns a copy of a definition of v1beta1 in v1.
func asV1(obj catalog.Object) catalog.Object {
	out := runtime.DeepCopyJSON(obj)
	toV1(out)
	return out
}

// through converts a definition of v1beta1 to v1, lets f change it, and converts it back.
func through(obj catalog.Object, f func(v1 catalog.Object)) {
	toV1(obj)
	f(obj)
	toBeta(obj)
}

// betaLeave returns the allowances for definitions written as v1beta1, new or changed.
func betaLeave() allowances {
	return allowances{beta: true, badCABundle: true, noSchema: true, unknownTypes: true, nonStructural: true}
}
