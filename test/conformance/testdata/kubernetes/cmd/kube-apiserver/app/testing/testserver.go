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
	"testing"
	"time"

	"github.com/spf13/pflag"
	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storageversion"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"conformance.local/sut"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/test/utils/ktesting"
)

// TearDownFunc stops a server.
type TearDownFunc func()

// TestServerInstanceOptions are about a server in the test's own process; none of them means anything here.
type TestServerInstanceOptions struct {
	SkipHealthzCheck       bool
	EnableCertAuth         bool
	StorageVersionWrapFunc func(storageversion.Manager) storageversion.Manager
	ProxyCA                *ProxyCA
	BinaryVersion          string
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
	t ktesting.TB, _ *TestServerInstanceOptions, flags []string, storage *storagebackend.Config,
) (TestServer, error) {
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
	all := append(sut.GateFlags(utilfeature.DefaultMutableFeatureGate, "1.36", flags), flags...)
	if !sut.Has(flags, "--etcd-prefix") {
		all = append(all, "--etcd-prefix="+storage.Prefix)
	}
	if !sut.Has(flags, "--service-cluster-ip-range") {
		all = append(all, "--service-cluster-ip-range=10.0.0.0/16")
	}
	server, err := sut.Start(t, sut.Options{}, all...)
	if err != nil {
		return s, err
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
	if s.TmpDir, err = os.MkdirTemp("", "kube-apiserver"); err != nil {
		return s, err
	}
	s.TearDownFn = func() {
		_ = s.EtcdClient.Close()
		server.Stop()
		_ = os.RemoveAll(s.TmpDir)
	}
	client, err := kubernetes.NewForConfig(s.ClientConfig)
	if err != nil {
		return s, err
	}
	return s,
		wait.PollUntilContextTimeout(context.Background(), 100*time.Millisecond, 30*time.Second, true,
			func(ctx context.Context) (bool, error) {
				_, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
				return err == nil, nil
			})
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
