package reshape

import (
	"strings"
	"testing"
)

// TestGenerateEnds generates objects of a schema with required fields in each other, the last of which has no valid
// value: a search of all combinations would not end.
func TestGenerateEnds(t *testing.T) {
	open := strings.Repeat(`{type: object, required: [a, b], properties: {b: {type: string}, a: `, 40)
	of := schemas(t, "v1: "+open+"{type: string, enum: [x], pattern: '^y$'}"+strings.Repeat("}}", 40))
	if obj := NewGenerator(1).Object(of["v1"]); obj != nil {
		t.Errorf("an invalid object: %v", obj)
	}
}
