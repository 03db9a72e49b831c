package jsonpath

import "testing"

func TestOf(t *testing.T) {
	for source, want := range map[string]string{
		"self.spec.replicas":                                            ".spec.replicas",
		"self.?spec.?replicas":                                          ".spec.replicas",
		"self.spec.a__dash__b":                                          ".spec.a-b",
		"self.metadata.labels['app']":                                   ".metadata.labels.app",
		"self.metadata.labels['example.com/app']":                       `.metadata.labels.example\.com/app`,
		"self.spec.ports[0].name":                                       ".spec.ports[0].name",
		"self.status.conditions.filter(c, c.type == 'Ready')[0].status": `.status.conditions[?(@.type=="Ready")].status`,
		// Other values have no path.
		"self":                                        "",
		"oldSelf.spec":                                "",
		"string(self.spec.replicas)":                  "",
		"has(self.spec.replicas)":                     "",
		"self.spec.ports[self.spec.i]":                "",
		"self.spec.ports.map(p, p.name)[0]":           "",
		"self.spec.ports.filter(p, p.n == 1)[0]":      "",
		"self.spec.ports.filter(p, p.n == 'a')[1]":    "",
		"self.spec.ports.filter(p, p.n == 'a\"b')[0]": "",
		"self.spec.ports.filter(p, q.n == 'a')[0]":    "",
		"self.metadata.labels[\"a'b\"]":               "",
		"self.":                                       "",
	} {
		if got, ok := Of(source); got != want || ok != (want != "") {
			t.Errorf("%s gives %q %t, want %q", source, got, ok, want)
		}
	}
}
