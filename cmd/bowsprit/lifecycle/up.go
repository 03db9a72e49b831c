// Package lifecycle has the commands that start, list and stop named servers of this user: up, down, list and logs.
//
// "up" runs itself again with --foreground: as a process of its own session, or as a unit of the user's systemd. That
// process locks the instance and becomes "bowsprit serve".
package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/instance"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/output"
)

// upFlags are the flags of "bowsprit up".
type upFlags struct {
	ephemeral, switchContext, foreground bool
	simulate, config                     string
	port                                 int
	wait                                 time.Duration
	form                                 output.Form
	isSetting                            func(variable string) bool
}

// UpCommand returns "bowsprit up". isSetting reports whether an environment variable is a setting of "bowsprit serve".
func UpCommand(isSetting func(variable string) bool) *cobra.Command {
	flags := upFlags{isSetting: isSetting}
	cmd := &cobra.Command{
		Use:   "up [NAME] [-- FLAG...]",
		Short: "Start a named server in the background, and wait until it is ready",
		Long: `Start a server in the background, wait until it is ready, and add the context bowsprit-NAME to kubectl's file. The current
context stays, unless --switch is given. NAME is "default" if it is missing: the server with the data of "bowsprit serve".

A second "up" of a running server does nothing. The data, the port and the flags of a server stay until "bowsprit down
--delete": "up" without flags starts it again as before; flags replace the earlier ones. Flags after -- are flags of
"bowsprit serve". With a systemd of the user, the server starts again after a reboot; else "up" starts it.
With --ephemeral the data is in memory, and is gone when the server stops.`,
		Example: `  bowsprit up                               # then: kubectl --context=bowsprit-default get namespaces
  bowsprit up dev --simulate=nodes=3        # a second one, with simulated nodes
  bowsprit up test --ephemeral --switch     # without files, and kubectl's current context
  bowsprit up dev -- --enable-admission-plugins=AlwaysPullImages`,
		Args: checkArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, serve := split(cmd, args)
			i, err := instance.Open(name)
			if err != nil {
				return err
			}
			if flags.foreground {
				return foreground(i, environment(os.Environ(), flags.isSetting))
			}
			return up(cmd, i, &flags, serve)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&flags.ephemeral, "ephemeral", false, "keep the data in memory, and remove the instance when it stops")
	f.StringVar(&flags.simulate, "simulate", "",
		"simulate nodes and pods without running containers, as in nodes=3,cpu=16 (see \"bowsprit serve --help\")")
	f.StringVar(&flags.config, "config", "", "a file with settings of \"bowsprit serve\"")
	f.IntVar(&flags.port, "secure-port", 0, "the port of the API; 0: a free one, as at the first start without the flag")
	f.BoolVar(&flags.switchContext, "switch", false, "make the instance's context kubectl's current one")
	f.DurationVar(&flags.wait, "wait", time.Minute, "how long the server may take until it is ready")
	f.BoolVar(&flags.foreground, "foreground", false,
		"run the server of an earlier \"up\" in this process, for a service manager")
	flags.form.Bind(f)
	return cmd
}

// checkArgs allows a name before "--", and flags after it.
func checkArgs(cmd *cobra.Command, args []string) error {
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		args = args[:dash]
	}
	return arguments.AtMostOne("name")(cmd, args)
}

// split returns the name of the instance, and the arguments after "--".
func split(cmd *cobra.Command, args []string) (name string, serve []string) {
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		args, serve = args[:dash], args[dash:]
	}
	return nameOf(args), serve
}

// nameOf returns the name in the arguments of a command, or the default one.
func nameOf(args []string) string {
	if len(args) == 0 {
		return instance.Default
	}
	return args[0]
}

// up starts an instance. If a new instance does not start, up removes its files, but never data that was there before.
func up(cmd *cobra.Command, i *instance.Instance, flags *upFlags, serve []string) error {
	release, err := i.Reserve()
	if err != nil {
		return err
	}
	defer release()
	if i, err = instance.Open(i.Name); err != nil { // another command may have changed it meanwhile
		return err
	}
	fresh := !i.Exists() && !connect.Exists(i.NewDataDir(true))
	if err = reserved(cmd, i, flags, serve); err != nil && fresh && !i.Locked() {
		err = errors.Join(err, i.Remove())
	}
	return err
}

// reserved is up for an instance that no other command changes.
func reserved(cmd *cobra.Command, i *instance.Instance, flags *upFlags, serve []string) error {
	out := cmd.OutOrStdout()
	wanted, err := flags.settings(cmd, i, serve)
	if err != nil {
		return err
	}
	switch {
	case i.Locked() && !same(&i.Settings, wanted):
		return fmt.Errorf("the instance %s runs with other settings: stop it with \"bowsprit down %[1]s\" first, "+
			"then start it with these flags; nothing was changed", i.Name)
	case i.Locked():
		return again(cmd.Context(), out, i, flags)
	case i.Name == instance.Default && !wanted.Ephemeral && connect.Answers(wanted.DataDir):
		return fmt.Errorf("\"bowsprit serve\" runs with the data of the instance %s: use that server, stop it first, or "+
			"choose another name; nothing was changed", i.Name)
	}
	if wanted.Port == 0 {
		if wanted.Port, err = freePort(i.Name); err != nil {
			return err
		}
	}
	i.Settings = *wanted
	if err := i.Store(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := start(ctx, i, flags); err != nil {
		return err
	}
	return show(ctx, out, i, flags)
}

// again is "up" for an instance that runs.
func again(ctx context.Context, out io.Writer, i *instance.Instance, flags *upFlags) error {
	ctx, cancel := context.WithTimeout(ctx, flags.wait)
	defer cancel()
	if err := (&launched{}).ready(ctx, i); err != nil {
		return fmt.Errorf("the instance %s runs and is not ready: see \"bowsprit logs %[1]s\": %w", i.Name, err)
	}
	if !flags.form.ForPrograms() {
		fmt.Fprintf(out, "The instance %s runs already.\n", i.Name)
	}
	return show(ctx, out, i, flags)
}

// settings returns the settings for the next start: the flags of the command line, and the earlier ones.
func (flags *upFlags) settings(cmd *cobra.Command, i *instance.Instance, serve []string) (*instance.Settings, error) {
	given := cmd.Flags()
	wanted := i.Settings
	if !i.Exists() {
		wanted.Created = time.Now().UTC().Truncate(time.Second)
	}
	if given.Changed("ephemeral") || !i.Exists() {
		wanted.Ephemeral = flags.ephemeral
	}
	if !i.Exists() || wanted.Ephemeral != i.Ephemeral {
		if i.Exists() && wanted.Ephemeral {
			return nil, fmt.Errorf("the instance %s has stored data: delete it with \"bowsprit down %[1]s --delete\" first, or "+
				"choose another name for --ephemeral", i.Name)
		}
		wanted.DataDir = i.NewDataDir(wanted.Ephemeral)
	}
	if given.Changed("secure-port") {
		if flags.port < 0 || flags.port > 65535 {
			return nil, exit.Usage(fmt.Errorf("--secure-port %d is no port: use one from 1 to 65535, or 0 for a free one",
				flags.port))
		}
		wanted.Port = flags.port
	}
	if given.Changed("simulate") || given.Changed("config") || len(serve) > 0 {
		wanted.Flags = nil
		if given.Changed("simulate") {
			wanted.Flags = append(wanted.Flags, "--simulate="+flags.simulate)
		}
		if given.Changed("config") {
			file, err := absolute(flags.config)
			if err != nil {
				return nil, fmt.Errorf("--config: %w", err)
			}
			wanted.Flags = append(wanted.Flags, "--config="+file)
		}
		wanted.Flags = append(wanted.Flags, serve...)
	}
	return &wanted, nil
}

// same reports whether two settings start the same server.
func same(a, b *instance.Settings) bool {
	return a.DataDir == b.DataDir && a.Ephemeral == b.Ephemeral && a.Port == b.Port && slices.Equal(a.Flags, b.Flags)
}

// show adds the instance's context to kubectl's file, and prints how to use the server, or for programs its row.
func show(ctx context.Context, out io.Writer, i *instance.Instance, flags *upFlags) error {
	file, current, err := addContext(i, flags.switchContext)
	if err != nil {
		return fmt.Errorf("the instance %s is ready, but its context could not be added: %w", i.Name, err)
	}
	if i.Kubeconfig != file {
		i.Kubeconfig = file
		if err := i.Store(); err != nil {
			return err
		}
	}
	return flags.form.Print(out, rowOf(ctx, i), func(out io.Writer) error {
		fmt.Fprintf(out, "Bowsprit %s is ready at %s\n", i.Name, url(i))
		if current == i.Context() {
			fmt.Fprintf(out, "Context %s in %s is the current context.\n\n  kubectl get namespaces\n\n", current, file)
		} else {
			fmt.Fprintf(out, "Context %s is in %s.\n\n  kubectl --context=%[1]s get namespaces\n\n", i.Context(), file)
		}
		_, err := fmt.Fprintf(out, "Stop it with \"bowsprit down %s\". %s\n", i.Name, afterReboot(i))
		return err
	})
}

// afterReboot returns a sentence about the instance after a reboot.
func afterReboot(i *instance.Instance) string {
	switch {
	case i.Ephemeral:
		return "Its data is gone then."
	case i.Unit != "" && lingers():
		return "It starts again after a reboot."
	case i.Unit != "":
		return "It starts again when you log in; \"loginctl enable-linger\" starts it at boot."
	}
	return fmt.Sprintf("Its data stays. After a reboot, \"bowsprit up %s\" starts it again.", i.Name)
}
