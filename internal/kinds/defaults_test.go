package kinds

import (
	"strings"
	"testing"
)

// TestDefaultsText holds the embedded text to its syntax, and its types to kinds and to each other.
func TestDefaultsText(t *testing.T) {
	t.Parallel()
	d, err := parseDefaults(defaultsText)
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, r := range Resources() {
		used[r.Kind] = true
	}
	for _, fills := range d {
		for _, f := range fills {
			used[f.of] = true
		}
	}
	for name := range d {
		if !used[name] {
			t.Errorf("%s is neither a kind nor a type that one has", name)
		}
	}
}

func TestParseDefaultsErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"A\n\tx : B\n", "no type B"},
		{"A\n\tx\n", "has no value"},
		{"A\n\tx ~ 1\n", "no operator ~"},
		{"A\n\tx = {\n", "line 2"},
	} {
		if _, err := parseDefaults(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}

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
