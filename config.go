package bowsprit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/kinds/coordination/candidates"
	"github.com/bowsprit/bowsprit/internal/kinds/network/address"
)

// Config says how a Server runs. The zero value with Ephemeral or DataDir set is complete.
type Config struct {
	// DataDir holds etcd's data, certificates and the kubeconfig. It is made if missing; one process at a time uses it.
	// With Ephemeral it may be empty: then a temporary directory is used and removed at the end. Other users must not
	// be able to write to it; what they may read of it is taken away.
	DataDir string
	// Ephemeral gives up durability for speed: nothing is fsynced. For tests. With a DataDir, what it holds outlives
	// the server, but not a crash of the machine.
	Ephemeral bool

	// BindAddress is the address to listen on, "127.0.0.1" if empty.
	BindAddress string
	// SecurePort is the port to listen on; 0 picks a free one.
	SecurePort int
	// Listener, if set, is used instead of BindAddress and SecurePort. The server closes it.
	Listener net.Listener

	// Kubeconfig is a file that gets the administrator's context, cluster and user, all named "bowsprit", besides
	// "<data directory>/kubeconfig". What else it holds stays, the current context too if there is one.
	Kubeconfig string

	// EtcdServers are the URLs of an external etcd cluster to use instead of the embedded etcd.
	EtcdServers                           []string
	EtcdCAFile, EtcdCertFile, EtcdKeyFile string
	// EtcdPrefix is the root of all keys, "/registry" if empty.
	EtcdPrefix string
	// QuotaBackendBytes is how large the embedded etcd's database may grow; 8 GiB if zero.
	QuotaBackendBytes int64
	// EtcdListenClientURL makes the embedded etcd reachable, for etcdctl; empty means no socket.
	EtcdListenClientURL string

	// TLSCertFile and TLSPrivateKeyFile are the serving certificate; without them the server makes its own.
	TLSCertFile, TLSPrivateKeyFile string
	// TLSMinVersion is the oldest version of TLS that clients may use, named as in package crypto/tls ("VersionTLS13");
	// VersionTLS12 if empty. TLSCipherSuites are the suites for versions before 1.3, named likewise; Go's choice if
	// empty.
	TLSMinVersion   string
	TLSCipherSuites []string
	// StrictTransportSecurity are directives for browsers ("max-age=31536000", "includeSubDomains"), which go with
	// every answer; without any there is no such header.
	StrictTransportSecurity []string
	// CORSAllowedOrigins are regular expressions of the origins ("//ui\\.example\\.com(:|$)") from which programs in
	// browsers may use the API. Each must say where the host begins and where it ends.
	CORSAllowedOrigins []string
	// ClientCAFile holds further authorities whose client certificates are believed.
	ClientCAFile string
	// TokenAuthFile holds static bearer tokens: lines of token,user,uid,"group1,group2".
	TokenAuthFile string

	// RequestTimeout is how long a request may take that is not long-running, a minute if zero.
	RequestTimeout time.Duration
	// MinRequestTimeout is the shortest life of a watch whose client sets none; up to as much again is added at
	// random. 30 minutes if zero.
	MinRequestTimeout time.Duration
	// MaxRequestsInFlight and MaxMutatingRequestsInFlight are how many reads and writes may run at a time, 400 and 200
	// if zero; less than zero is no limit. Others get 429.
	MaxRequestsInFlight, MaxMutatingRequestsInFlight int
	// EventTTL is how long events live after their last write, an hour if zero; less than zero is forever.
	EventTTL time.Duration

	// AlwaysAllow lets everybody who is authenticated do everything, as kube's authorization mode of that name: for
	// tests. It implies NoAnonymous.
	AlwaysAllow bool
	// NoAnonymous refuses requests without a client certificate or token (401), even those about health.
	NoAnonymous bool

	// ServiceAccountIssuers are whose tokens of service accounts are believed; the first is the name that this server
	// signs as, "https://kubernetes.default.svc.cluster.local" if there is none.
	ServiceAccountIssuers []string
	// ServiceAccountSigningKeyFile is the private key that signs them, PEM; without it the server makes its own in the
	// data directory. Replicas that share an etcd need the same. ServiceAccountKeyFiles are the keys, public or
	// private, whose tokens are believed; if there are none, that of ServiceAccountSigningKeyFile.
	ServiceAccountSigningKeyFile string
	ServiceAccountKeyFiles       []string
	// ServiceAccountJWKSURI is where others find the keys; that of this server if empty.
	ServiceAccountJWKSURI string
	// ServiceAccountMaxTokenExpiration shortens the tokens that are asked for; 0 means not to.
	ServiceAccountMaxTokenExpiration time.Duration
	// APIAudiences are the names of this server in tokens; the issuers if empty.
	APIAudiences []string

	// AdmissionPlugins admit writes inside the process, in the given order, after kube's plugins about single kinds
	// and before webhooks and policies.
	AdmissionPlugins []AdmissionPlugin
	// DisableAdmissionPlugins are the names of plugins that let every request pass, such as "NamespaceLifecycle".
	DisableAdmissionPlugins []string
	// AdmissionConfigFile is a file with an AdmissionConfiguration of kube-apiserver, YAML: credentials for webhooks,
	// resources that nobody may have without a ResourceQuota, and what PodSecurity demands of whom. "" for none.
	AdmissionConfigFile string

	// NotReadyTolerationSeconds and UnreachableTolerationSeconds are how long the plugin DefaultTolerationSeconds lets
	// pods stay on a node that is not ready or cannot be reached, 300 each if nil.
	NotReadyTolerationSeconds, UnreachableTolerationSeconds *int64

	// CBOR lets clients send and get CBOR, and stores custom objects in it: kube's feature gate CBORServingAndStorage,
	// which is off by default there too. Whatever it is, what is stored in CBOR is read.
	CBOR bool

	// CoordinatedLeaderElection gives Leases for which there are LeaseCandidates to the best of them: kube's feature
	// gate of that name, which is off by default there too. RuntimeConfig must have coordination.k8s.io/v1beta1 served.
	CoordinatedLeaderElection bool
	// CoordinatedLeadershipLeaseDuration is how long replicas wait for the one that does that before another does it,
	// 15 seconds if zero; CoordinatedLeadershipRenewDeadline is after how long one gives up that cannot tell the
	// others that it is there, 10 seconds, and CoordinatedLeadershipRetryPeriod how often it tells them, 2 seconds.
	CoordinatedLeadershipLeaseDuration, CoordinatedLeadershipRenewDeadline,
	CoordinatedLeadershipRetryPeriod time.Duration

	// RuntimeConfig switches built-in kinds on and off, as kube-apiserver's flag --runtime-config: "group/version"
	// ("v1" for the core group) or "group/version/resource" to "true" or "false", "api/all", "api/ga", "api/beta" and
	// "api/alpha" for all versions of such names. The server's own controllers see also what is off.
	RuntimeConfig map[string]string

	// MigrateStorage has the objects of a custom kind stored anew by itself when its storage version changes, by a
	// StorageVersionMigration named after the definition and its generation.
	MigrateStorage bool
	// Conversions convert objects of custom kinds between their versions inside this program. They take the place of
	// whatever the kinds' definitions say about conversion.
	Conversions map[schema.GroupKind]Conversion

	// Controllers chooses which of kube-controller-manager's controllers run, as its flag --controllers: names, names
	// after a minus, "*" for all others, "-*" for no others. Empty means all. The API serves what other controllers
	// need to do their work.
	Controllers []string
	// ServiceClusterIPRange is where services get their addresses from, "10.0.0.0/24" if empty: a CIDR, or two of both
	// families divided by a comma, of which the first is that of services that name no family. The service
	// "kubernetes" has the first address. ServiceCIDR objects add to it.
	ServiceClusterIPRange string
	// ServiceNodePortRange is where ports on nodes come from, "30000-32767" if empty, both inclusive.
	ServiceNodePortRange string
	// AdvertiseAddress is where others reach this server, shown in the endpoints of the service "kubernetes". If empty
	// it is BindAddress, or the host's address if that is a loopback address or all addresses. A loopback address
	// cannot be shown.
	AdvertiseAddress string

	// Flags are the settings of this process by the names of its flags, for the page /flagz; without any there is no
	// such page. They are shown to whoever may read it, so nothing in them may be secret.
	Flags map[string]string
	// ShutdownTimeout bounds how long running requests may take to end, 10 seconds if zero.
	ShutdownTimeout time.Duration
	// Log receives what happens; nil drops it.
	Log *slog.Logger
}

// Conversion returns objects, which it must not change, in version apiVersion ("group/version"), in the same order.
// Objects are decoded JSON: map[string]any, []any, string, bool, int64, float64, nil. What it returns is checked as
// the reply of a conversion webhook is: of metadata, only labels and annotations may be others.
type Conversion = func(ctx context.Context, objects []map[string]any, apiVersion string) ([]map[string]any, error)

// AdmissionPlugins returns the names that DisableAdmissionPlugins may hold, which are kube-apiserver's.
func AdmissionPlugins() []string { return admissionPlugins() }

// withDefaults returns the configuration with every default filled in.
func (c Config) withDefaults() Config {
	if c.BindAddress == "" {
		c.BindAddress = "127.0.0.1"
	}
	if c.EtcdPrefix == "" {
		c.EtcdPrefix = "/registry"
	}
	if c.ShutdownTimeout == 0 {
		c.ShutdownTimeout = 10 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Validate returns everything that is wrong with the configuration, each error naming the flag that sets the field.
func (c Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	if c.DataDir == "" && !c.Ephemeral {
		bad("--data-dir is empty: name a directory, or use --ephemeral for a temporary one")
	}
	if c.SecurePort < 0 || c.SecurePort > 65535 {
		bad("--secure-port %d is not a port: use 1 to 65535, or 0 for a free one", c.SecurePort)
	}
	if c.BindAddress != "" && net.ParseIP(c.BindAddress) == nil {
		bad("--bind-address %q is not an IP address: use one such as 127.0.0.1, or 0.0.0.0 for all", c.BindAddress)
	}
	for _, server := range c.EtcdServers {
		if u, err := url.Parse(server); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			bad("--etcd-servers: %q is not a URL such as https://127.0.0.1:2379", server)
		}
	}
	if len(c.EtcdServers) > 0 && c.EtcdListenClientURL != "" {
		bad("--etcd-listen-client-url exposes the embedded etcd, which --etcd-servers replaces: drop one of them")
	}
	if len(c.EtcdServers) == 0 && (c.EtcdCAFile != "" || c.EtcdCertFile != "" || c.EtcdKeyFile != "") {
		bad("--etcd-cafile, --etcd-certfile and --etcd-keyfile belong to an external cluster: add --etcd-servers")
	}
	if c.QuotaBackendBytes < 0 {
		bad("--quota-backend-bytes %d is negative: use a number of bytes, or 0 for 8 GiB", c.QuotaBackendBytes)
	}
	if len(c.EtcdServers) > 0 && c.QuotaBackendBytes != 0 {
		bad("--quota-backend-bytes is the embedded etcd's, which --etcd-servers replaces: drop one of them")
	}
	if (c.EtcdCertFile == "") != (c.EtcdKeyFile == "") {
		bad("--etcd-certfile and --etcd-keyfile go together: give both or none")
	}
	if (c.TLSCertFile == "") != (c.TLSPrivateKeyFile == "") {
		bad("--tls-cert-file and --tls-private-key-file go together: give both or none")
	}
	if _, err := parseTLS(c); err != nil {
		errs = append(errs, err)
	}
	if _, err := parseOrigins(c.CORSAllowedOrigins); err != nil {
		errs = append(errs, err)
	}
	if c.RequestTimeout < 0 {
		bad("--request-timeout %s is negative: use a duration such as 1m", c.RequestTimeout)
	}
	if c.MinRequestTimeout < 0 {
		bad("--min-request-timeout %d is negative: use a number of seconds", c.MinRequestTimeout/time.Second)
	}
	if strings.Trim(c.EtcdPrefix, "/") == "" && c.EtcdPrefix != "" {
		bad("--etcd-prefix %q leaves no name for the keys: use something like /registry", c.EtcdPrefix)
	}
	plugins := admissionPlugins()
	for _, p := range c.AdmissionPlugins {
		if p.Name == "" || slices.Contains(plugins, p.Name) {
			bad("AdmissionPlugins: each needs a name of its own, which %q is not", p.Name)
		}
		plugins = append(plugins, p.Name)
	}
	if err := kinds.RuntimeConfig(c.RuntimeConfig).Validate(); err != nil {
		bad("--runtime-config: %w", err)
	}
	switch leadership := c.coordination(); {
	case leadership.RetryPeriod < 0:
		bad("--coordinated-leadership-retry-period %s is negative: use a duration such as 2s", leadership.RetryPeriod)
	case leadership.LeaseDuration <= leadership.RenewDeadline:
		bad("--coordinated-leadership-lease-duration must be greater than --coordinated-leadership-renew-deadline")
	case leadership.RenewDeadline <= leadership.RetryPeriod:
		bad("--coordinated-leadership-renew-deadline must be greater than --coordinated-leadership-retry-period")
	}
	for _, name := range c.Controllers {
		if !slices.Contains([]string{"*", "-*"}, name) &&
			!slices.Contains(controllers(), strings.TrimPrefix(name, "-")) {
			bad("--controllers: %q is unknown: use *, or %s, each perhaps after a minus", name,
				strings.Join(controllers(), ", "))
		}
	}
	if len(c.ServiceAccountKeyFiles) > 0 && c.ServiceAccountSigningKeyFile == "" {
		bad("--service-account-key-file needs a key that signs: add --service-account-signing-key-file")
	}
	if t := c.ServiceAccountMaxTokenExpiration; t != 0 && (t < time.Hour || t > 1<<32*time.Second) {
		bad("--service-account-max-token-expiration %s is out of range: use 1h up to 2^32 seconds", t)
	}
	for _, name := range c.DisableAdmissionPlugins {
		if !slices.Contains(plugins, name) {
			bad("--disable-admission-plugins: %q is unknown: use %s", name, strings.Join(plugins, ", "))
		}
	}
	if err := checkEtcdURL(c.EtcdListenClientURL); err != nil {
		errs = append(errs, err)
	}
	ranges, err := parseServiceRanges(c.ServiceClusterIPRange)
	if err != nil {
		bad("--service-cluster-ip-range %q is no range of addresses (%w): use one such as 10.0.0.0/24",
			c.ServiceClusterIPRange, err)
	}
	if _, err := parseNodePorts(c.ServiceNodePortRange); err != nil {
		bad("--service-node-port-range %q is no range of ports: use one such as 30000-32767", c.ServiceNodePortRange)
	}
	if ip, err := netip.ParseAddr(c.AdvertiseAddress); c.AdvertiseAddress != "" {
		switch {
		case err != nil:
			bad("--advertise-address %q is not an IP address: use one such as 192.0.2.1", c.AdvertiseAddress)
		case len(ranges) > 0 && ranges[0].Addr().Is4() != ip.Unmap().Is4():
			bad("--advertise-address %s must be of the family of --service-cluster-ip-range, %s", c.AdvertiseAddress,
				ranges[0])
		}
	}
	if c.ShutdownTimeout < 0 {
		bad("--shutdown-timeout %s is negative: use a duration such as 10s", c.ShutdownTimeout)
	}
	return errors.Join(errs...)
}

// Where services get addresses and ports from if nothing is said: kube-apiserver's.
const (
	defaultServiceRange = "10.0.0.0/24"
	defaultNodePorts    = "30000-32767"
)

func parseServiceRanges(text string) ([]netip.Prefix, error) {
	return address.ParseRanges(strings.Split(cmp.Or(text, defaultServiceRange), ","))
}

func parseNodePorts(text string) (utilnet.PortRange, error) {
	r, err := utilnet.ParsePortRange(cmp.Or(text, defaultNodePorts))
	if err != nil {
		return utilnet.PortRange{}, err
	}
	if r.Base == 0 || r.Size == 0 {
		return utilnet.PortRange{}, errors.New("there is none")
	}
	return *r, nil
}

// coordination is how this replica comes to coordinate the election of leaders, if it does.
func (c Config) coordination() candidates.Times {
	return candidates.Times{
		LeaseDuration: c.CoordinatedLeadershipLeaseDuration, RenewDeadline: c.CoordinatedLeadershipRenewDeadline,
		RetryPeriod: c.CoordinatedLeadershipRetryPeriod,
	}.WithDefaults()
}

// serviceRanges and nodePorts return what Validate has looked at.
func (c Config) serviceRanges() []netip.Prefix {
	ranges, _ := parseServiceRanges(c.ServiceClusterIPRange)
	return ranges
}

func (c Config) nodePorts() utilnet.PortRange {
	ports, _ := parseNodePorts(c.ServiceNodePortRange)
	return ports
}

// reachableByOthers reports whether an address may stand among endpoints.
func reachableByOthers(ip netip.Addr) bool {
	return ip.IsValid() && !ip.IsLoopback() && !ip.IsUnspecified() && !ip.IsMulticast() && !ip.IsLinkLocalUnicast()
}

// advertised returns where others reach the server, as kube-apiserver finds it out: of the family of the service
// "kubernetes". The error says why there is none.
func (c Config) advertised() (netip.Addr, error) {
	text := c.AdvertiseAddress
	if text == "" {
		ip, err := utilnet.ResolveBindAddress(net.ParseIP(c.BindAddress))
		if err != nil {
			return netip.Addr{}, err
		}
		text = ip.String()
	}
	ip, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, err
	}
	ip = ip.Unmap()
	if first := c.serviceRanges()[0]; !reachableByOthers(ip) || first.Addr().Is4() != ip.Is4() {
		return netip.Addr{},
			fmt.Errorf("%s is no address where others reach the service kubernetes, which is in %s", ip, first)
	}
	return ip, nil
}
