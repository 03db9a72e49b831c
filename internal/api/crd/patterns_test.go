package crd

import (
	"fmt"
	"strings"
	"testing"
)

// TestPatternsTogether counts the patterns of all versions of a definition, in schemas and in rules.
func TestPatternsTogether(t *testing.T) {
	t.Parallel()
	// Compiled, each of these has 1.5 million instructions.
	inSchema := func(c string) string {
		return fmt.Sprintf("a: {type: string, pattern: %q}", strings.Repeat(c+"{1000}", 1500))
	}
	inRule := func(c string) string {
		return fmt.Sprintf(`a: {type: string, x-kubernetes-validations: [{rule: "self.matches('%s')"}]}`,
			strings.Repeat(c+"{1000}", 1500))
	}
	for name, c := range map[string]struct{ old, new, last, field string }{
		"few":        {inSchema("a"), inSchema("b"), "a: {type: string}", ""},
		"equal ones": {inSchema("a"), inSchema("a"), inSchema("a"), ""},
		"too many": {inSchema("a"), inSchema("b"), inSchema("c"),
			"spec.versions[2].schema.openAPIV3Schema.properties[a].pattern"},
		"too many with a rule": {inSchema("a"), inSchema("b"), inRule("c"),
			"spec.versions[2].schema.openAPIV3Schema.properties[a].x-kubernetes-validations[0].rule"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			obj := fromYAML(t, fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.stable.example.com}
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: crontabs, singular: crontab, kind: CronTab, listKind: CronTabList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {%s}}}}
  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {%s}}}}
  - {name: v3, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {%s}}}}
`, c.old, c.new, c.last))
			rules := Rules()
			if _, err := rules.Decode(obj); err != nil {
				t.Fatal(err)
			}
			var found []string
			for _, err := range rules.Validate(t.Context(), obj) {
				if strings.Contains(err.Detail, "repeat counts multiply them") {
					found = append(found, err.Field)
				}
			}
			if strings.Join(found, ",") != c.field {
				t.Errorf("got errors about %q, want %q", found, c.field)
			}
		})
	}
}
