// Package apiextensions starts k8s.io/apiextensions-apiserver inside a test, to be compared with.
package apiextensions

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apiextensions-apiserver/pkg/cmd/server/options"
	generatedopenapi "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
)

// Server is a running apiextensions-apiserver with an etcd of its own.
type Server struct {
	Config *rest.Config
	// Aggregated answers /apis in the aggregated form. The server itself leaves that to kube-apiserver.
	Aggregated http.Handler
}

// kubeconfig is required to start and leads nowhere.
const kubeconfig = `
apiVersion: v1
kind: Config
clusters: [{name: none, cluster: {server: "http://127.1.2.3:12345"}}]
contexts: [{name: none, context: {cluster: none, user: none}}]
current-context: none
users: [{name: none, user: {}}]
`

// patience bounds the wait for the server; only a server that cannot start reaches it.
const patience = 2 * time.Minute

// Start returns a server that is ready for requests, with more flags if given. It stops when t ends.
func Start(t testing.TB, more ...string) *Server {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	o := options.NewCustomResourceDefinitionsServerOptions(io.Discard, io.Discard)
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.AddFlags(flags)
	err := flags.Parse(append([]string{
		"--etcd-servers", startEtcd(t),
		"--authentication-skip-lookup",
		"--authentication-kubeconfig", file, "--authorization-kubeconfig", file, "--kubeconfig", file,
		"--enable-priority-and-fairness=false",
		"--disable-admission-plugins",
		"NamespaceLifecycle,MutatingAdmissionWebhook,ValidatingAdmissionWebhook,ValidatingAdmissionPolicy,MutatingAdmissionPolicy",
		"--cert-dir", t.TempDir(),
	}, more...))
	if err != nil {
		t.Fatal(err)
	}
	if o.RecommendedOptions.SecureServing.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	o.RecommendedOptions.SecureServing.BindPort = o.RecommendedOptions.SecureServing.Listener.Addr().(*net.TCPAddr).Port
	o.RecommendedOptions.SecureServing.ExternalAddress = net.IPv4(127, 0, 0, 1)
	if err := o.Complete(); err != nil {
		t.Fatal(err)
	}
	config, err := o.Config()
	if err != nil {
		t.Fatal(err)
	}
	manager := aggregated.NewResourceManager("apis")
	config.GenericConfig.AggregatedDiscoveryGroupManager = manager
	config.GenericConfig.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(generatedopenapi.GetOpenAPIDefinitions,
		openapi.NewDefinitionNamer(apiserver.Scheme))
	s, err := config.Complete().New(genericapiserver.NewEmptyDelegate())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.GenericAPIServer.PrepareRun().RunWithContext(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	client := rest.CopyConfig(s.GenericAPIServer.LoopbackClientConfig)
	client.QPS = -1 // no limit
	untilReady(t, client)
	return &Server{client, aggregated.WrapAggregatedDiscoveryToHandler(http.NotFoundHandler(), manager, nil)}
}

// untilReady waits until the server has read its definitions. It answers requests earlier, but a stop at that time ends
// the whole process. It never reports readiness, since the kubeconfig leads nowhere.
func untilReady(t testing.TB, config *rest.Config) {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	url, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		t.Fatal(err)
	}
	hook := url.JoinPath("healthz/poststarthook/crd-informer-synced").String()
	err = wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, patience, true,
		func(ctx context.Context) (bool, error) {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, hook, nil)
			if err != nil {
				return false, err
			}
			resp, err := client.Do(req)
			if err != nil {
				return false, nil // not listening yet
			}
			return resp.StatusCode == http.StatusOK, resp.Body.Close()
		})
	if err != nil {
		t.Fatalf("apiextensions-apiserver is not ready: %v", err)
	}
}

func startEtcd(t testing.TB) string {
	t.Helper()
	config := embed.NewConfig()
	config.Dir, config.LogLevel, config.UnsafeNoFsync = t.TempDir(), "fatal", true
	free := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	config.ListenClientUrls, config.AdvertiseClientUrls, config.ListenPeerUrls, config.AdvertisePeerUrls = free, free,
		free, free
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(etcd.Close)
	<-etcd.Server.ReadyNotify()
	return "http://" + etcd.Clients[0].Addr().String()
}
