package hook_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestRepeatedOwners checks that the server removes repeated owner references before the webhooks run, and again after
// they have run. As in Kubernetes, it removes the repeated references of a client's patch only after the webhooks.
func TestRepeatedOwners(t *testing.T) {
	t.Parallel()
	c := start(t)
	adds := false
	l := listen(t, func(_ string, request object) object {
		if adds {
			return patch(
				`[{"op":"add","path":"/metadata/ownerReferences/-","value":{"apiVersion":"v1","kind":"Namespace","name":"default","uid":"u"}}]`)
		}
		return object{"allowed": true}
	})
	c.register(mutating, "m", l.webhook("m", "/", nil))
	owner := object{"apiVersion": "v1", "kind": "Namespace", "name": "default", "uid": "u"}
	const before, after = "contains duplicate entries;", "contains duplicate entries after mutating admission happens;"
	for _, test := range []struct {
		desc, method, path string
		refs               []any
		adds               bool
		seen               int
		warns              string
	}{
		{"create", http.MethodPost, configMaps, []any{owner, owner}, false, 1, before},
		{"update", http.MethodPut, configMaps + "/x", []any{owner, owner}, false, 1, before},
		{"patch", http.MethodPatch, configMaps + "/x", []any{owner, owner, owner}, false, 3, after},
		{"webhook", http.MethodPatch, configMaps + "/x", []any{owner}, true, 1, after},
		{"neither", http.MethodPut, configMaps + "/x", []any{owner}, false, 1, ""},
	} {
		adds = test.adds
		m := configMap("x", nil)
		m["metadata"].(object)["ownerReferences"] = test.refs
		code, obj, warnings := c.do(test.method, test.path+"?dryRun=All", m)
		if test.desc == "create" { // the garbage collector would delete an object without its owner
			c.must(http.MethodPost, configMaps, configMap("x", nil))
		}
		if code >= 300 {
			t.Fatalf("%s: %d %v", test.desc, code, obj["message"])
		}
		seen := l.requests()[0]["request"].(object)["object"].(object)["metadata"].(object)["ownerReferences"].([]any)
		kept := obj["metadata"].(object)["ownerReferences"].([]any)
		if len(seen) != test.seen || len(kept) != 1 {
			t.Errorf("%s: webhooks see %v, the client %v", test.desc, seen, kept)
		}
		if len(warnings) > 1 || (test.warns != "") != (len(warnings) == 1) ||
			!strings.Contains(strings.Join(warnings, ""), test.warns) {
			t.Errorf("%s: warnings %q, want one that %s", test.desc, warnings, test.warns)
		}
	}
}
