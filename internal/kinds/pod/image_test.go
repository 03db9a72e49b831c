package pod

import (
	"strings"
	"testing"
)

func TestPullPolicy(t *testing.T) {
	t.Parallel()
	for image, want := range map[string]string{
		"nginx": "Always", "nginx:latest": "Always", "nginx:1.25": "IfNotPresent", "": "IfNotPresent",
		"registry.k8s.io:5000/a/b": "Always", "registry.k8s.io:5000/a/b:v1": "IfNotPresent",
		"localhost/x:latest":                      "Always",
		"nginx@sha256:" + strings.Repeat("0", 64): "IfNotPresent", "Nginx": "IfNotPresent", "a b": "IfNotPresent",
		"Example.com/x": "Always", strings.Repeat("a", 64): "IfNotPresent",
	} {
		if got := pullPolicy(image); got != want {
			t.Errorf("%q: %s, want %s", image, got, want)
		}
	}
}
