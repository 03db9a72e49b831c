package hook_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestLargePatch has a webhook respond with a patch of more elements than a client may send.
func TestLargePatch(t *testing.T) {
	c := start(t)
	list := "[" + strings.Repeat("{},", 50_000) + "{}]"
	l := listen(t, func(path string, _ object) object {
		return patch(`[{"op":"add","path":"/data/%s","value":%s}]`, path[1:], list)
	})
	c.register(mutating, "a", l.webhook("one", "/one", nil))
	code, obj, _ := c.do("POST", configMaps, configMap("x", object{"k": "v"}))
	if message, _ := obj["message"].(string); code != http.StatusInternalServerError ||
		!strings.Contains(message, "received too large a patch") || len(message) > 1000 {
		t.Errorf("the creation: %d %v", code, obj["message"])
	}
	list = "[" + strings.Repeat("{},", 10_000) + "{}]" // decodes, but is no string
	if code, obj, _ = c.do("POST", configMaps, configMap("x", object{"k": "v"})); code == http.StatusCreated ||
		strings.Contains(obj["message"].(string), "too large") {
		t.Errorf("a smaller patch: %d %v", code, obj["message"])
	}
}
