package bowsprit

import "testing"

// TestAdvertised checks that the server does not advertise an address that endpoints cannot have, and starts without
// one.
func TestAdvertised(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		config Config
		want   string
	}{
		{Config{Services: ServicesConfig{AdvertiseAddress: "192.0.2.1"}}, "192.0.2.1"},
		{Config{Services: ServicesConfig{AdvertiseAddress: "::ffff:192.0.2.1"}}, "192.0.2.1"},
		{Config{Listen: ListenConfig{BindAddress: "192.0.2.2"}}, "192.0.2.2"},
		{
			Config{
				Listen: ListenConfig{BindAddress: "192.0.2.2"}, Services: ServicesConfig{AdvertiseAddress: "192.0.2.1"},
			}, "192.0.2.1"},
		{Config{Services: ServicesConfig{AdvertiseAddress: "127.0.0.1"}}, ""},
		{Config{Services: ServicesConfig{AdvertiseAddress: "169.254.0.1"}}, ""},
		{Config{Services: ServicesConfig{AdvertiseAddress: "0.0.0.0"}}, ""},
		{Config{Listen: ListenConfig{BindAddress: "2001:db8::1"}}, ""},
		{
			Config{
				Listen:   ListenConfig{BindAddress: "2001:db8::1"},
				Services: ServicesConfig{ClusterIPRange: "fd00::/108,10.0.0.0/24"},
			}, "2001:db8::1"},
	} {
		c := test.config.withDefaults()
		ip, err := advertised(&c)
		if got := ip.String(); (err == nil) != (test.want != "") || err == nil && got != test.want {
			t.Errorf("%+v: %s, %v; want %s", test.config, got, err, test.want)
		}
	}
}

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
