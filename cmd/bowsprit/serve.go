package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/bowsprit/bowsprit"
)

// serveFlags are the flags that are not fields of bowsprit.Config.
type serveFlags struct {
	logFormat string
	verbosity int
}

func serveCommand() *cobra.Command {
	config := bowsprit.Config{}
	flags := serveFlags{}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Start the API server with its embedded etcd",
		Long: `Start the API server, its embedded etcd and its controllers in this process, and run until SIGINT or SIGTERM.
Everything it needs is made on the first start: data directory, certificates, a kubeconfig for the administrator.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve(cmd.Context(), cmd.OutOrStdout(), config, flags, cmd.Flags())
		},
	}
	bindFlags(cmd.Flags(), &config, &flags)
	return cmd
}

// bindFlags declares the flags; where kube-apiserver has the same thing, its name is used.
func bindFlags(f *pflag.FlagSet, c *bowsprit.Config, o *serveFlags) {
	f.SortFlags = false
	f.StringVar(&c.DataDir, "data-dir", defaultDataDir(), "directory of the data, certificates and kubeconfig")
	f.BoolVar(&c.Ephemeral, "ephemeral", false, "keep nothing: a temporary directory, no fsync, removed at exit")
	f.StringVar(&c.BindAddress, "bind-address", "127.0.0.1", "IP address to listen on")
	f.IntVar(&c.SecurePort, "secure-port", 6443, "port to listen on, with TLS; 0 picks a free one")
	f.StringVar(&c.Kubeconfig, "write-kubeconfig", "", `file to write the administrator's kubeconfig to (default "<data-dir>/kubeconfig")`)
	f.StringSliceVar(&c.EtcdServers, "etcd-servers", nil, "URLs of an external etcd cluster, instead of the embedded etcd")
	f.StringVar(&c.EtcdCAFile, "etcd-cafile", "", "authority of the external etcd's certificates, PEM")
	f.StringVar(&c.EtcdCertFile, "etcd-certfile", "", "client certificate for the external etcd, PEM")
	f.StringVar(&c.EtcdKeyFile, "etcd-keyfile", "", "key of --etcd-certfile, PEM")
	f.StringVar(&c.EtcdPrefix, "etcd-prefix", "/registry", "root of all keys in etcd")
	f.Int64Var(&c.QuotaBackendBytes, "quota-backend-bytes", 0, "how large the embedded etcd's database may grow (default 8 GiB)")
	f.StringVar(&c.EtcdListenClientURL, "etcd-listen-client-url", "", "make the embedded etcd reachable at this URL, for etcdctl (default: no socket)")
	f.StringVar(&c.TLSCertFile, "tls-cert-file", "", "serving certificate, PEM (default: an own one)")
	f.StringVar(&c.TLSPrivateKeyFile, "tls-private-key-file", "", "key of --tls-cert-file, PEM")
	f.StringSliceVar(&c.StrictTransportSecurity, "strict-transport-security-directives", nil, "directives of the header Strict-Transport-Security, for browsers (default: no header)")
	f.StringVar(&c.ClientCAFile, "client-ca-file", "", "further authorities whose client certificates are believed, PEM")
	f.StringVar(&c.TokenAuthFile, "token-auth-file", "", `static bearer tokens, lines of token,user,uid,"group1,group2"`)
	bindServiceFlags(f, c)
	bindServiceAccountFlags(f, c)
	f.StringSliceVar(&c.Controllers, "controllers", nil, `controllers to run: "*" for all, "name" for one, "-name" for all but one (default "*")`)
	f.StringSliceVar(&c.DisableAdmissionPlugins, "disable-admission-plugins", nil, "admission plugins to switch off: "+strings.Join(bowsprit.AdmissionPlugins(), ", "))
	f.Var(featureGates{"CBORServingAndStorage": &c.CBOR}, "feature-gates", "kube-apiserver's feature gates that mean something here, Name=true|false: CBORServingAndStorage")
	bindRuntimeConfig(f, c)
	f.BoolVar(&c.MigrateStorage, "migrate-storage-versions", false, "store the objects of a custom kind anew by itself when its storage version changes")
	f.DurationVar(&c.ShutdownTimeout, "shutdown-timeout", 0, "how long running requests may take to end (default 10s)")
	f.StringVar(&o.logFormat, "log-format", "text", "text or json")
	f.IntVarP(&o.verbosity, "v", "v", 0, "how much to log: 0 warnings, 2 what happens, 4 every request")
}

// bindServiceFlags declares the flags about services, which are kube-apiserver's.
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

// bindServiceAccountFlags declares the flags about tokens of service accounts, which are kube-apiserver's.
func bindServiceAccountFlags(f *pflag.FlagSet, c *bowsprit.Config) {
	f.StringArrayVar(&c.ServiceAccountIssuers, "service-account-issuer", nil, "issuer of service accounts' tokens; the first signs, all are believed")
	f.StringVar(&c.ServiceAccountSigningKeyFile, "service-account-signing-key-file", "", "private key that signs service accounts' tokens, PEM (default: an own one)")
	f.StringArrayVar(&c.ServiceAccountKeyFiles, "service-account-key-file", nil, "keys whose service accounts' tokens are believed, PEM")
	f.StringVar(&c.ServiceAccountJWKSURI, "service-account-jwks-uri", "", "where others find the keys, instead of this server's /openid/v1/jwks")
	f.DurationVar(&c.ServiceAccountMaxTokenExpiration, "service-account-max-token-expiration", 0, "longest life of a token that is asked for")
	f.StringSliceVar(&c.APIAudiences, "api-audiences", nil, "names of this server in tokens (default: the issuers)")
}

func serve(ctx context.Context, out io.Writer, config bowsprit.Config, flags serveFlags, given *pflag.FlagSet) error {
	log, err := newLogger(flags)
	if err != nil {
		return err
	}
	config.Log = log
	if config.Ephemeral && !given.Changed("data-dir") {
		config.DataDir = ""
	}
	return run(ctx, config, func(server *bowsprit.Server) { announce(out, server) })
}

// run serves until SIGINT or SIGTERM. ready is called when the API answers.
func run(ctx context.Context, config bowsprit.Config, ready func(*bowsprit.Server)) error {
	server, err := bowsprit.New(config)
	if err != nil {
		return err
	}
	ctx, stop := stopOnSignal(ctx)
	defer stop()

	ended := make(chan error, 1) // one result, read at the end or not at all
	go func() { ended <- server.Run(ctx) }()
	select {
	case <-server.Ready():
		ready(server)
		releaseStartup()
	case err := <-ended:
		return err
	}
	return <-ended
}

// announce tells the user how to go on.
func announce(out io.Writer, server *bowsprit.Server) {
	fmt.Fprintf(out, "Bowsprit is ready at %s\n", server.URL())
	fmt.Fprintf(out, "\nIn another terminal:\n\n  export KUBECONFIG=%s\n  kubectl get namespaces\n\n", server.Kubeconfig())
	fmt.Fprintln(out, "Stop with Ctrl-C.")
}

// stopOnSignal returns a context that ends with the first SIGINT or SIGTERM. A second one ends the process at once.
func stopOnSignal(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2) // both signals count, even if they come together
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
			return
		}
		<-signals
		os.Exit(130)
	}()
	return ctx, func() { cancel(); signal.Stop(signals) }
}

func newLogger(o serveFlags) (*slog.Logger, error) {
	level := slog.LevelWarn
	switch {
	case o.verbosity >= 4:
		level = slog.LevelDebug
	case o.verbosity >= 1:
		level = slog.LevelInfo
	}
	options := &slog.HandlerOptions{Level: level}
	switch o.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(os.Stderr, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(os.Stderr, options)), nil
	}
	return nil, fmt.Errorf("--log-format %q is unknown: use text or json", o.logFormat)
}

// defaultDataDir is <XDG data home>/bowsprit.
func defaultDataDir() string {
	base := os.Getenv("XDG_DATA_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return filepath.Join(os.TempDir(), "bowsprit")
		}
		base = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(base, "bowsprit")
}
