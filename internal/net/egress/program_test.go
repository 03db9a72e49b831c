package egress

import (
	"slices"
	"testing"
)

func TestPreferPrograms(t *testing.T) {
	for _, test := range []struct{ all, want []string }{
		{nil, nil},
		{[]string{"10.0.0.1:1", "host:2", "odd"}, []string{"10.0.0.1:1", "host:2", "odd"}},
		{[]string{"10.0.0.1:1", "198.19.255.255:2", "198.20.0.0:3"}, []string{"198.19.255.255:2"}},
		{[]string{"[2001:2::1]:1", "[2001:db8::1]:1", "[::ffff:198.18.0.1]:1"},
			[]string{"[2001:2::1]:1", "[::ffff:198.18.0.1]:1"}},
	} {
		if got := PreferPrograms(test.all); !slices.Equal(got, test.want) {
			t.Errorf("%q: %q, want %q", test.all, got, test.want)
		}
	}
}
