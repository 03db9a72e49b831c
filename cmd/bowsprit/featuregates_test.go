package main

import (
	"slices"
	"testing"
)

func TestFeatureGates(t *testing.T) {
	var one, two bool
	var on *bool
	gates := featureGates{defaults: map[string]any{"One": &one, "Two": &two, "On": &on}}
	if err := gates.Set("kube:One=true, Two=false"); err != nil || !one || two || gates.String() != "One=true" {
		t.Errorf("%v, %v, %v, %s", err, one, two, gates)
	}
	if err := gates.Set("On=false"); err != nil || on == nil || *on || gates.String() != "On=false,One=true" {
		t.Errorf("%v, %v, %s", err, on, gates)
	}
	for _, bad := range []string{"Three=true", "One=maybe", "One"} {
		if gates.Set(bad) == nil {
			t.Errorf("%q: no error", bad)
		}
	}
	var other []string
	gates.other = &other
	if err := gates.Set("Three=true,One=false,kube:Four=false"); err != nil || one ||
		!slices.Equal(other, []string{"Three=true", "Four=false"}) {
		t.Errorf("%v, %v, %v", err, one, other)
	}
	if gates.Set("Three=maybe") == nil {
		t.Error("a gate that has no meaning here may have any value")
	}
}
