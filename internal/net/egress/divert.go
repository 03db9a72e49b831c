package egress

import (
	"context"
	"net"
)

// Diversion returns the Dial for an address, "host:port", within the cluster that this process stands for, such as that
// of a simulated pod. It returns nil for all other addresses.
type Diversion func(address string) Dial

// Divert opens connections for purpose Cluster through d, where it has a Dial. The first of several diversions counts.
// Call it before Dial. A proxy of the configuration does not see these connections.
func (e *Egress) Divert(d Diversion) { e.diversions = append(e.diversions, d) }

// diverted returns dial with the diversions in front.
func (e *Egress) diverted(dial Dial) Dial {
	if len(e.diversions) == 0 {
		return dial
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		for _, d := range e.diversions {
			if own := d(address); own != nil {
				return own(ctx, network, address)
			}
		}
		return dial(ctx, network, address)
	}
}
