package egress

import (
	"context"
	"net"
)

// Diversion returns the Dial for an address, "host:port", within the cluster that this process stands for, such as that
// of a simulated pod. It returns nil for all other addresses.
type Diversion func(address string) Dial

// Divert opens connections for purpose Cluster through d, where it has a Dial. Call it before Dial. A proxy of the
// configuration does not see these connections.
func (e *Egress) Divert(d Diversion) { e.diversion = d }

// diverted returns dial with the diversion in front.
func (e *Egress) diverted(dial Dial) Dial {
	if e.diversion == nil {
		return dial
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if own := e.diversion(address); own != nil {
			return own(ctx, network, address)
		}
		return dial(ctx, network, address)
	}
}
