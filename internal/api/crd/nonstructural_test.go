package crd

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// TestNonStructural is about definitions that v1beta1 left behind.
func TestNonStructural(t *testing.T) {
	condition := func(text string) string {
		def := mustDecode(t, fromYAML(t, text))
		status, _ := Status(def, nil, testNow)
		c := findCondition(status.Conditions, apiextensionsv1.NonStructuralSchema)
		if c == nil {
			return ""
		}
		// The head has no schemas; the condition must survive it.
		def.Status = *status
		for i := range def.Spec.Versions {
			def.Spec.Versions[i].Schema = nil
		}
		if again, changed := Status(def, nil, testNow); changed {
			t.Errorf("changed by a head: %v", again)
		}
		return string(c.Status) + "/" + c.Reason + "/" + c.Message
	}
	legacy := strings.Replace(cronTab, "scope:", "preserveUnknownFields: true\n  scope:", 1)
	for text, want := range map[string]string{
		cronTab: "",
		legacy:  "True/Violations/spec.preserveUnknownFields: Invalid value: true: must be false",
		strings.Replace(legacy, "old: {type: string}", "old: {}",
			1): "True/Violations/[spec.preserveUnknownFields: Invalid value: true: must be false, " +
			"spec.versions[0].schema.openAPIV3Schema.properties[old].type: Required value: must not be empty for specified object fields]",
		strings.Replace(legacy, "old: {type: string}", "old: {id: x}",
			1): "Unknown/StructuralError/failed to check validation schema for version v1beta1: OpenAPIV3Schema 'id' is not supported",
	} {
		if got := condition(text); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
