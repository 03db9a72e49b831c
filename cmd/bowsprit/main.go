// Command bowsprit is a Kubernetes-compatible API server for custom resources, in one process.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func main() {
	name, args := invoked(os.Args)
	switch name {
	case "kubectl":
		os.Exit(runKubectl(args))
	case "etcd":
		runEtcd(args)
		return
	}
	root := rootCommand()
	if name != "" {
		root.SetArgs(append([]string{name}, args...))
	}
	if err := root.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "bowsprit: "+oneLine(err))
		os.Exit(1)
	}
}

// invoked returns the subcommand that stands first, or that the program's own name is because it was started by a link
// of one of the names in assets; "" if neither is one of them.
func invoked(argv []string) (name string, args []string) {
	own := strings.TrimSuffix(filepath.Base(argv[0]), ".exe")
	if slices.Contains(assets[:], own) {
		return own, argv[1:]
	}
	if len(argv) > 1 && slices.Contains(assets[:], argv[1]) {
		return argv[1], argv[2:]
	}
	return "", nil
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "bowsprit",
		Short: "A Kubernetes API server for custom resources, in one process",
		Long: `Bowsprit serves CustomResourceDefinitions to unmodified Kubernetes clients: kubectl, client-go, controller-runtime, Helm.
It needs no cluster and no configuration: "bowsprit serve" starts the API server with an embedded etcd.`,
		Example: `  bowsprit serve                               # start, data below the XDG data home
  bowsprit kubectl get namespaces              # the built-in kubectl, against that server
  bowsprit serve --ephemeral --secure-port=0   # a server that forgets, on a free port`,
		Args:          noArguments,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(serveCommand(), snapshotCommand(), kubectlCommand(), envtestCommand(), kubeAPIServerCommand(),
		etcdCommand(), versionCommand())
	return root
}

// oneLine returns all that is wrong, on one line: what errors.Join puts on lines of their own is one message to a user.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// noArguments refuses what is not a flag. On the root command it is a subcommand that does not exist.
func noArguments(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case cmd.HasParent():
		return fmt.Errorf("%q takes no arguments, but got %q: see %q", cmd.CommandPath(), args[0], cmd.CommandPath()+
			" --help")
	}
	return fmt.Errorf("unknown command %q: see %q", args[0], cmd.CommandPath()+" help")
}

// flagError says in the user's words what pflag says in Go's.
func flagError(cmd *cobra.Command, err error) error {
	help := cmd.CommandPath() + " --help"
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		flag, cause := invalid.GetFlag(), invalid.Unwrap()
		if number := new(strconv.NumError); cause != nil && !errors.As(cause, &number) &&
			!strings.HasPrefix(cause.Error(), "time: ") {
			// a value of ours says more than its type
			return fmt.Errorf("--%s %q: %w: see %q", flag.Name, invalid.GetValue(), cause, help)
		}
		return fmt.Errorf("--%s %q is not a value of type %s: see %q", flag.Name, invalid.GetValue(), flag.Value.Type(),
			help)
	}
	return fmt.Errorf("%w: see %q", err, help)
}
