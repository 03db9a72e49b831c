package selector

import (
	"strings"
	"testing"
)

// TestNew checks each kind of verdict once; test/oracle-builtins compares the words with Kubernetes'.
func TestNew(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		`device.driver == "a" && device.attributes["a"].fast`: "",
		`device.allowMultipleAllocations`:                     "",
		`device.`:                                             "compilation failed: ",
		`device.nothing == 1`:                                 "compilation failed: ",
		`1 + 1`:                                               "must evaluate to bool or the unknown type, not int",
		`device.attributes.all(d, device.attributes[d].all(k, device.attributes.all(e, device.attributes[e].all(l, k.matches(l)))))`: "costly",
	} {
		for name, compile := range map[string]func(string) Verdict{"New": New, "Stored": Stored} {
			v := compile(expression)
			got := v.Invalid
			if v.Costly {
				got = "costly"
			}
			if v.Err != nil || !strings.HasPrefix(got, want) || want == "" && got != "" {
				t.Errorf("%s(%s) = %+v, want %q", name, expression, v, want)
			}
		}
	}
}
