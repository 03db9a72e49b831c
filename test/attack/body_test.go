package attack

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/testing/leak"
)

// TestBodies sends small bodies that are expensive to process: deep, many-branched, repeated, or with endless numbers.
// The server refuses each or stores it unchanged, and releases its memory.
func TestBodies(t *testing.T) {
	t.Parallel()
	server := victim(t)
	admin := as(t, server, "")
	admin.send(t.Context(), http.MethodPost, "/api/v1/namespaces/default/configmaps", "application/json",
		`{"metadata":{"name":"target"},"data":{"a":"b"}}`)
	const maps = "/api/v1/namespaces/default/configmaps"
	const object, merge = "application/json", "application/merge-patch+json"
	before := leak.HeapInUse()
	for _, c := range []struct {
		name, method, path, contentType, body string
		least                                 int // the lowest correct status
	}{
		{"deep lists", "POST", maps, object, strings.Repeat("[", 1_000_000), 400},
		{"deep maps", "POST", maps, object, strings.Repeat(`{"a":`, 500_000), 400},
		{"a deep annotation", "POST", maps, object,
			`{"metadata":{"name":"x"},"x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "}", 400},
		{"deep YAML", "POST", maps, "application/yaml", strings.Repeat("- ", 500_000) + "x", 400},
		{"deep flow YAML", "POST", maps, "application/yaml", strings.Repeat("{a: ", 200_000), 400},
		{"a YAML bomb", "POST", maps, "application/yaml", bomb(), 400},
		{"a YAML merge bomb", "POST", maps, "application/yaml",
			"a: &a {x: 1}\nb: &b {<<: *a, y: [*a, *a]}\nc: {<<: [*b, *b, *b]}\n", 400},
		{"a YAML tag", "POST", maps, "application/yaml", "!!python/object/apply:os.system ['id']", 400},
		{"a number of a million digits", "POST", maps, object,
			`{"metadata":{"name":"x","generation":` + strings.Repeat("9", 1_000_000) + `}}`, 400},
		{"a number with a huge exponent", "POST", maps, object,
			`{"metadata":{"name":"x","generation":1e999999999}}`, 400},
		{"a body of 4 MB", "POST", maps, object, `{"metadata":{"name":"x"},"data":{"a":"` +
			strings.Repeat("x", 4<<20) + `"}}`, 413},
		{"a name of 1 MB", "POST", maps, object, `{"metadata":{"name":"` + strings.Repeat("x", 1<<20) + `"}}`, 400},
		{"a million equal keys", "POST", maps + "?fieldValidation=Strict", object,
			"{" + strings.Repeat(`"a":1,`, 300_000) + `"b":1}`, 400},
		{"ownerReferences without end", "POST", maps, object, `{"metadata":{"name":"x","ownerReferences":[` +
			strings.Repeat(`{},`, 100_000) + `{}]}}`, 400},
		{"a patch with 100,000 operations", "PATCH", maps + "/target", "application/json-patch+json",
			"[" + strings.Repeat(`{"op":"add","path":"/data/a","value":"x"},`, 100_000) +
				`{"op":"add","path":"/data/a","value":"x"}]`, 400},
		{"a patch that copies itself", "PATCH", maps + "/target", "application/json-patch+json",
			"[" + strings.Repeat(`{"op":"copy","from":"/metadata","path":"/metadata/annotations"},`, 40) +
				`{"op":"add","path":"/data/a","value":"x"}]`, 400},
		{"a patch at a deep path", "PATCH", maps + "/target", "application/json-patch+json",
			`[{"op":"add","path":"` + strings.Repeat("/a", 500_000) + `","value":1}]`, 400},
		{"a deep merge patch", "PATCH", maps + "/target", merge, strings.Repeat(`{"a":`, 300_000), 400},
		{"directives in a strategic patch", "PATCH", maps + "/target", "application/strategic-merge-patch+json",
			`{"$patch":"replace","data":` + strings.Repeat(`{"$patch":`, 100_000) + "1", 400},
		{"apply without end", "PATCH", maps + "/target?fieldManager=x", "application/apply-patch+yaml",
			strings.Repeat("[", 500_000), 400},
		{"protobuf of a wrong length", "POST", maps, "application/vnd.kubernetes.protobuf",
			"k8s\x00\x0a\xff\xff\xff\xff\x0f", 400},
		{"CBOR without end", "POST", maps, "application/cbor", strings.Repeat("\x9f", 100_000), 400},
		{"packed body", "POST", maps, "application/gzip", "\x1f\x8b\x08\x00", 400},
		{"a label selector of 1 MB", "GET", maps + "?labelSelector=" + strings.Repeat("a,", 200_000), "", "", 400},
		{"a field selector of 1 MB", "GET", maps + "?fieldSelector=" + strings.Repeat("a=b,", 100_000), "", "", 400},
		{"a continue token of nonsense", "GET", maps + "?limit=1&continue=" + strings.Repeat("AAAA", 10_000), "", "",
			400},
		{"a page of less than nothing", "GET", maps + "?limit=-1", "", "", 400},
		{"a version of the far future", "GET", maps + "?resourceVersion=18446744073709551616", "", "", 400},
		{"a time-out of nonsense", "GET", maps + "?timeout=1e9h", "", "", 400},
		{"a pattern that explodes", "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", object,
			definition(`{"type":"string","pattern":"(((((a{100}){100}){100}){100}){100})"}`), 400},
		{"a rule that costs too much", "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", object,
			definition(`{"type":"array","items":{"type":"string"},"x-kubernetes-validations":[{"rule":` +
				`"self.all(a, self.all(b, self.all(c, self.all(d, a != b || c != d))))"}]}`), 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			code := admin.send(t.Context(), c.method, c.path, c.contentType, c.body)
			if code < c.least && !(c.method == "GET" && code == http.StatusOK) {
				t.Errorf("status %d, want at least %d", code, c.least)
			}
			if code == http.StatusInternalServerError {
				t.Errorf("status 500: the server did not expect this")
			}
			alive(t, server)
		})
	}
	leak.Settle(t, "bytes of heap", func() (int64, int64) { return leak.HeapInUse(), before + 64<<20 })
}

// bomb is a YAML document that would be 10^9 times "x".
func bomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 9; i++ {
		one := fmt.Sprintf("*a%d,", i-1)
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(one, 10), ","))
	}
	return b.String()
}

// definition is a CustomResourceDefinition with a property of a schema.
func definition(schema string) string {
	return `{"metadata":{"name":"things.attack.example.com"},"spec":{"group":"attack.example.com","scope":"Namespaced",` +
		`"names":{"kind":"Thing","plural":"things"},"versions":[{"name":"v1","served":true,"storage":true,"schema":` +
		`{"openAPIV3Schema":{"type":"object","properties":{"x":` + schema + `}}}}]}}`
}
