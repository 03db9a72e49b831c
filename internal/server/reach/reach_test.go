package reach

import (
	"slices"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/server/config"
)

// TestJoinURL checks that nodes get an address that other machines can reach, which excludes loopback addresses.
func TestJoinURL(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ bind, advertise, own, want string }{
		{"127.0.0.1", "", "https://127.0.0.1:6443", "https://127.0.0.1:6443"},
		{"192.0.2.7", "", "https://192.0.2.7:6443", "https://192.0.2.7:6443"},
		{"127.0.0.1", "192.0.2.1", "https://127.0.0.1:6443", "https://192.0.2.1:6443"},
		{"0.0.0.0", "192.0.2.1", "https://127.0.0.1:1", "https://192.0.2.1:1"},
	} {
		c := config.WithDefaults(config.Config{
			Listen: config.Listen{BindAddress: test.bind}, Services: config.Services{AdvertiseAddress: test.advertise},
		})
		if got := JoinURL(&c, test.own); got != test.want {
			t.Errorf("listens on %s, advertises %q: %s, want %s", test.bind, test.advertise, got, test.want)
		}
		if hosts := strings.Join(Hosts(&c), " "); !strings.Contains(hosts, test.advertise) {
			t.Errorf("the certificate is for %s, not for %s", hosts, test.advertise)
		}
	}
}

// TestServiceAddressInCertificate checks that the server's certificate is valid for the address of the service
// "kubernetes", where pods reach the server.
func TestServiceAddressInCertificate(t *testing.T) {
	t.Parallel()
	for ranges, want := range map[string]string{
		"": "10.0.0.1", "10.96.0.0/12": "10.96.0.1", "fd00:1::/108,10.1.0.0/16": "fd00:1::1",
	} {
		c := config.WithDefaults(config.Config{Services: config.Services{ClusterIPRange: ranges}})
		if hosts := Hosts(&c); !slices.Contains(hosts, want) {
			t.Errorf("services in %q: the certificate is for %s, not for %s", ranges, hosts, want)
		}
	}
}
