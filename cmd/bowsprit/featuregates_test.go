package main

import "testing"

func TestFeatureGates(t *testing.T) {
	var one, two bool
	gates := featureGates{"One": &one, "Two": &two}
	if err := gates.Set("One=true, Two=false"); err != nil || !one || two || gates.String() != "One=true" {
		t.Errorf("%v, %v, %v, %s", err, one, two, gates)
	}
	for _, bad := range []string{"Three=true", "One=maybe", "One"} {
		if gates.Set(bad) == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}
