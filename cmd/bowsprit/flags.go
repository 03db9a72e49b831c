package main

import (
	"cmp"

	"github.com/spf13/pflag"
	utilnet "k8s.io/apimachinery/pkg/util/net"

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

// bindTrustFlags declares how the server shows who it is, and whom it believes to be who.
func bindTrustFlags(f *pflag.FlagSet, c *bowsprit.Config) {
	f.StringVar(&c.TLSCertFile, "tls-cert-file", "", "serving certificate, PEM (default: an own one)")
	f.StringVar(&c.TLSPrivateKeyFile, "tls-private-key-file", "", "key of --tls-cert-file, PEM")
	f.StringSliceVar(&c.StrictTransportSecurity, "strict-transport-security-directives", nil, "directives of the header Strict-Transport-Security, for browsers (default: no header)")
	f.StringVar(&c.ClientCAFile, "client-ca-file", "", "further authorities whose client certificates are believed, PEM")
	f.StringVar(&c.TokenAuthFile, "token-auth-file", "", `static bearer tokens, lines of token,user,uid,"group1,group2"`)
}

func bindServiceFlags(f *pflag.FlagSet, c *bowsprit.Config) {
	f.StringVar(&c.ServiceClusterIPRange, "service-cluster-ip-range", "", "where services get their addresses from, a CIDR or two of both families (default 10.0.0.0/24)")
	f.Var((*portRange)(&c.ServiceNodePortRange), "service-node-port-range", "where services get their ports on nodes from")
	f.StringVar(&c.AdvertiseAddress, "advertise-address", "", "address in the endpoints of the service kubernetes (default: that of --bind-address, or the host's)")
}

// portRange is the value of a flag that takes ports from one to another, "" being kube's default for services.
type portRange string

func (p *portRange) Type() string { return "portRange" }

func (p *portRange) String() string { return cmp.Or(string(*p), "30000-32767") }

// Set takes "30000-32767", "30000+100" and a single port.
func (p *portRange) Set(text string) error {
	*p = portRange(text)
	_, err := utilnet.ParsePortRange(text)
	return err
}

// bindServiceAccountFlags declares the flags about tokens of service accounts.
func bindServiceAccountFlags(f *pflag.FlagSet, c *bowsprit.Config) {
	f.StringArrayVar(&c.ServiceAccountIssuers, "service-account-issuer", nil, "issuer of service accounts' tokens; the first signs, all are believed")
	f.StringVar(&c.ServiceAccountSigningKeyFile, "service-account-signing-key-file", "", "private key that signs service accounts' tokens, PEM (default: an own one)")
	f.StringArrayVar(&c.ServiceAccountKeyFiles, "service-account-key-file", nil, "keys whose service accounts' tokens are believed, PEM")
	f.StringVar(&c.ServiceAccountJWKSURI, "service-account-jwks-uri", "", "where others find the keys, instead of this server's /openid/v1/jwks")
	f.DurationVar(&c.ServiceAccountMaxTokenExpiration, "service-account-max-token-expiration", 0, "longest life of a token that is asked for")
	f.StringSliceVar(&c.APIAudiences, "api-audiences", nil, "names of this server in tokens (default: the issuers)")
}
