package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/help"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/notify"
	"github.com/bowsprit/bowsprit/internal/front/hostos"
)

// serveFlags holds the flags that are not fields of bowsprit.Config.
type serveFlags struct {
	logFormat string
	verbosity int
	level     *slog.LevelVar // the level for verbosity; it can change while the server runs
	withStdin bool           // stop when stdin ends
	stdin     io.Reader
	sources   sources // of settings outside the command line
	assistant assistantFlags
}

// adjust has a server's pages change how much is logged.
func (o *serveFlags) adjust(c *bowsprit.Config) {
	level := &slog.LevelVar{}
	o.level, c.Observability.Verbosity = level, func(v int) { level.Set(levelOf(v)) }
}

// serviceRange is the range of addresses of a new cluster. kube-apiserver's default has 254 addresses, this one a
// million.
const serviceRange = "10.96.0.0/12"

func serveCommand() *cobra.Command {
	config := bowsprit.Config{Services: bowsprit.ServicesConfig{NewClusterIPRange: serviceRange}}
	flags := serveFlags{}
	cmd := &cobra.Command{
		Use:        "serve",
		SuggestFor: []string{"start", "run", "server"},
		Short:      "Start the API server with its embedded etcd",
		Long: `Start the API server, its embedded etcd and its controllers in this process, and run until SIGINT, SIGTERM or SIGHUP.
The first start creates everything it needs: data directory, certificates, a kubeconfig for the administrator.`,
		Example: `  bowsprit serve                               # data below the XDG data home, port 6443
  bowsprit serve --ephemeral --secure-port=0   # keeps nothing, on a free port
  bowsprit serve --simulate=nodes=3            # with simulated nodes and workloads
  bowsprit serve --data-dir /srv/bowsprit --bind-address 0.0.0.0 --config bowsprit.yaml`,
		Args: arguments.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			flags.stdin = cmd.InOrStdin()
			return serve(cmd.Context(), cmd.OutOrStdout(), &config, &flags, cmd.Flags())
		},
	}
	bindFlags(cmd.Flags(), &config, &flags)
	cmd.Flags().BoolVar(&flags.withStdin, "stop-with-stdin", false,
		"also stop when standard input ends: a pipe ends with the program that holds it, also if that is killed")
	help.Put(cmd.Flags(), "stop-with-stdin", "Server")
	return cmd
}

// untilEOF returns a context that ends when in ends. The read ends at the latest with the process.
func untilEOF(ctx context.Context, in io.Reader) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, in) // an error ends the input, too
	}()
	return ctx
}

// bindFlags declares the flags. A flag with the function of a kube-apiserver flag has its name.
func bindFlags(f *pflag.FlagSet, c *bowsprit.Config, o *serveFlags) {
	f.SortFlags = false
	c.DataDir = connect.DefaultDataDir()
	c.Authentication.BootstrapTokens = true
	o.sources.bind(f)
	bindSettings(f, c, bowsprit.Serve, nil)
	o.assistant.bind(f)
	f.StringVar(&o.logFormat, "log-format", "text", "text or json")
	help.Put(f, "log-format", "Server")
	f.IntVarP(&o.verbosity, "v", "v", 0, "verbosity of the log: -1 warnings, 0 events, 3 every request")
}

func serve(
	ctx context.Context, out io.Writer, config *bowsprit.Config, flags *serveFlags, given *pflag.FlagSet,
) error {
	if err := flags.prepare(config, given); err != nil {
		return err
	}
	if flags.withStdin {
		ctx = untilEOF(ctx, flags.stdin)
	}
	flags.adjust(config)
	log, err := newLogger(os.Stderr, *flags)
	if err != nil {
		return err
	}
	for _, text := range flags.sources.strange {
		log.Warn("an environment variable is ignored", "why", text)
	}
	klog.SetSlogLogger(log) // messages of Kubernetes' libraries are summed up like the others
	config.Log, config.Flags = log, settings(given)
	if config.Workloads.Simulate != nil {
		hostos.CollectSooner(hostos.LargeHeap)
	}
	return run(ctx, *config, func(server *bowsprit.Server) {
		announce(out, server, config.Workloads.Simulate != nil)
	})
}

// prepare completes the settings from the other sources, and finds where data is kept.
func (o *serveFlags) prepare(config *bowsprit.Config, given *pflag.FlagSet) error {
	if err := o.sources.apply(given, os.Environ()); err != nil {
		return err
	}
	if config.DataDir == "" && !config.Ephemeral && !given.Changed("data-dir") {
		return errors.New(
			"neither XDG_DATA_HOME nor HOME is set: name a directory with --data-dir, or use --ephemeral for a temporary one")
	}
	if config.Ephemeral {
		if given.Changed("data-dir") {
			return exit.Usage(errors.New("--ephemeral and --data-dir are mutually exclusive: set one of them"))
		}
		config.DataDir = ""
	}
	return o.assistant.extend(config)
}

// run serves until SIGINT, SIGTERM or SIGHUP. ready is called when the API answers.
func run(ctx context.Context, config bowsprit.Config, ready func(*bowsprit.Server)) error {
	server, err := bowsprit.New(config)
	if err != nil {
		return err
	}
	ctx, stop := stopOnSignal(ctx)
	defer stop()
	hostos.AllowSpare()

	ended := make(chan error, 1) // one result, read at the end or not at all
	go func() { ended <- server.Run(ctx) }()
	manager := notify.OfProcess()
	select {
	case <-server.Ready():
		ready(server)
		hostos.ReleaseStartup()
		watched := attend(ctx, manager, server, config.Log)
		defer watched()
	case err := <-ended:
		return err
	}
	select {
	case <-time.After(settleAfter):
		hostos.ReleaseStartup()
	case err := <-ended:
		return err
	}
	return <-ended
}

// attend notifies the service manager that the server is ready, feeds its watchdog, and, when ctx ends, notifies it
// that the server stops. The returned function ends that.
func attend(ctx context.Context, manager *notify.Manager, server *bowsprit.Server, log *slog.Logger) (end func()) {
	if err := manager.Ready(server.URL()); err != nil {
		log.Warn("cannot notify the service manager that the server is ready", "error", err)
	}
	watching, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() { manager.Watch(watching, log, notify.Live(server.RESTConfig())) })
	all.Go(func() {
		<-watching.Done()
		if err := manager.Stopping(); err != nil {
			log.Warn("cannot notify the service manager that the server is stopping", "error", err)
		}
	})
	return func() { stop(); all.Wait() }
}

// settleAfter is the time after readiness by which the controllers have finished the work of every start.
const settleAfter = 10 * time.Second
