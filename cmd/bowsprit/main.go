// Command bowsprit is a Kubernetes-compatible API server for custom resources, in one process.
package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/archive"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/aspod"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/assistant"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/content"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/conversion"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/definition"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/demo"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/explain"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/help"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/inspect"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/lifecycle"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/manual"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/people"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/proxy"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/tokens"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/uninstall"
	"github.com/bowsprit/bowsprit/internal/auth/pki"
	"github.com/bowsprit/bowsprit/internal/net/foreign"
)

func main() {
	name, args, linked := invoked(os.Args)
	switch {
	case name == "kubectl" && linked:
		os.Exit(runKubectl(args, false))
	case name == "kubectl":
		os.Exit(ownKubectl(args))
	case name == "etcd":
		runEtcd(args)
		return
	}
	root := rootCommand()
	root.SetOut(foreign.Writer(os.Stdout))
	root.SetErr(foreign.Writer(os.Stderr))
	if name != "" {
		root.SetArgs(append([]string{name}, args...))
	}
	quiet(root, os.Args[1:])
	cmd, err := root, errors.Join(arguments.Printable(ownArguments(os.Args[1:])), arguments.Known(root, os.Args[1:]))
	if err == nil {
		cmd, err = root.ExecuteC()
	}
	if err != nil && !exit.Silent(err) {
		lines := exit.Lines(err)
		if len(lines) == 1 {
			lines = exit.Lines(connect.Advise(err))
		}
		for _, line := range lines {
			fmt.Fprintln(root.ErrOrStderr(), "bowsprit: "+line)
		}
	}
	os.Exit(int(outcomes[pathBelow(root, cmd)].code(err)))
}

// quiet drops the messages of Kubernetes' libraries if the arguments name a command that connects to a server: the
// libraries log errors that they return, too.
func quiet(root *cobra.Command, args []string) {
	if cmd, _, err := root.Find(args); err == nil && cmd.Flag("context") != nil {
		klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	}
}

// ownArguments returns the arguments of this program. "bowsprit run" passes the others on to another program.
func ownArguments(args []string) []string {
	if end := slices.Index(args, "--"); end > 0 && args[0] == "run" {
		return args[:end]
	}
	return args
}

// invoked returns the subcommand from the program's own name, if a link with a name of assets started it (linked
// reports that), or from the first argument. It returns "" if neither is a name of assets.
func invoked(argv []string) (name string, args []string, linked bool) {
	own := strings.TrimSuffix(filepath.Base(argv[0]), ".exe")
	if slices.Contains(assets[:], own) {
		return own, argv[1:], true
	}
	if len(argv) > 1 && slices.Contains(assets[:], argv[1]) {
		return argv[1], argv[2:], false
	}
	return "", nil, false
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "bowsprit",
		Short: "A Kubernetes API server for custom resources, in one process",
		Long: `Bowsprit serves CustomResourceDefinitions to unmodified Kubernetes clients: kubectl, client-go, controller-runtime, Helm.
It needs no cluster and no configuration: "bowsprit up" and "bowsprit serve" start the API server with an embedded etcd.`,
		Example: `  bowsprit up                                       # start a server in the background
  bowsprit demo                                     # an example, and commands to try
  bowsprit kubectl get namespaces                   # the built-in kubectl, with that server
  bowsprit up test --ephemeral --simulate=nodes=3   # another server, in memory, with simulated workloads
  bowsprit serve                                    # a server in the foreground, until Ctrl-C`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SuggestionsMinimumDistance = 2
	root.Version = versionLine()
	root.SetVersionTemplate("{{.Version}}")
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(lifecycle.UpCommand(isSetting), lifecycle.DownCommand(), lifecycle.ListCommand(),
		lifecycle.LogsCommand(), serveCommand(), inspect.Command(), configCommand(), kubectlCommand(), proxy.Command(),
		kubeconfigCommand(), people.Command(userKubeconfig), tokens.Command(),
		archive.BackupCommand(bowsprit.Version().Bowsprit), archive.RestoreCommand(), snapshotCommand(),
		content.ExportCommand(), content.ImportCommand(), definition.Command(), conversion.Command(),
		explain.DeniedCommand(), explain.StuckCommand(), assistant.Command(bowsprit.Version().Bowsprit),
		doctorCommand(), demo.Command(), docsCommand(),
		uninstall.Command(pki.ContextName), envtestCommand(), kubeAPIServerCommand(), aspod.RunCommand(), etcdCommand(),
		konnectivityServerCommand(), konnectivityAgentCommand(), extensionCommand(), manual.Command(), versionCommand())
	explainServers(root)
	explainOutcomes(root)
	completeHelp(root)
	help.Group(root)
	root.SetUsageFunc(help.Usage(root.UsageFunc()))
	arguments.Complete(root)
	return root
}

// completeHelp adds cobra's commands help and completion. "help" refuses unknown commands.
func completeHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "help" {
			cmd.Args = arguments.Command
		}
	}
}

// flagError returns the error of a wrong flag.
func flagError(cmd *cobra.Command, err error) error { return exit.Usage(flagText(cmd, err)) }

// flagText replaces pflag's wording about Go with words for users.
func flagText(cmd *cobra.Command, err error) error {
	help := cmd.CommandPath() + " --help"
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		flag, cause := invalid.GetFlag(), invalid.Unwrap()
		if number := new(strconv.NumError); cause != nil && !errors.As(cause, &number) &&
			!strings.HasPrefix(cause.Error(), "time: ") {
			// the errors of our own values are more precise than the type
			return fmt.Errorf("--%s %q: %w: see %q", flag.Name, invalid.GetValue(), cause, help)
		}
		return fmt.Errorf("--%s %q is not a value of type %s: see %q", flag.Name, invalid.GetValue(), flag.Value.Type(),
			help)
	}
	return fmt.Errorf("%w: see %q", err, help)
}
