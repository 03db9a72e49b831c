package framework

import (
	"context"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/google/uuid"
	"k8s.io/apiserver/pkg/server"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/component-base/version"

	"conformance.local/sut"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/controlplane"
	"k8s.io/kubernetes/pkg/kubeapiserver"
	"k8s.io/kubernetes/pkg/serviceaccount"
	"k8s.io/kubernetes/test/integration/framework/standin"
)

// TestServerSetup changes the options of a server. What it changes in the server's own configuration is lost here, but
// for authenticators, authorizers and how long tokens of service accounts last.
type TestServerSetup struct {
	ModifyServerRunOptions func(*options.ServerRunOptions)
	ModifyServerConfig     func(*controlplane.Config)
	DisableInvariantChecks bool
}

// TearDownFunc stops a server.
type TearDownFunc func()

// StartTestServer starts the server of $SUT_CMD, with what of the options can be said by flags.
func StartTestServer(_ context.Context, t testing.TB, setup TestServerSetup) (kubernetes.Interface, *rest.Config,
	TearDownFunc) {
	dir, err := os.MkdirTemp("", "standin") // in /tmp: the test may end before those that it leaves behind
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	o := newOptions(t, dir)
	if setup.ModifyServerRunOptions != nil {
		setup.ModifyServerRunOptions(o)
	}
	modes := o.Authorization.Modes
	config := newConfig(t, o)
	if setup.ModifyServerConfig != nil {
		setup.ModifyServerConfig(config)
		extra := config.ControlPlane.Extra
		o.Authentication.ServiceAccounts.MaxExpiration = extra.ServiceAccountMaxExpiration
		o.Authentication.ServiceAccounts.ExtendExpiration = extra.ExtendExpiration
	}
	generic := config.ControlPlane.Generic
	modes, asked := standin.AuthorizationFlags(t, dir, generic.Authorization.Authorizer, modes)
	o.Authorization.Modes = modes
	flags := append(sut.GateFlags(utilfeature.DefaultMutableFeatureGate, version.DefaultKubeBinaryVersion, nil), standin.Flags(o)...)
	flags = append(flags, asked...)
	flags = append(flags, standin.AuthenticationFlags(t, dir, generic.Authentication.Authenticator)...)
	s, err := sut.Start(t, sut.Options{}, flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	if generic.LoopbackClientConfig.BearerToken == "" {
		s.Config.BearerToken, s.Config.BearerTokenFile = standin.Anyone, ""
	}
	client, err := kubernetes.NewForConfig(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	return client, rest.CopyConfig(s.Config), func() {
		if !setup.DisableInvariantChecks {
			standin.CheckMetrics(t, client)
		}
		s.Stop()
	}
}

// newOptions returns what tests start from: two authorities, a key and an issuer of tokens, and RBAC.
func newOptions(t testing.TB, dir string) *options.ServerRunOptions {
	o := options.NewServerRunOptions()
	o.Etcd.StorageConfig.Prefix = path.Join("/", uuid.New().String(), "registry")
	o.Etcd.StorageConfig.Transport.ServerList = []string{GetEtcdURL()}
	o.ServiceClusterIPRanges = "10.0.0.0/24"
	o.SecureServing.ServerCert.CertDirectory = dir
	o.Authorization.Modes = []string{"Node", "RBAC"}
	headers := o.Authentication.RequestHeader
	headers.UsernameHeaders, headers.GroupHeaders = []string{"X-Remote-User"}, []string{"X-Remote-Group"}
	headers.ExtraHeaderPrefixes, headers.AllowedNames = []string{"X-Remote-Extra-"}, []string{"kube-aggregator"}
	headers.ClientCAFile, _, _ = standin.CA(t, dir, "front-proxy-ca")
	o.Authentication.ClientCert.ClientCA, _, _ = standin.CA(t, dir, "client-ca")
	o.ServiceAccountSigningKeyFile = standin.ServiceAccountKey(t, dir)
	o.Authentication.APIAudiences = []string{"https://foo.bar.example.com"}
	o.Authentication.ServiceAccounts.Issuers = []string{"https://foo.bar.example.com"}
	o.Authentication.ServiceAccounts.KeyFiles = []string{o.ServiceAccountSigningKeyFile}
	return o
}

// newConfig returns as much of a configuration as tests look into.
func newConfig(t testing.TB, o *options.ServerRunOptions) *controlplane.Config {
	c := &controlplane.Config{}
	c.ControlPlane.Generic = server.NewConfig(legacyscheme.Codecs)
	c.ControlPlane.Generic.LoopbackClientConfig = &rest.Config{BearerToken: "loopback"}
	authentication, authorization := standin.Own()
	c.ControlPlane.Generic.Authentication.Authenticator = authentication
	c.ControlPlane.Generic.Authorization.Authorizer = authorization
	accounts := o.Authentication.ServiceAccounts
	c.ControlPlane.Extra.ServiceAccountMaxExpiration = accounts.MaxExpiration
	c.ControlPlane.Extra.ExtendExpiration = accounts.ExtendExpiration
	factory, err := kubeapiserver.NewStorageFactoryConfig().Complete(o.Etcd).New()
	if err != nil {
		t.Fatal(err)
	}
	c.ControlPlane.Extra.StorageFactory = factory
	if file := o.ServiceAccountSigningKeyFile; file != "" && len(accounts.Issuers) > 0 &&
		strings.TrimSpace(accounts.Issuers[0]) != "" {
		key, err := keyutil.PrivateKeyFromFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c.ControlPlane.Extra.ServiceAccountIssuer, err = serviceaccount.JWTTokenGenerator(accounts.Issuers[0], key)
		if err != nil {
			t.Fatal(err)
		}
	}
	return c
}
