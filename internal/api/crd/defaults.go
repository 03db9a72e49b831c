package crd

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// SetDefaults sets the defaults that apiextensions.k8s.io/v1 sets on each read and write of a definition.
func SetDefaults(def *apiextensionsv1.CustomResourceDefinition) {
	names := &def.Spec.Names
	if names.Singular == "" {
		names.Singular = strings.ToLower(names.Kind)
	}
	if names.ListKind == "" && names.Kind != "" {
		names.ListKind = names.Kind + "List"
	}
	if def.Spec.Conversion == nil {
		def.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	}
	if w := def.Spec.Conversion.Webhook; w != nil && w.ClientConfig != nil && w.ClientConfig.Service != nil &&
		w.ClientConfig.Service.Port == nil {
		port := int32(443)
		w.ClientConfig.Service.Port = &port
	}
	if len(def.Status.StoredVersions) == 0 {
		def.Status.StoredVersions = storedVersions(nil, def.Spec.Versions)
	}
}

// defaultObject is SetDefaults for a definition that Normalize has been over.
func defaultObject(obj map[string]any) {
	spec, _ := obj["spec"].(map[string]any)
	status, _ := obj["status"].(map[string]any)
	if spec == nil || status == nil {
		return
	}
	if names, _ := spec["names"].(map[string]any); names != nil {
		kind, _ := names["kind"].(string)
		if s, _ := names["singular"].(string); s == "" && kind != "" {
			names["singular"] = strings.ToLower(kind)
		}
		if s, _ := names["listKind"].(string); s == "" && kind != "" {
			names["listKind"] = kind + "List"
		}
	}
	if spec["conversion"] == nil {
		spec["conversion"] = map[string]any{"strategy": string(apiextensionsv1.NoneConverter)}
	}
	if service, _ := dig(spec, "conversion", "webhook", "clientConfig", "service").(map[string]any); service != nil &&
		service["port"] == nil {
		service["port"] = int64(443)
	}
	if stored, _ := status["storedVersions"].([]any); len(stored) == 0 {
		addStoredVersion(obj)
	}
}

// dig returns the value at a path of field names below m, or nil.
func dig(m map[string]any, path ...string) any {
	var v any = m
	for _, name := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[name]
	}
	return v
}
