package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
	"github.com/bowsprit/bowsprit/internal/net/konnectivity"
	"github.com/bowsprit/bowsprit/internal/net/konnectivity/agent"
)

// konnectivityAgentFlags holds the flags of upstream's proxy-agent.
type konnectivityAgentFlags struct {
	konnectivityLog
	pagePorts
	agent.Config
	cert, key, ca, host         string
	port, healthPort, adminPort int
	healthHost, adminHost       string
	protocols                   []string
}

func konnectivityAgentCommand() *cobra.Command {
	o := &konnectivityAgentFlags{}
	cmd := &cobra.Command{
		Use:   "konnectivity-agent",
		Short: "Run a Konnectivity agent, which opens connections in a cluster for an API server",
		Long: `Run a Konnectivity agent: it connects to Konnectivity servers ("bowsprit konnectivity-server") and opens connections from
its network on their behalf. It implements the protocol of sigs.k8s.io/apiserver-network-proxy v0.34 with the flags of
proxy-agent, and works with upstream's servers too.

The first SIGTERM drains the agent: it gets no new connections, and exits when its open ones have closed. The second stops
it at once.`,
		Args: arguments.None,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.bind(cmd.Flags())
	return cmd
}

func (o *konnectivityAgentFlags) bind(f *pflag.FlagSet) {
	o.konnectivityLog.bind(f)
	o.pagePorts.bind(f)
	f.StringVar(&o.host, "proxy-server-host", "127.0.0.1", "host of the Konnectivity servers")
	f.IntVar(&o.port, "proxy-server-port", 8091, "port of the Konnectivity servers for agents")
	f.StringSliceVar(&o.protocols, "alpn-proto", nil, "further ALPN protocols to offer")
	f.StringVar(&o.ca, "ca-cert", "", "authority of the servers' certificates, PEM")
	f.StringVar(&o.cert, "agent-cert", "", "client certificate for the servers, PEM")
	f.StringVar(&o.key, "agent-key", "", "key of --agent-cert, PEM")
	f.StringVar(&o.TokenFile, "service-account-token-path", "", "file with a token for the servers")
	f.StringVar(&o.ID, "agent-id", "", "name of this agent (default $PROXY_AGENT_ID, else a random one)")
	f.StringVar(&o.Identifiers, "agent-identifiers", "",
		"destinations close to the agent, as in host=node1&ipv4=10.0.0.5&default-route=true, for --proxy-strategies of servers")
	f.DurationVar(&o.Interval, "sync-interval", time.Second, "initial interval between searches for further servers")
	f.DurationVar(&o.MaxInterval, "sync-interval-cap", 10*time.Second, "longest interval while no server can be reached")
	f.DurationVar(&o.Keepalive, "keepalive-time", time.Hour, "silence of a server before the agent probes it")
	f.BoolVar(&o.Forever, "sync-forever", false, "never stop searching for servers, because their number may change")
	f.StringVar(&o.healthHost, "health-server-host", "", "address of --health-server-port (default: all)")
	f.IntVar(&o.healthPort, "health-server-port", 8093, "port for /healthz, /readyz and metrics")
	f.StringVar(&o.adminHost, "admin-bind-address", "127.0.0.1", "address of --admin-server-port")
	f.IntVar(&o.adminPort, "admin-server-port", 8094, "port for metrics and profiles")
	for _, name := range []string{"probe-interval", "xfr-channel-size", "warn-on-channel-limit"} {
		f.String(name, "", "accepted, without effect")
		_ = f.MarkHidden(name)
		f.Lookup(name).NoOptDefVal = "true"
	}
}

// check validates the flags. Its errors have upstream's words.
func (o *konnectivityAgentFlags) check() error {
	switch {
	case o.cert != "" && o.key == "":
		return fmt.Errorf("cannot have agent key empty when agent cert is set to %q", o.cert)
	case o.cert == "" && o.key != "":
		return fmt.Errorf("cannot have agent cert empty when agent key is set to %q", o.key)
	case o.port <= 0:
		return fmt.Errorf("proxy server port %d must be greater than 0", o.port)
	case o.contention && !o.profiling:
		return errors.New("if --enable-contention-profiling is set, --enable-profiling must also be set")
	case o.Interval > o.MaxInterval:
		return fmt.Errorf("sync interval %v must be less than sync interval cap %v", o.Interval, o.MaxInterval)
	}
	if o.TokenFile != "" {
		if _, err := os.Stat(o.TokenFile); err != nil {
			return fmt.Errorf("error checking service account token path %s, got %w", o.TokenFile, err)
		}
	}
	if _, err := konnectivity.ParseIdentifiers(o.Identifiers, true); err != nil {
		return fmt.Errorf("agent address is invalid: %w", err)
	}
	return nil
}

func (o *konnectivityAgentFlags) run(cmd *cobra.Command) error {
	log, err := o.open(cmd)
	if err == nil {
		err = o.check()
	}
	if err != nil {
		return err
	}
	o.Config.Log, o.Server = log, net.JoinHostPort(o.host, strconv.Itoa(o.port))
	if o.ID == "" {
		o.ID = envOr("PROXY_AGENT_ID", uuid.NewString)
	}
	o.TLS = &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: o.protocols}
	if o.TLS.RootCAs, err = poolOf(o.ca); err != nil {
		return err
	}
	if o.cert != "" {
		pair, err := tls.LoadX509KeyPair(o.cert, o.key)
		if err != nil {
			return fmt.Errorf("failed to load X509 key pair %s and %s: %w", o.cert, o.key, err)
		}
		o.TLS.Certificates = []tls.Certificate{pair}
	}
	registry := prometheus.NewRegistry()
	o.Metrics = agent.NewMetrics(registry)
	a := agent.New(o.Config)
	pages := konnectivity.Pages{
		Metrics: registry, NotReady: http.StatusServiceUnavailable, Profiles: o.profiling, Contention: o.contention,
		Health: net.JoinHostPort(o.healthHost, strconv.Itoa(o.healthPort)),
		Admin:  net.JoinHostPort(o.adminHost, strconv.Itoa(o.adminPort)),
		Ready: func() string {
			if a.Ready() {
				return ""
			}
			return "[+]ping ok\n[-]server-connected failed: no servers connected\n"
		},
	}
	stop, err := pages.Serve(log)
	if err != nil {
		return err
	}
	defer stop()
	ctx, drain, end := drainOnSignal(cmd.Context())
	defer end()
	a.Run(ctx, drain)
	return nil
}

// drainOnSignal returns two contexts: drain ends with the first signal, ctx with the second.
func drainOnSignal(parent context.Context) (ctx, drain context.Context, end func()) {
	drain, first := context.WithCancel(parent)
	ctx, second := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, stop := range []func(){first, second} {
			select {
			case <-signals:
				stop()
			case <-ctx.Done():
			}
		}
	}()
	return ctx, drain, func() {
		signal.Stop(signals)
		first()
		second()
		<-done
	}
}
