package cluster

import "testing"

// TestAddresses checks that addresses are unique, stay with their pods, and are reused.
func TestAddresses(t *testing.T) {
	t.Parallel()
	a := NewAddresses()
	a.Take("old", "10.244.0.2")
	one, two := a.Next("one"), a.Next("two")
	if one != "10.244.0.1" || two != "10.244.0.3" || a.Next("one") != one {
		t.Errorf("one has %s, two has %s", one, two)
	}
	a.Free("old")
	a.last = 1
	if got := a.Next("three"); got != "10.244.0.2" {
		t.Errorf("three has %s", got)
	}
}
