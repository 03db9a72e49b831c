package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/kinds"
)

// TestControllerAliases checks that the short names of kube-controller-manager's controllers select the controllers
// here.
func TestControllerAliases(t *testing.T) {
	t.Parallel()
	known := ControllerNames()
	for _, short := range kinds.ControllerAliases() {
		if name := kinds.ControllerName(short); name == short || !slices.Contains(known, name) {
			t.Errorf("%s stands for %s, which is not here", short, name)
		}
	}
	signer, cleaner := "bootstrap-signer-controller", "token-cleaner-controller"
	for enabled, want := range map[string][2]bool{ // whether the two run
		"*,bootstrapsigner,tokencleaner":  {true, true}, // the flag that kubeadm sets
		"*,-bootstrapsigner":              {false, true},
		"tokencleaner":                    {false, true},
		"-*,bootstrapsigner":              {true, false},
		"*,-token-cleaner-controller":     {true, false},
		"-tokencleaner,*,bootstrapsigner": {true, false},
	} {
		c := Controllers{Enabled: strings.Split(enabled, ",")}
		var p problems
		if c.validate(&p); len(p) > 0 {
			t.Errorf("%s: %v", enabled, p)
		}
		if got := [2]bool{Runs(&c, signer), Runs(&c, cleaner)}; got != want {
			t.Errorf("%s runs %v, not %v", enabled, got, want)
		}
	}
	c := Controllers{Enabled: []string{"-tokencleaners"}}
	var p problems
	if c.validate(&p); len(p) != 1 {
		t.Errorf("an unknown name: %v", p)
	}
}
