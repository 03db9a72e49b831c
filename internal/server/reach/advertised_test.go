package reach

import (
	"testing"

	"github.com/bowsprit/bowsprit/internal/server/config"
)

// TestAdvertised checks that the server does not advertise an address that endpoints cannot have, and starts without
// one.
func TestAdvertised(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		config config.Config
		want   string
	}{
		{config.Config{Services: config.Services{AdvertiseAddress: "192.0.2.1"}}, "192.0.2.1"},
		{config.Config{Services: config.Services{AdvertiseAddress: "::ffff:192.0.2.1"}}, "192.0.2.1"},
		{config.Config{Listen: config.Listen{BindAddress: "192.0.2.2"}}, "192.0.2.2"},
		{
			config.Config{
				Listen:   config.Listen{BindAddress: "192.0.2.2"},
				Services: config.Services{AdvertiseAddress: "192.0.2.1"},
			}, "192.0.2.1"},
		{config.Config{Services: config.Services{AdvertiseAddress: "127.0.0.1"}}, ""},
		{config.Config{Services: config.Services{AdvertiseAddress: "169.254.0.1"}}, ""},
		{config.Config{Services: config.Services{AdvertiseAddress: "0.0.0.0"}}, ""},
		{config.Config{Listen: config.Listen{BindAddress: "2001:db8::1"}}, ""},
		{
			config.Config{
				Listen:   config.Listen{BindAddress: "2001:db8::1"},
				Services: config.Services{ClusterIPRange: "fd00::/108,10.0.0.0/24"},
			}, "2001:db8::1"},
	} {
		c := config.WithDefaults(test.config)
		ip, err := Advertised(&c)
		if got := ip.String(); (err == nil) != (test.want != "") || err == nil && got != test.want {
			t.Errorf("%+v: %s, %v; want %s", test.config, got, err, test.want)
		}
	}
}
