package config

import "testing"

func TestParseRanges(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		list []string
		ok   bool
	}{
		{[]string{"10.0.0.0/24"}, true},
		{[]string{"10.0.0.0/29"}, true},
		{[]string{"10.0.0.0/30"}, false},
		{[]string{"fd00::/64"}, true},
		{[]string{"fd00::/63"}, false},
		{[]string{"10.0.0.0/24", "fd00::/108"}, true},
		{[]string{"fd00::/108", "10.0.0.0/24"}, true},
		{[]string{"10.0.0.0/24", "10.1.0.0/24"}, false},
		{[]string{"10.0.0.0/24", "fd00::/108", "10.1.0.0/24"}, false},
		{[]string{""}, false},
		{nil, false},
	} {
		if _, err := parseRanges(test.list); (err == nil) != test.ok {
			t.Errorf("%q: %v", test.list, err)
		}
	}
}
