// Package testing stands in for the package of this name in k8s.io/kubernetes: it starts the server of $SUT_CMD
// instead of a kube-apiserver in the test's own process. Names and types are those that the tests use.
package testing

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storageversion"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/version"

	"conformance.local/sut"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/test/integration/framework/standin"
	"k8s.io/kubernetes/test/utils/ktesting"
)

// TearDownFunc stops a server.
type TearDownFunc func()

// TestServerInstanceOptions are about a server in the test's own process; BinaryVersion means nothing here.
type TestServerInstanceOptions struct {
	SkipHealthzCheck       bool
	EnableCertAuth         bool
	StorageVersionWrapFunc func(storageversion.Manager) storageversion.Manager
	ProxyCA                *ProxyCA
	BinaryVersion          string
	DisableInvariantChecks bool
	RequestTimeout         time.Duration
}

// TestServer is a running server.
type TestServer struct {
	ClientConfig      *rest.Config
	ServerOpts        *options.ServerRunOptions // what the flags say
	TearDownFn        TearDownFunc
	TmpDir            string
	EtcdClient        *clientv3.Client
	EtcdStoragePrefix string
}

// Logger is what some tests pass around.
type Logger interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
	Cleanup(func())
}

// ProxyCA is part of TestServerInstanceOptions.
type ProxyCA struct {
	ProxySigningCert *x509.Certificate
	ProxySigningKey  *rsa.PrivateKey
}

// NewDefaultTestServerOptions returns options.
func NewDefaultTestServerOptions() *TestServerInstanceOptions {
	return &TestServerInstanceOptions{EnableCertAuth: true}
}

// StartTestServer starts a server with the flags, of those that $SUT_CMD passes on, on the keys of storage.
func StartTestServer(
	t ktesting.TB, o *TestServerInstanceOptions, flags []string, storage *storagebackend.Config,
) (TestServer, error) {
	if o == nil {
		o = NewDefaultTestServerOptions()
	}
	s := TestServer{ServerOpts: options.NewServerRunOptions(), EtcdStoragePrefix: storage.Prefix}
	s.ServerOpts.Etcd.StorageConfig = *storage
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	named := s.ServerOpts.Flags()
	for _, f := range named.FlagSets {
		set.AddFlagSet(f)
	}
	if err := set.Parse(flags); err != nil {
		return s, err
	}
	if err := emulate(t, flags); err != nil {
		return s, err
	}
	var err error
	if s.TmpDir, err = os.MkdirTemp("", "kube-apiserver"); err != nil {
		return s, err
	}
	t.Cleanup(func() { _ = os.RemoveAll(s.TmpDir) })
	s.ServerOpts.SecureServing.ServerCert.CertDirectory = s.TmpDir
	all := append(sut.GateFlags(utilfeature.DefaultMutableFeatureGate, version.DefaultKubeBinaryVersion, flags), flags...)
	for _, flag := range defaults(t, o, &s, flags) {
		if name, _, _ := strings.Cut(flag, "="); !sut.Has(flags, name) {
			all = append(all, flag)
		}
	}
	held, err := holdStorageVersions(t, o, storage)
	if err != nil {
		return s, err
	}
	server, err := sut.Start(t, sut.Options{SkipReady: o.SkipHealthzCheck || held != nil}, all...)
	if err != nil {
		return s, err
	}
	if held != nil {
		go o.StorageVersionWrapFunc(held).UpdateStorageVersions(server.Config, "")
	}
	s.ClientConfig = rest.CopyConfig(server.Config)
	s.ClientConfig.QPS, s.ClientConfig.Burst = 1000, 10000
	if u, err := url.Parse(server.Config.Host); err == nil {
		_, _ = fmt.Sscan(u.Port(), &s.ServerOpts.SecureServing.BindPort)
	}
	if s.EtcdClient, _, err = GetEtcdClients(storagebackend.TransportConfig{
		ServerList: []string{server.EtcdEndpoint},
	}); err != nil {
		return s, err
	}
	client, err := kubernetes.NewForConfig(s.ClientConfig)
	if err != nil {
		return s, err
	}
	s.TearDownFn = func() {
		if !o.DisableInvariantChecks {
			standin.CheckMetrics(t, client)
		}
		_ = s.EtcdClient.Close()
		server.Stop()
		_ = os.RemoveAll(s.TmpDir)
	}
	return s,
		wait.PollUntilContextTimeout(context.Background(), 100*time.Millisecond, 30*time.Second, true,
			func(ctx context.Context) (bool, error) {
				_, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
				return err == nil, nil
			})
}

// holdStorageVersions has the StorageVersions of the server that comes next wait for what the test wraps around their
// manager. The webhook for that is registered by a server before it.
func holdStorageVersions(
	t ktesting.TB, o *TestServerInstanceOptions, storage *storagebackend.Config,
) (*standin.StorageVersions, error) {
	if o.StorageVersionWrapFunc == nil {
		return nil, nil
	}
	before, err := sut.Start(t, sut.Options{}, "--etcd-prefix="+storage.Prefix, "--service-cluster-ip-range=10.0.0.0/16")
	if err != nil {
		return nil, err
	}
	defer before.Stop()
	return standin.HoldStorageVersions(t.Cleanup, before.Config)
}

// emulate has the feature gates of the test's own process follow --emulated-version, as they do when the server runs in
// it: other servers that the test starts there take them over.
func emulate(t ktesting.TB, flags []string) error {
	for _, flag := range flags {
		text, ok := strings.CutPrefix(flag, "--emulated-version=kube=")
		if !ok {
			continue
		}
		v, err := utilversion.Parse(text)
		if err != nil {
			return err
		}
		gate := utilfeature.DefaultMutableFeatureGate
		before := gate.EmulationVersion()
		if err := gate.SetEmulationVersion(v); err != nil {
			return err
		}
		t.Cleanup(func() { _ = gate.SetEmulationVersion(before) })
	}
	return nil
}

// defaults returns the flags that a server gets unless the test says otherwise, and notes them in the options.
func defaults(t ktesting.TB, o *TestServerInstanceOptions, s *TestServer, given []string) []string {
	key := standin.ServiceAccountKey(t, s.TmpDir)
	flags := []string{"--etcd-prefix=" + s.EtcdStoragePrefix, "--service-cluster-ip-range=10.0.0.0/16",
		"--cert-dir=" + s.TmpDir, "--service-account-issuer=https://foo.bar.example.com",
		"--service-account-key-file=" + key, "--service-account-signing-key-file=" + key}
	if !sut.Has(given, "--advertise-address") {
		flags = append(flags, "--endpoint-reconciler-type=none") // no endpoints with a loopback address
	}
	if o.RequestTimeout > 0 {
		flags = append(flags, "--request-timeout="+o.RequestTimeout.String())
	}
	if !o.EnableCertAuth {
		return flags
	}
	authentication := s.ServerOpts.Authentication
	headers := authentication.RequestHeader
	authentication.ClientCert.ClientCA, _, _ = standin.CA(t, s.TmpDir, "client-ca")
	if o.ProxyCA == nil {
		o.ProxyCA = &ProxyCA{}
		_, o.ProxyCA.ProxySigningCert, o.ProxyCA.ProxySigningKey = standin.CA(t, s.TmpDir, "proxy-ca")
	}
	headers.ClientCAFile = standin.WriteCA(t, s.TmpDir, "proxy-ca", o.ProxyCA.ProxySigningCert)
	s.ServerOpts.ProxyClientCertFile, s.ServerOpts.ProxyClientKeyFile = standin.ClientCert(t, s.TmpDir, "misty",
		o.ProxyCA.ProxySigningCert, o.ProxyCA.ProxySigningKey)
	if os.Getenv("SUT_HOSTNAME") != "" { // one of several, which show one certificate
		flags = append(flags, "--peer-ca-file="+filepath.Join(s.TmpDir, "apiserver.crt"), "--peer-advertise-ip=127.0.0.1")
	}
	return append(flags, "--client-ca-file="+authentication.ClientCert.ClientCA,
		"--requestheader-client-ca-file="+headers.ClientCAFile, "--requestheader-allowed-names=ash,misty,brock",
		"--requestheader-username-headers=x-remote-user", "--requestheader-group-headers=x-remote-group",
		"--requestheader-extra-headers-prefix=x-remote-extra-",
		"--proxy-client-cert-file="+s.ServerOpts.ProxyClientCertFile,
		"--proxy-client-key-file="+s.ServerOpts.ProxyClientKeyFile)
}

// StartTestServerOrDie is StartTestServer, but for errors.
func StartTestServerOrDie(
	t testing.TB, o *TestServerInstanceOptions, flags []string, storage *storagebackend.Config,
) *TestServer {
	s, err := StartTestServer(t, o, flags, storage)
	if err != nil {
		t.Fatalf("failed to launch server: %v", err)
	}
	return &s
}

// GetEtcdClients returns clients of the etcd that the servers share.
func GetEtcdClients(c storagebackend.TransportConfig) (*clientv3.Client, clientv3.KV, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: c.ServerList, DialTimeout: 20 * time.Second})
	if err != nil {
		return nil, nil, err
	}
	return client, clientv3.NewKV(client), nil
}
