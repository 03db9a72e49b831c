package main

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
	"github.com/bowsprit/bowsprit/internal/net/konnectivity"
	"github.com/bowsprit/bowsprit/internal/net/konnectivity/server"
)

// konnectivityServerFlags holds the flags of upstream's proxy-server.
type konnectivityServerFlags struct {
	konnectivityLog
	pagePorts
	server.Options
	server.Account
	id, strategies, kubeconfig                     string
	count, frontPort, agentPort, adminPort, health int
	frontHost, agentHost, adminHost, healthHost    string
	ciphers                                        []string
	replaceSocket                                  bool
}

func konnectivityServerCommand() *cobra.Command {
	o := &konnectivityServerFlags{}
	cmd := &cobra.Command{
		Use:   "konnectivity-server",
		Short: "Run a Konnectivity server, through which an API server reaches a cluster",
		Long: `Run a Konnectivity server: API servers request connections into a cluster from it, and agents in the cluster open them
("bowsprit konnectivity-agent"). It implements the protocol of sigs.k8s.io/apiserver-network-proxy v0.34 with the flags of
proxy-server, and works with upstream's agents too. API servers use it by --egress-selector-config-file.`,
		Args: arguments.None,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.bind(cmd.Flags())
	return cmd
}

func (o *konnectivityServerFlags) bind(f *pflag.FlagSet) {
	o.konnectivityLog.bind(f)
	o.pagePorts.bind(f)
	f.StringVar(&o.Mode, "mode", server.ModeGRPC, "protocol of API servers: grpc or http-connect")
	f.StringVar(&o.Socket, "uds-name", "", "Unix socket for API servers; \"\" for --server-port")
	f.BoolVar(&o.replaceSocket, "delete-existing-uds-file", true, "replace an existing file at --uds-name")
	f.StringVar(&o.frontHost, "server-bind-address", "", "address of --server-port (default: all)")
	f.IntVar(&o.frontPort, "server-port", 8090, "port for API servers; 0 with --uds-name")
	f.StringVar(&o.FrontFiles.Cert, "server-cert", "", "serving certificate for API servers, PEM")
	f.StringVar(&o.FrontFiles.Key, "server-key", "", "key of --server-cert, PEM")
	f.StringVar(&o.FrontFiles.CA, "server-ca-cert", "", "authority of API servers' certificates, PEM (default: any client)")
	f.StringVar(&o.agentHost, "agent-bind-address", "", "address of --agent-port (default: all)")
	f.IntVar(&o.agentPort, "agent-port", 8091, "port for agents")
	f.StringVar(&o.AgentFiles.Cert, "cluster-cert", "", "serving certificate for agents, PEM")
	f.StringVar(&o.AgentFiles.Key, "cluster-key", "", "key of --cluster-cert, PEM")
	f.StringVar(&o.AgentFiles.CA, "cluster-ca-cert", "", "authority of agents' certificates, PEM; without it agents use tokens")
	f.StringVar(&o.adminHost, "admin-bind-address", "127.0.0.1", "address of --admin-port")
	f.IntVar(&o.adminPort, "admin-port", 8095, "port for metrics and profiles")
	f.StringVar(&o.healthHost, "health-bind-address", "", "address of --health-port (default: all)")
	f.IntVar(&o.health, "health-port", 8092, "port for /healthz, /readyz and metrics")
	f.DurationVar(&o.Keepalive, "keepalive-time", time.Hour, "silence of an agent before the server probes it")
	f.DurationVar(&o.FrontKeepalive, "frontend-keepalive-time", time.Hour, "silence of an API server before the server probes it")
	f.StringVar(&o.id, "server-id", "", "name of this server among several (default $PROXY_SERVER_ID, else a random one)")
	f.IntVar(&o.count, "server-count", 1, "number of servers; agents connect to as many")
	f.StringVar(&o.Namespace, "agent-namespace", "", "namespace of the agents' service account")
	f.StringVar(&o.Name, "agent-service-account", "", "service account of the agents, for authentication by token")
	f.StringVar(&o.Audience, "authentication-audience", "", "required audience of the agents' tokens")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the API server that reviews tokens (default: the pod's)")
	f.StringVar(&o.strategies, "proxy-strategies", "default", "strategies for choosing an agent, tried in order: destHost, defaultRoute, default")
	f.StringSliceVar(&o.ciphers, "cipher-suites", nil, "cipher suites of TLS 1.2 (default: Go's)")
	// Upstream's flags for functions that this server solves differently: accepted, without effect.
	for _, name := range []string{"kubeconfig-qps", "kubeconfig-burst", "xfr-channel-size", "kube-api-content-type"} {
		f.String(name, "", "accepted, without effect")
		_ = f.MarkHidden(name)
	}
}

// check validates the flags. Its errors have upstream's words.
func (o *konnectivityServerFlags) check() error {
	tokens := o.Namespace != "" || o.Name != "" || o.Audience != ""
	switch {
	case o.Mode != server.ModeGRPC && o.Mode != server.ModeHTTPConnect:
		return fmt.Errorf("mode must be set to either 'grpc' or 'http-connect' not %q", o.Mode)
	case o.Socket != "" && o.frontPort != 0:
		return fmt.Errorf("server port should be set to 0 not %d for UDS", o.frontPort)
	case o.Socket != "" && o.FrontFiles != server.Files{}:
		return errors.New("server key, cert and ca cert should not be set for UDS")
	case o.Socket == "" && o.frontPort == 0:
		return errors.New("no listener for API servers: set --uds-name or --server-port")
	case o.contention && !o.profiling:
		return errors.New("if --enable-contention-profiling is set, --enable-profiling must also be set")
	case tokens && o.AgentFiles.CA != "":
		return errors.New("--cluster-ca-cert can not be used when agent authentication is enabled")
	case tokens && o.Namespace == "":
		return errors.New("--agent-namespace cannot be empty when agent authentication is enabled")
	case tokens && o.Name == "":
		return errors.New("--agent-service-account cannot be empty when agent authentication is enabled")
	case tokens && o.Audience == "":
		return errors.New("--authentication-audience cannot be empty when agent authentication is enabled")
	}
	return nil
}

func (o *konnectivityServerFlags) run(cmd *cobra.Command) error {
	log, err := o.open(cmd)
	if err == nil {
		err = o.check()
	}
	if err != nil {
		return err
	}
	c := server.Config{Count: o.count, Log: log}
	if c.ID = o.id; c.ID == "" {
		c.ID = envOr("PROXY_SERVER_ID", uuid.NewString)
	}
	if c.Strategies, err = server.ParseStrategies(o.strategies); err != nil {
		return fmt.Errorf("invalid proxy strategies: %w", err)
	}
	if o.Options.Ciphers, err = cipherSuites(o.ciphers); err != nil {
		return err
	}
	switch {
	case o.Namespace != "":
		config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
		if err != nil {
			return fmt.Errorf("failed to load kubernetes client config: %w", err)
		}
		if c.Authenticate, err = server.Reviewer(config, o.Account); err != nil {
			return err
		}
	case o.AgentFiles.CA == "":
		log.Warn("agents are not authenticated: any client may register as one and receive the API servers' traffic; set --cluster-ca-cert, or --agent-namespace and --agent-service-account")
	}
	registry := prometheus.NewRegistry()
	c.Metrics = server.NewMetrics(registry)
	at := func(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }
	o.KeepSocket, o.Front, o.Agents = !o.replaceSocket, at(o.frontHost, o.frontPort), at(o.agentHost, o.agentPort)
	o.Pages = konnectivity.Pages{
		Metrics: registry, Health: at(o.healthHost, o.health), Admin: at(o.adminHost, o.adminPort),
		Profiles: o.profiling, Contention: o.contention,
	}
	ctx, stop := stopOnSignal(cmd.Context())
	defer stop()
	return server.New(c).Run(ctx, o.Options)
}
