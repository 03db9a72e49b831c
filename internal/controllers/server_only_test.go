package controllers

import (
	"testing"

	"github.com/bowsprit/bowsprit/internal/watchcache"
)

// A server that is started as kube-apiserver runs the one controller that kube-apiserver has.
func TestServerOnly(t *testing.T) {
	t.Parallel()
	for _, only := range []bool{true, false} {
		cs := New(Config{View: watchcache.New(nil, watchcache.Options{}), ServerOnly: only})
		var names []string
		for _, c := range cs.all {
			names = append(names, c.name)
		}
		if (len(names) == 1) != only || names[0] != "definition-controller" {
			t.Errorf("ServerOnly %v: %q", only, names)
		}
	}
}
