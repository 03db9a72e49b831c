package config

import (
	"strings"
	"testing"
	"time"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		config Config
		want   string // of the error, lines joined by "; "; "" means no error
	}{
		{"a data directory is enough", Config{DataDir: "x"}, ""},
		{"ephemeral is enough", Config{Ephemeral: true}, ""},
		{"ephemeral in a directory", Config{Ephemeral: true, DataDir: "x"}, ""},
		{"migration without its kind", Config{
			Ephemeral: true, Versions: Versions{MigrateStorage: true},
			API: API{RuntimeConfig: map[string]string{"storagemigration.k8s.io/v1": "false"}},
		},
			"--migrate-storage-versions needs storagemigration.k8s.io/v1, which --runtime-config disables: remove one of the two"},
		{"migration in an older release", Config{
			Ephemeral: true, Versions: Versions{MigrateStorage: true},
			Emulation: Emulation{Version: []string{"1.34"}},
		},
			"--migrate-storage-versions needs storagemigration.k8s.io/v1, which --emulated-version 1.34 does not have: remove one of the two"},
		{"older release", Config{
			Ephemeral: true, Emulation: Emulation{
				Version: []string{"1.34"}, MinCompatibility: []string{"1.34"}, ForwardCompatible: true,
			},
			API: API{RuntimeConfig: map[string]string{"api/beta": "true"}},
		}, ""},
		{"too old a release", Config{
			Ephemeral: true, Emulation: Emulation{Version: []string{"1.33"}, ForwardCompatible: true},
		},
			"--emulated-version, --min-compatibility-version: [emulation version 1.33 is not between [1.34, 1.37.0], " +
				"minCompatibilityVersion version 1.34 is not between [1.34, 1.33]]"},
		{"nothing emulated", Config{
			Ephemeral: true,
			Emulation: Emulation{ForwardCompatible: true, RuntimeConfigForwardCompatible: true},
		},
			"--emulation-forward-compatible cannot be set to true if the emulation version is the same as the binary version: leave it out; " +
				"--runtime-config-emulation-forward-compatible cannot be set to true if the emulation version is the same as the binary version: leave it out"},
		{"a version that came later", Config{
			Ephemeral: true, Emulation: Emulation{Version: []string{"1.36"}},
			API: API{RuntimeConfig: map[string]string{"storagemigration.k8s.io/v1": "true"}},
		},
			"--emulated-version: cannot enable version storagemigration.k8s.io/v1 in runtime-config because all the " +
				"resources have been introduced after the current version 1.36. " +
				"Consider setting --runtime-config-emulation-forward-compatible=true"},
		{"a version that came later, all the same", Config{
			Ephemeral: true,
			Emulation: Emulation{Version: []string{"1.36"}, RuntimeConfigForwardCompatible: true},
			API:       API{RuntimeConfig: map[string]string{"storagemigration.k8s.io/v1": "true"}},
		}, ""},
		{"migration without its controller", Config{
			Ephemeral: true, Versions: Versions{MigrateStorage: true},
			Controllers: Controllers{Enabled: []string{"*", "-storage-version-migrator-controller"}},
		},
			"--migrate-storage-versions needs the controller storage-version-migrator-controller, which --controllers disables: remove one of the two"},
		{"migration", Config{Ephemeral: true, Versions: Versions{MigrateStorage: true}}, ""},
		{"issuer without client", authentication(Authentication{OIDC: OIDC{IssuerURL: "https://a"}}),
			"oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set"},
		{"claim without issuer", authentication(Authentication{OIDC: OIDC{UsernameClaim: "email"}}),
			"oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set"},
		{"defaults of the flags", authentication(Authentication{
			OIDC: OIDC{UsernameClaim: "sub", SigningAlgs: []string{"RS256"}}, ConfigFile: "a",
		}), ""},
		{"issuer and file", authentication(Authentication{OIDC: OIDC{ClientID: "a"}, ConfigFile: "a"}),
			"authentication-config file and oidc-* flags are mutually exclusive"},
		{"empty header", requestHeader(RequestHeader{UsernameHeaders: []string{"X-Remote-User", " "}}),
			`empty value in "requestheader-username-headers"`},
		{"empty names", requestHeader(RequestHeader{
			AllowedNames: []string{""}, GroupHeaders: []string{""}, ExtraHeadersPrefix: []string{""},
			UIDHeaders: []string{"", "x-remote-uid"},
		}), `empty value in "requestheader-group-headers"; empty value in "requestheader-extra-headers-prefix"; ` +
			`empty value in "requestheader-allowed-names"; empty value in "requestheader-uid-headers"`},
		{"own UID header", requestHeader(RequestHeader{UIDHeaders: []string{"X-Uid"}}),
			"--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header - " +
				"API aggregation will not work"},
		{"keys of service accounts without TLS", Config{Ephemeral: true, ServiceAccounts: ServiceAccounts{
			JWKSURI: "http://keys.example.com/jwks",
		}}, "service-account-jwks-uri requires https scheme, parsed as: http://keys.example.com/jwks"},
		{"keys of service accounts at no URL", Config{Ephemeral: true, ServiceAccounts: ServiceAccounts{
			JWKSURI: "https://host:port",
		}}, `service-account-jwks-uri must be a valid URL: parse "https://host:port": invalid port ":port" after host`},
		{"issuers of service accounts", Config{Ephemeral: true, ServiceAccounts: ServiceAccounts{
			Issuers: []string{"https://a", "", "https://a", "https://%"},
		}}, `service-account-issuer should not be an empty string; ` +
			`service-account-issuer "https://a" is already specified; ` +
			`service-account-issuer "https://%" contained a ':' but was not a valid URL: parse "https://%": invalid URL escape "%"`},
		{"nothing", Config{}, "--data-dir is empty: name a directory, or use --ephemeral for a temporary one"},
		{"highest port", Config{Ephemeral: true, Listen: Listen{SecurePort: 65535}}, ""},
		{"port too high", Config{Ephemeral: true, Listen: Listen{SecurePort: 65536}},
			"--secure-port 65536 is not a port: use 1 to 65535, or 0 for a free one"},
		{"port too low", Config{Ephemeral: true, Listen: Listen{SecurePort: -1}},
			"--secure-port -1 is not a port: use 1 to 65535, or 0 for a free one"},
		{"IPv6", Config{Ephemeral: true, Listen: Listen{BindAddress: "::1"}}, ""},
		{"name instead of address", Config{Ephemeral: true, Listen: Listen{BindAddress: "localhost"}},
			`--bind-address "localhost" is not an IP address: use one such as 127.0.0.1, or 0.0.0.0 for all`},
		{"etcd servers",
			Config{Ephemeral: true, Etcd: Etcd{Servers: []string{"https://a:2379", "http://b:2379"}}}, ""},
		{"etcd server without scheme",
			Config{Ephemeral: true, Etcd: Etcd{Servers: []string{"http://a:2379", "b:2379"}}},
			`--etcd-servers: "b:2379" is not a URL such as https://127.0.0.1:2379`},
		{"etcd server with a wrong scheme", Config{Ephemeral: true, Etcd: Etcd{Servers: []string{"unix:///a"}}},
			`--etcd-servers: "unix:///a" is not a URL such as https://127.0.0.1:2379`},
		{"etcd server without host", Config{Ephemeral: true, Etcd: Etcd{Servers: []string{"http://"}}},
			`--etcd-servers: "http://" is not a URL such as https://127.0.0.1:2379`},
		{"both etcds",
			Config{
				Ephemeral: true,
				Etcd:      Etcd{Servers: []string{"http://a:2379"}, ListenClientURL: "http://127.0.0.1:2379"},
			},
			"--etcd-listen-client-url exposes the embedded etcd, which --etcd-servers replaces: drop one of them"},
		{"etcd's TLS files without servers", Config{Ephemeral: true, Etcd: Etcd{CAFile: "ca"}},
			"--etcd-cafile, --etcd-certfile and --etcd-keyfile belong to an external cluster: add --etcd-servers"},
		{"etcd certificate without key",
			Config{Ephemeral: true, Etcd: Etcd{Servers: []string{"https://a:2379"}, CertFile: "c"}},
			"--etcd-certfile and --etcd-keyfile go together: give both or none"},
		{"etcd key without certificate",
			Config{Ephemeral: true, Etcd: Etcd{Servers: []string{"https://a:2379"}, KeyFile: "k"}},
			"--etcd-certfile and --etcd-keyfile go together: give both or none"},
		{"etcd prefix", Config{Ephemeral: true, Etcd: Etcd{Prefix: "/mine/"}}, ""},
		{"etcd prefix of slashes", Config{Ephemeral: true, Etcd: Etcd{Prefix: "//"}},
			`--etcd-prefix "//" leaves no name for the keys: use something like /registry`},
		{"etcd's socket", Config{Ephemeral: true, Etcd: Etcd{ListenClientURL: "http://127.0.0.1:0"}}, ""},
		{"etcd's socket by name", Config{Ephemeral: true, Etcd: Etcd{ListenClientURL: "http://localhost:2379"}},
			""},
		{"etcd's socket on IPv6", Config{Ephemeral: true, Etcd: Etcd{ListenClientURL: "http://[::1]:2379"}}, ""},
		{"etcd's socket for everybody",
			Config{Ephemeral: true, Etcd: Etcd{ListenClientURL: "http://0.0.0.0:2379"}},
			`--etcd-listen-client-url "http://0.0.0.0:2379" could be reached from other machines, without TLS: ` +
				`use 127.0.0.1, and a tunnel from elsewhere`},
		{"etcd's socket on a network",
			Config{Ephemeral: true, Etcd: Etcd{ListenClientURL: "http://etcd.example:2379"}},
			`--etcd-listen-client-url "http://etcd.example:2379" could be reached from other machines, without TLS: ` +
				`use 127.0.0.1, and a tunnel from elsewhere`},
		{"etcd's socket with TLS",
			Config{Ephemeral: true, Etcd: Etcd{ListenClientURL: "https://127.0.0.1:0"}},
			`--etcd-listen-client-url "https://127.0.0.1:0" is not a URL such as http://127.0.0.1:2379`},
		{"etcd's socket without a port",
			Config{Ephemeral: true, Etcd: Etcd{ListenClientURL: "http://127.0.0.1"}},
			`--etcd-listen-client-url "http://127.0.0.1" has no port from 0 to 65535: add one, as in http://127.0.0.1:2379`},
		{"etcd's socket with an empty port",
			Config{Ephemeral: true, Etcd: Etcd{ListenClientURL: "http://127.0.0.1:"}},
			`--etcd-listen-client-url "http://127.0.0.1:" has no port from 0 to 65535: add one, as in http://127.0.0.1:2379`},
		{"etcd's socket with a large port",
			Config{Ephemeral: true, Etcd: Etcd{ListenClientURL: "http://127.0.0.1:70000"}},
			`--etcd-listen-client-url "http://127.0.0.1:70000" has no port from 0 to 65535: add one, as in http://127.0.0.1:2379`},
		{"etcd's socket on IPv6 without a port",
			Config{Ephemeral: true, Etcd: Etcd{ListenClientURL: "http://[::1]"}},
			`--etcd-listen-client-url "http://[::1]" has no port from 0 to 65535: add one, as in http://127.0.0.1:2379`},
		{"etcd's socket with a path",
			Config{Ephemeral: true, Etcd: Etcd{ListenClientURL: "http://127.0.0.1:2379/x"}},
			`--etcd-listen-client-url "http://127.0.0.1:2379/x" is not a URL such as http://127.0.0.1:2379`},
		{"etcd's socket with a password",
			Config{Ephemeral: true, Etcd: Etcd{ListenClientURL: "http://a:b@127.0.0.1:2379"}},
			`--etcd-listen-client-url "http://a:b@127.0.0.1:2379" is not a URL such as http://127.0.0.1:2379`},
		{"etcd's socket without a host",
			Config{Ephemeral: true, Etcd: Etcd{ListenClientURL: "http://:2379"}},
			`--etcd-listen-client-url "http://:2379" is not a URL such as http://127.0.0.1:2379`},
		{"etcd's socket with a query",
			Config{Ephemeral: true, Etcd: Etcd{ListenClientURL: "http://127.0.0.1:2379?a=b"}},
			`--etcd-listen-client-url "http://127.0.0.1:2379?a=b" is not a URL such as http://127.0.0.1:2379`},
		{"serving certificate without key", Config{Ephemeral: true, TLS: TLS{CertFile: "c"}},
			"--tls-cert-file and --tls-private-key-file go together: give both or none"},
		{"serving key without certificate", Config{Ephemeral: true, TLS: TLS{PrivateKeyFile: "k"}},
			"--tls-cert-file and --tls-private-key-file go together: give both or none"},
		{"range of services",
			Config{Ephemeral: true, Services: Services{ClusterIPRange: "10.1.0.0/16,fd00::/108"}}, ""},
		{"range of services that is none",
			Config{Ephemeral: true, Services: Services{ClusterIPRange: "10.0.0.1"}},
			`--service-cluster-ip-range "10.0.0.1" is not a range of addresses (netip.ParsePrefix("10.0.0.1"): no '/'): use one such as 10.0.0.0/24`},
		{"range of a new cluster",
			Config{Ephemeral: true, Services: Services{NewClusterIPRange: "fd00::/108"}},
			`Services.NewClusterIPRange "fd00::/108" is not an IPv4 network: use one such as 10.96.0.0/12`},
		{"ranges of one family",
			Config{Ephemeral: true, Services: Services{ClusterIPRange: "10.0.0.0/24,10.1.0.0/24"}},
			`--service-cluster-ip-range "10.0.0.0/24,10.1.0.0/24" is not a range of addresses (both are of one family): use one such as 10.0.0.0/24`},
		{"range of one address", Config{Ephemeral: true, Services: Services{ClusterIPRange: "10.0.0.1/32"}},
			`--service-cluster-ip-range "10.0.0.1/32" is not a range of addresses (10.0.0.1/32 has less than 8 addresses): use one such as 10.0.0.0/24`},
		{"ports", Config{Ephemeral: true, Services: Services{NodePortRange: "100-200"}}, ""},
		{"ports that are none", Config{Ephemeral: true, Services: Services{NodePortRange: "200-100"}},
			`--service-node-port-range "200-100" is not a range of ports: use one such as 30000-32767`},
		{"advertised address", Config{Ephemeral: true, Services: Services{AdvertiseAddress: "192.0.2.1"}}, ""},
		// envtest's arguments; kube-apiserver starts too
		{"advertised loopback address",
			Config{Ephemeral: true, Services: Services{AdvertiseAddress: "127.0.0.1"}}, ""},
		{"advertised name", Config{Ephemeral: true, Services: Services{AdvertiseAddress: "localhost"}},
			`--advertise-address "localhost" is not an IP address: use one such as 192.0.2.1`},
		{"advertised address of the other family",
			Config{Ephemeral: true, Services: Services{AdvertiseAddress: "2001:db8::1"}},
			`--advertise-address 2001:db8::1 must be of the family of --service-cluster-ip-range, 10.0.0.0/24`},
		{"negative shutdown timeout", Config{Ephemeral: true, ShutdownTimeout: -time.Second},
			"--shutdown-timeout -1s is negative: use a duration such as 10s"},
		{"admission plugin",
			Config{Ephemeral: true, Admission: Admission{Disabled: []string{"NamespaceLifecycle"}}}, ""},
		{"unknown admission plugin", Config{Ephemeral: true, Admission: Admission{Disabled: []string{"Nope"}}},
			`--disable-admission-plugins: "Nope" is unknown: use NamespaceLifecycle, ` +
				strings.Join(AdmissionPlugins()[1:], ", ")},
		{"coordinated leadership",
			Config{
				Ephemeral: true, Coordination: Coordination{LeaseDuration: 5 * time.Second,
					RenewDeadline: 3 * time.Second, RetryPeriod: time.Second},
			}, ""},
		{"leader that gives up too late",
			Config{Ephemeral: true, Coordination: Coordination{LeaseDuration: 10 * time.Second}},
			"--coordinated-leadership-lease-duration must be greater than --coordinated-leadership-renew-deadline"},
		{"leader that gives up too early",
			Config{Ephemeral: true, Coordination: Coordination{RenewDeadline: time.Second}},
			"--coordinated-leadership-renew-deadline must be greater than --coordinated-leadership-retry-period"},
		{"kubelet without its key", Config{Ephemeral: true, Kubelet: Kubelet{ClientCertFile: "a.crt"}},
			"--kubelet-client-certificate and --kubelet-client-key go together: give both or none"},
		{"no port of kubelets", Config{Ephemeral: true, Kubelet: Kubelet{Port: 70000}}, "--kubelet-port 70000 is not a port: use one from 1 to 65535"},
		{"negative timeout of kubelets", Config{Ephemeral: true, Kubelet: Kubelet{Timeout: -time.Second}},
			"--kubelet-timeout -1s is negative: use a duration such as 5s"},
		{"negative bytes for kubelets", Config{Ephemeral: true, Kubelet: Kubelet{MaxBytesPerSecond: -1}},
			"--max-connection-bytes-per-sec -1 is negative: use 0 for no limit"},
		{"peer address that is none", Config{Ephemeral: true, Aggregation: Aggregation{PeerAdvertiseIP: "host"}},
			`--peer-advertise-ip "host" is not an IP address`},
		{"peer port that is none", Config{Ephemeral: true, Aggregation: Aggregation{PeerAdvertisePort: "70000"}},
			`--peer-advertise-port "70000" is not a port: use one from 1 to 65535`},
		{"peers without a client certificate", Config{Ephemeral: true, Aggregation: Aggregation{PeerCAFile: "f"}},
			"--peer-ca-file needs --proxy-client-cert-file and --proxy-client-key-file, with which this " +
				"server authenticates to the other servers"},
		{"peers without their gate",
			Config{Ephemeral: true, Aggregation: Aggregation{PeerProxy: new(false), PeerAdvertisePort: "1"}},
			"--peer-advertise-port requires UnknownVersionInteroperabilityProxy feature to be turned on"},
		{"negative retry period of leaders",
			Config{Ephemeral: true, Coordination: Coordination{RetryPeriod: -time.Second}},
			"--coordinated-leadership-retry-period -1s is negative: use a duration such as 2s"},
		{"extension that package extension did not make", Config{Ephemeral: true, Extensions: []Extension{{}}},
			"Extensions[0] is empty: make it with extension.In"},
		{"all that is wrong", Config{Listen: Listen{SecurePort: -1}, ShutdownTimeout: -1},
			"--data-dir is empty: name a directory, or use --ephemeral for a temporary one; " +
				"--secure-port -1 is not a port: use 1 to 65535, or 0 for a free one; " +
				"--shutdown-timeout -1ns is negative: use a duration such as 10s"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if err := test.config.Validate(); err != nil {
				got = strings.ReplaceAll(err.Error(), "\n", "; ")
			}
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestDefaults checks that every default is filled in once, and that given values stay.
func TestDefaults(t *testing.T) {
	t.Parallel()
	c := WithDefaults(Config{})
	if c.Listen.BindAddress != "127.0.0.1" || c.Etcd.Prefix != "/registry" || c.ShutdownTimeout != 10*time.Second ||
		c.Log == nil {
		t.Errorf("defaults: %+v", c)
	}
	set := Config{
		Listen: Listen{BindAddress: "::1"}, Etcd: Etcd{Prefix: "/mine"}, ShutdownTimeout: time.Minute,
		Log: c.Log,
	}
	if got := WithDefaults(set); got.Listen.BindAddress != "::1" || got.Etcd.Prefix != "/mine" ||
		got.ShutdownTimeout != time.Minute || got.Log != c.Log {
		t.Errorf("changed: %+v", got)
	}
}

func authentication(c Authentication) Config { return Config{Ephemeral: true, Authentication: c} }

func requestHeader(c RequestHeader) Config {
	return authentication(Authentication{RequestHeader: c})
}

// TestEmulatedDefaults checks that each feature is on from the release on in which Kubernetes enabled it.
func TestEmulatedDefaults(t *testing.T) {
	t.Parallel()
	for release, want := range map[string][5]bool{
		"1.37": {true, true, true, true, true},
		"1.36": {true, true, true, true, true},
		"1.35": {true, false, false, false, false},
		"1.34": {},
	} {
		c := WithDefaults(Config{Emulation: Emulation{Version: []string{release}}})
		got := [5]bool{
			*c.Kubelet.UpgradeNeedsCreate, *c.Kubelet.ExtendWebSockets, *c.Aggregation.PeerProxy,
			*c.Authorization.ConstrainedImpersonation, *c.Authorization.ClaimStatusAuthorization,
		}
		if got != want {
			t.Errorf("%s: %v, want %v", release, got, want)
		}
	}
}
