package parts

import (
	"testing"

	"github.com/bowsprit/bowsprit/internal/server/config"
)

// TestPeersAddress checks that servers that share an etcd reach each other at the given address, even a loopback
// address, which endpoints cannot have.
func TestPeersAddress(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ advertise, peer, want string }{
		{"", "", ""}, {"127.0.0.1", "", "127.0.0.1"}, {"192.0.2.1", "", "192.0.2.1"},
		{"192.0.2.1", "192.0.2.2", "192.0.2.2"},
	} {
		c := config.WithDefaults(config.Config{
			Services:    config.Services{AdvertiseAddress: test.advertise},
			Aggregation: config.Aggregation{PeerAdvertiseIP: test.peer},
		})
		if got := peers(&c, "").IP; got != test.want {
			t.Errorf("--advertise-address=%s --peer-advertise-ip=%s: %q", test.advertise, test.peer, got)
		}
	}
}
