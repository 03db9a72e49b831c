package translations

import "testing"

func TestWanted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		argv []string
		want bool
	}{
		{[]string{"bowsprit", "serve"}, false},
		{[]string{"/opt/bowsprit", "kubectl", "get", "pods"}, true},
		{[]string{"/opt/envtest/kubectl", "get", "pods"}, true},
		{[]string{"kubectl.exe"}, true},
		{[]string{"bowsprit", "help", "kubectl"}, false},
		{[]string{"bowsprit"}, false},
		{nil, false},
	} {
		if got := wanted(c.argv); got != c.want {
			t.Errorf("%q: %t", c.argv, got)
		}
	}
}
