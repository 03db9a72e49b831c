package usage

import "testing"

// The definitions of the API are valid.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	for _, definition := range [][]byte{nodesDefinition, podsDefinition} {
		if r, err := read(definition); err != nil || r.Group != group || r.Storage.Name != "v1beta1" {
			t.Errorf("%v, %v", r, err)
		}
	}
}
