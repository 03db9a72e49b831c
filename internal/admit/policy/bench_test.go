package policy

import (
	"fmt"
	"testing"
)

const policyJSON = `{"metadata":{"name":"%s"},"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":["example.com"],"apiVersions":["v1"],"operations":["CREATE","UPDATE"],"resources":["%s"]}]},"validations":[{"expression":"%s"}]}}`

func bindingJSON(policy string) string {
	return `{"metadata":{"name":"` + policy + `"},"spec":{"policyName":"` + policy + `","validationActions":["Deny"]}}`
}

// BenchmarkValidating measures the cost of policies in a write of a small object.
func BenchmarkValidating(b *testing.B) {
	for _, test := range []struct {
		name     string
		policies int
		resource string
		rule     string
	}{
		{"none", 0, "", ""},
		{"no-op", 1, "widgets", "true"},
		{"one field", 1, "widgets", "object.spec.replicas <= 5"},
		{"a list", 1, "widgets", "object.spec.list.all(e, e.size() < 10)"},
		{"100 that do not match", 100, "gadgets", "true"},
	} {
		b.Run(test.name, func(b *testing.B) {
			stored := map[string]string{}
			for i := range test.policies {
				name := fmt.Sprintf("p%d", i)
				stored["validatingadmissionpolicies/"+name] = fmt.Sprintf(policyJSON, name, test.resource, test.rule)
				stored["validatingadmissionpolicybindings/"+name] = bindingJSON(name)
			}
			c := rig(b, stored)
			p := NewValidating(c, nil)
			a := write(c, widget())
			if err := p.Validate(b.Context(), a); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := p.Validate(b.Context(), a); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
