package bowsprit

import (
	"maps"
	"slices"
	"strings"

	"github.com/bowsprit/bowsprit/internal/kinds"
)

// APIConfig says which built-in kinds and which formats are served.
type APIConfig struct {
	// CBOR lets clients send and get CBOR, and stores custom objects in it: kube's feature gate CBORServingAndStorage,
	// which is off by default there too. Whatever it is, what is stored in CBOR is read.
	CBOR bool
	// CoordinatedLeaderElection gives Leases for which there are LeaseCandidates to the best of them: kube's feature
	// gate of that name, which is off by default there too. RuntimeConfig must have coordination.k8s.io/v1beta1 served.
	CoordinatedLeaderElection bool
	// RuntimeConfig switches built-in kinds on and off, as kube-apiserver's flag --runtime-config: "group/version"
	// ("v1" for the core group) or "group/version/resource" to "true" or "false", "api/all", "api/ga", "api/beta" and
	// "api/alpha" for all versions of such names. The server's own controllers see also what is off.
	RuntimeConfig map[string]string
}

func (c *APIConfig) settings(command Command) []Setting {
	gates := map[string]*bool{
		"CBORServingAndStorage": &c.CBOR, "CoordinatedLeaderElection": &c.CoordinatedLeaderElection,
	}
	help := "kube-apiserver's feature gates that mean something here, Name=true|false: "
	if command == KubeAPIServer {
		help = "kube-apiserver's feature gates, Name=true|false; those that mean something here: "
	}
	return []Setting{
		{Name: "feature-gates", Help: help + strings.Join(slices.Sorted(maps.Keys(gates)), ", "), Value: gates},
		{
			Name:  "runtime-config",
			Help:  `built-in kinds to switch on or off, key=true|false: group/version ("v1" for the core group), group/version/resource, or api/all, api/ga, api/beta, api/alpha for all such versions`,
			Value: &c.RuntimeConfig,
		},
	}
}

func (c *APIConfig) validate(p *problems) {
	if err := kinds.RuntimeConfig(c.RuntimeConfig).Validate(); err != nil {
		p.add("--runtime-config: %w", err)
	}
}
