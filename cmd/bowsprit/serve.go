package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
		Use:        "serve",
		SuggestFor: []string{"start", "run", "up", "server"},
		Short:      "Start the API server with its embedded etcd",
		Long: `Start the API server, its embedded etcd and its controllers in this process, and run until SIGINT, SIGTERM or SIGHUP.
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
	c.DataDir = defaultDataDir()
	bindSettings(f, c, bowsprit.Serve, nil)
	f.StringVar(&o.logFormat, "log-format", "text", "text or json")
	f.IntVarP(&o.verbosity, "v", "v", 0, "how much to log: -1 warnings, 0 what happens, 4 every request")
}

func serve(ctx context.Context, out io.Writer, config bowsprit.Config, flags serveFlags, given *pflag.FlagSet) error {
	log, err := newLogger(os.Stderr, flags)
	if err != nil {
		return err
	}
	config.Log, config.Flags = log, settings(given)
	if config.DataDir == "" && !config.Ephemeral && !given.Changed("data-dir") {
		return errors.New(
			"neither XDG_DATA_HOME nor HOME is set: name a directory with --data-dir, or use --ephemeral for a temporary one")
	}
	if config.Ephemeral {
		if given.Changed("data-dir") {
			return errors.New("--ephemeral keeps nothing and --data-dir names where to keep it: drop one of them")
		}
		config.DataDir = ""
	}
	return run(ctx, config, func(server *bowsprit.Server) { announce(out, server) })
}

// run serves until SIGINT, SIGTERM or SIGHUP. ready is called when the API answers.
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
