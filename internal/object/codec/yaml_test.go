package codec

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestDirectives decodes YAML documents with many directives, in each function that takes YAML from clients.
func TestDirectives(t *testing.T) {
	t.Parallel()
	document := func(n int, end string) []byte {
		var b strings.Builder
		b.WriteString("# a comment" + end)
		for i := range n {
			fmt.Fprintf(&b, "%%TAG !a%d! b%s", i, end)
		}
		b.WriteString("---" + end + "apiVersion: v1" + end + "kind: ConfigMap" + end)
		return []byte(b.String())
	}
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	for n, refused := range map[int]bool{0: false, 500: false, maxDirectives + 1: true, 45_000: true} {
		for _, end := range []string{"\n", "\r\n", "\r", "\u0085", "\u2028"} {
			doc := document(n, end)
			_, inJSON := FromYAML(doc)
			_, _, object := DecodeTyped(doc, YAML, true, kind)
			_, _, applied := DecodeApply(doc, true)
			for function, err := range map[string]error{
				"FromYAML": inJSON, "DecodeTyped": object, "DecodeApply": applied,
			} {
				if (err != nil) != refused || err != nil && !strings.Contains(err.Error(), "at most 8000 are read") {
					t.Errorf("%s, %d directives that end with %q: %v", function, n, end, err)
				}
			}
		}
	}
}
