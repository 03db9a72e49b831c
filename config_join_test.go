package bowsprit

import (
	"slices"
	"strings"
	"testing"
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
		c := Config{
			Listen: ListenConfig{BindAddress: test.bind}, Services: ServicesConfig{AdvertiseAddress: test.advertise},
		}.withDefaults()
		if got := joinURL(&c, test.own); got != test.want {
			t.Errorf("listens on %s, advertises %q: %s, want %s", test.bind, test.advertise, got, test.want)
		}
		if hosts := strings.Join(hosts(&c), " "); !strings.Contains(hosts, test.advertise) {
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
		c := Config{Services: ServicesConfig{ClusterIPRange: ranges}}.withDefaults()
		if hosts := hosts(&c); !slices.Contains(hosts, want) {
			t.Errorf("services in %q: the certificate is for %s, not for %s", ranges, hosts, want)
		}
	}
}

// TestPeersAddress checks that servers that share an etcd reach each other at the given address, even a loopback
// address, which endpoints cannot have.
func TestPeersAddress(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ advertise, peer, want string }{
		{"", "", ""}, {"127.0.0.1", "", "127.0.0.1"}, {"192.0.2.1", "", "192.0.2.1"},
		{"192.0.2.1", "192.0.2.2", "192.0.2.2"},
	} {
		c := Config{
			Services:    ServicesConfig{AdvertiseAddress: test.advertise},
			Aggregation: AggregationConfig{PeerAdvertiseIP: test.peer},
		}.withDefaults()
		if got := peers(&c, "").IP; got != test.want {
			t.Errorf("--advertise-address=%s --peer-advertise-ip=%s: %q", test.advertise, test.peer, got)
		}
	}
}
