package main

import (
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/bowsprit/bowsprit"
)

// The flags here are kube-apiserver's, and those of "serve" as well.

func bindListenFlags(f *pflag.FlagSet, c *bowsprit.Config, address string) {
	f.StringVar(&c.BindAddress, "bind-address", address, "IP address to listen on")
	f.IntVar(&c.SecurePort, "secure-port", 6443, "port to listen on, with TLS; 0 picks a free one")
}

func bindEtcdFlags(f *pflag.FlagSet, c *bowsprit.Config, servers string) {
	f.StringSliceVar(&c.EtcdServers, "etcd-servers", nil, servers)
	f.StringVar(&c.EtcdCAFile, "etcd-cafile", "", "authority of etcd's certificates, PEM")
	f.StringVar(&c.EtcdCertFile, "etcd-certfile", "", "client certificate for etcd, PEM")
	f.StringVar(&c.EtcdKeyFile, "etcd-keyfile", "", "key of --etcd-certfile, PEM")
	f.StringVar(&c.EtcdPrefix, "etcd-prefix", "/registry", "root of all keys in etcd")
}

// bindLimitFlags declares how long things may take, how many there may be, and how long they last.
func bindLimitFlags(f *pflag.FlagSet, c *bowsprit.Config) {
	f.DurationVar(&c.RequestTimeout, "request-timeout", time.Minute,
		"how long a request may take, but for watches and the like")
	f.Var(seconds{&c.MinRequestTimeout, 30 * time.Minute}, "min-request-timeout",
		"shortest life of a watch whose client sets none, in seconds; up to as much again is added")
	f.Var(bound[int]{&c.MaxRequestsInFlight, 400, strconv.Atoi}, "max-requests-inflight",
		"how many reads may run at a time, 0 for no limit")
	f.Var(bound[int]{&c.MaxMutatingRequestsInFlight, 200, strconv.Atoi}, "max-mutating-requests-inflight",
		"how many writes may run at a time, 0 for no limit")
	f.Var(bound[time.Duration]{&c.EventTTL, time.Hour, time.ParseDuration}, "event-ttl",
		"how long events live after their last write, 0 for ever")
	c.NotReadyTolerationSeconds, c.UnreachableTolerationSeconds = new(int64), new(int64)
	f.Int64Var(c.NotReadyTolerationSeconds, "default-not-ready-toleration-seconds", 300,
		"how long pods stay on a node that is not ready, if they say nothing")
	f.Int64Var(c.UnreachableTolerationSeconds, "default-unreachable-toleration-seconds", 300,
		"how long pods stay on a node that cannot be reached, if they say nothing")
}

// bindCoordinationFlags declares how the one of several servers is found that elects leaders among candidates.
func bindCoordinationFlags(f *pflag.FlagSet, c *bowsprit.Config) {
	f.DurationVar(&c.CoordinatedLeadershipLeaseDuration, "coordinated-leadership-lease-duration", 15*time.Second,
		"with CoordinatedLeaderElection and several servers: how long to wait for the one that elects before another does it")
	f.DurationVar(&c.CoordinatedLeadershipRenewDeadline, "coordinated-leadership-renew-deadline", 10*time.Second,
		"after how long the one that elects gives up, if it cannot tell the others that it is there")
	f.DurationVar(&c.CoordinatedLeadershipRetryPeriod, "coordinated-leadership-retry-period", 2*time.Second,
		"how often it tells them")
}

// bindTrustFlags declares how the server shows who it is, and whom it believes to be who.
func bindTrustFlags(f *pflag.FlagSet, c *bowsprit.Config) {
	f.StringVar(&c.TLSCertFile, "tls-cert-file", "", "serving certificate, PEM (default: an own one)")
	f.StringVar(&c.TLSPrivateKeyFile, "tls-private-key-file", "", "key of --tls-cert-file, PEM")
	f.StringVar(&c.TLSMinVersion, "tls-min-version", "",
		"oldest version of TLS that clients may use: VersionTLS10 to VersionTLS13 (default VersionTLS12)")
	f.StringSliceVar(&c.TLSCipherSuites, "tls-cipher-suites", nil,
		"cipher suites for TLS before 1.3, by their names in Go's crypto/tls (default: Go's choice)")
	f.StringSliceVar(&c.StrictTransportSecurity, "strict-transport-security-directives", nil,
		"directives of the header Strict-Transport-Security, for browsers (default: no header)")
	f.StringSliceVar(&c.CORSAllowedOrigins, "cors-allowed-origins", nil,
		`regular expressions of the origins from which programs in browsers may use the API, such as '//example.com(:|$)'`)
	f.StringVar(&c.ClientCAFile, "client-ca-file", "",
		"further authorities whose client certificates are believed, PEM")
	f.StringVar(&c.TokenAuthFile, "token-auth-file", "",
		`static bearer tokens, lines of token,user,uid,"group1,group2"`)
}

func bindServiceFlags(f *pflag.FlagSet, c *bowsprit.Config) {
	f.StringVar(&c.ServiceClusterIPRange, "service-cluster-ip-range", "",
		"where services get their addresses from, a CIDR or two of both families (default 10.0.0.0/24)")
	f.Var((*portRange)(&c.ServiceNodePortRange), "service-node-port-range",
		"where services get their ports on nodes from")
	f.StringVar(&c.AdvertiseAddress, "advertise-address", "",
		"address in the endpoints of the service kubernetes (default: that of --bind-address, or the host's)")
}

// bindServiceAccountFlags declares the flags about tokens of service accounts.
func bindServiceAccountFlags(f *pflag.FlagSet, c *bowsprit.Config) {
	f.StringArrayVar(&c.ServiceAccountIssuers, "service-account-issuer", nil,
		"issuer of service accounts' tokens; the first signs, all are believed")
	f.StringVar(&c.ServiceAccountSigningKeyFile, "service-account-signing-key-file", "",
		"private key that signs service accounts' tokens, PEM (default: an own one)")
	f.StringArrayVar(&c.ServiceAccountKeyFiles, "service-account-key-file", nil,
		"keys whose service accounts' tokens are believed, PEM")
	f.StringVar(&c.ServiceAccountJWKSURI, "service-account-jwks-uri", "",
		"where others find the keys, instead of this server's /openid/v1/jwks")
	f.DurationVar(&c.ServiceAccountMaxTokenExpiration, "service-account-max-token-expiration", 0,
		"longest life of a token that is asked for")
	f.StringSliceVar(&c.APIAudiences, "api-audiences", nil, "names of this server in tokens (default: the issuers)")
}

// bindAdmissionConfig declares the flag about the configuration of admission plugins, which is kube-apiserver's.
func bindAdmissionConfig(f *pflag.FlagSet, c *bowsprit.Config) {
	f.StringVar(&c.AdmissionConfigFile, "admission-control-config-file", "",
		"file with an AdmissionConfiguration: credentials for webhooks, resources that are limited without a quota, levels of PodSecurity (default: none)")
}

// settings returns the values of all flags, given or not.
func settings(f *pflag.FlagSet) map[string]string {
	values := map[string]string{}
	f.VisitAll(func(flag *pflag.Flag) { values[flag.Name] = flag.Value.String() })
	return values
}
