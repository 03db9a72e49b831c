package parts

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/bowsprit/bowsprit/internal/auth/pki"
	"github.com/bowsprit/bowsprit/internal/feature/aggregation"
	"github.com/bowsprit/bowsprit/internal/feature/compat"
	"github.com/bowsprit/bowsprit/internal/feature/controllers/accounts"
	"github.com/bowsprit/bowsprit/internal/feature/definitions"
	"github.com/bowsprit/bowsprit/internal/feature/kubelet"
	"github.com/bowsprit/bowsprit/internal/feature/plugins"
	"github.com/bowsprit/bowsprit/internal/feature/replicas/candidates"
	"github.com/bowsprit/bowsprit/internal/feature/replicas/peer"
	"github.com/bowsprit/bowsprit/internal/feature/review/trust"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/server/config"
	"github.com/bowsprit/bowsprit/internal/server/reach"
)

// accountPatience is how long a pod waits for the service account that a controller of this process, or of another
// replica, is about to make.
const accountPatience = 10 * time.Second

// openGates returns the enabled gates that kinds or roles depend on.
func openGates(c *config.Config) []string {
	gates := map[string]bool{}
	emulated := config.Emulated(&c.Emulation)
	for _, name := range kinds.Features() {
		gates[name] = emulated.Has(name, c.API.Features)
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(gates)), func(name string) bool { return !gates[name] })
}

// peers returns the settings for the parts that connect servers with each other. A given address may be on this
// machine. hostname is a name for this machine; "" means its own.
func peers(c *config.Config, hostname string) peer.Settings {
	a := &c.Aggregation
	return peer.Settings{
		Off: !*a.PeerProxy, Hostname: hostname, IP: cmp.Or(a.PeerAdvertiseIP, c.Services.AdvertiseAddress),
		Port: a.PeerAdvertisePort, AuthorityFile: a.PeerCAFile,
		Advertised: func() (netip.Addr, error) { return reach.Advertised(c) },
	}
}

// aggregationSettings returns the settings for the part that forwards requests to the servers of APIServices.
func aggregationSettings(c *config.Config) aggregation.Settings {
	return aggregation.Settings{Routing: *c.Aggregation.Routing, RejectRedirects: *c.Aggregation.RejectRedirects}
}

// kubelets returns the settings for the part that connects clients to nodes.
func kubelets(c *config.Config) kubelet.Settings {
	k := &c.Kubelet
	bound, err := netip.ParseAddr(c.Listen.BindAddress)
	return kubelet.Settings{
		CertFile: k.ClientCertFile, KeyFile: k.ClientKeyFile, CAFile: k.AuthorityFile, Port: k.Port,
		AddressTypes: k.AddressTypes, Timeout: k.Timeout, BytesPerSecond: k.MaxBytesPerSecond,
		// A server for programs of this machine alone gives them no way to it that they do not have.
		Loopback: err == nil && bound.IsLoopback(),
		Gates: kubelet.Gates{
			UpgradeNeedsCreate: *k.UpgradeNeedsCreate, Translate: *k.TranslateStreams,
			Tunnel: *k.TunnelPorts, Extend: *k.ExtendWebSockets, SplitLogs: k.SplitLogs,
		},
	}
}

// frontProxies returns the settings of front proxies for other servers.
func frontProxies(c *config.RequestHeader) trust.Headers {
	return trust.Headers{
		Username: c.UsernameHeaders, UID: c.UIDHeaders, Group: c.GroupHeaders, ExtraPrefixes: c.ExtraHeadersPrefix,
		AllowedNames: c.AllowedNames,
	}
}

// authorities returns the authority of each signer, empty for the server's own.
func authorities(c *config.Signing) map[string]pki.Authority {
	all := map[string]pki.Authority{}
	for _, s := range config.Signers(c) {
		files := *s.Files
		if c.CertFile != "" {
			files = c.AuthorityFiles
		}
		if files.CertFile != "" {
			all[s.Signer] = pki.Authority(files)
		}
	}
	return all
}

// electionTimes returns the times of the election of the server that elects leaders.
func electionTimes(c *config.Coordination) candidates.Times {
	return candidates.Times{
		LeaseDuration: c.LeaseDuration, RenewDeadline: c.RenewDeadline, RetryPeriod: c.RetryPeriod,
	}
}

// pluginSettings returns the settings of the admission plugins for single kinds.
func pluginSettings(c *config.Config) plugins.Settings {
	s := plugins.Settings{
		NotReadySeconds: c.Limits.NotReadyTolerationSeconds, UnreachableSeconds: c.Limits.UnreachableTolerationSeconds,
		AnyAudience: !*c.Authorization.NodeAudienceRestriction, Features: c.API.Features,
	}
	if config.Runs(&c.Controllers, accounts.Controller) {
		s.AccountPatience = accountPatience
	}
	return s
}

// definitionSettings returns the settings of the protection of custom objects.
func definitionSettings(c *config.Definitions) definitions.Settings {
	return definitions.Settings{Mode: compat.Mode(c.ChangePolicy), Protect: c.Protect}
}
