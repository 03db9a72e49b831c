package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/plugin"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
	_ "github.com/bowsprit/bowsprit/cmd/bowsprit/translations" // before kubectl's packages
)

// kubectlCommand is the entry in the help; main hands the arguments to ownKubectl before this command parses them.
func kubectlCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl [--data-dir DIRECTORY] [ARGUMENTS]",
		Short: "Run the built-in kubectl, by default against this user's server",
		Long: `Run the built-in kubectl. It follows kubectl's rules: --context, --kubeconfig, KUBECONFIG, the current context of
~/.kube/config. If none of these exists, it uses this user's local server. With --data-dir it uses the local server with
that data directory. All other arguments are kubectl's.

If the user has contexts and the command line selects none, it prints the server's name to stderr. A link named kubectl
to this program does the same.`,
		DisableFlagParsing: true,
		Run:                func(_ *cobra.Command, args []string) { os.Exit(ownKubectl(args)) },
	}
}

// ownKubectl is "bowsprit kubectl": kubectl with --data-dir, and with a hint how to start a server if none runs.
func ownKubectl(args []string) int {
	dataDir, args, err := takeDataDir(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bowsprit: "+exit.Lines(err)[0])
		return 1
	}
	if dataDir != "" {
		if flag := selectingFlag(args); flag != "" {
			fmt.Fprintf(os.Stderr, "bowsprit: %s and --data-dir both name a server: give one of them\n", flag)
			return 1
		}
		file, _ := connect.KubeconfigOf(dataDir)
		if !connect.Exists(file) {
			fmt.Fprintf(os.Stderr,
				"bowsprit: no server has written %s: start one with \"bowsprit serve --data-dir=%s\"\n", file, dataDir)
			return 1
		}
		os.Setenv(clientcmd.RecommendedConfigPathEnvVar, file)
	}
	if hint := serverHint(dataDir, args); hint != "" {
		util.BehaviorOnFatal(func(message string, code int) {
			if message != "" {
				fmt.Fprintln(os.Stderr, strings.TrimSuffix(message, "\n"))
			}
			if strings.Contains(message, " was refused - did you specify the right host or port?") {
				fmt.Fprintln(os.Stderr, hint)
			}
			os.Exit(code)
		})
	}
	return runKubectl(args, dataDir != "")
}

// takeDataDir removes --data-dir from kubectl's arguments. It leaves the arguments of a program in a pod alone.
func takeDataDir(args []string) (dataDir string, rest []string, err error) {
	const flag = "--data-dir"
	for i := 0; i < len(args); i++ {
		value, given := strings.CutPrefix(args[i], flag+"=")
		switch {
		case args[i] == "--":
			return dataDir, append(rest, args[i:]...), nil
		case given:
			dataDir = value
		case args[i] == flag && i+1 == len(args):
			return "", nil, fmt.Errorf("flag needs an argument: %s: name the server's data directory", flag)
		case args[i] == flag:
			i++
			dataDir = args[i]
		default:
			rest = append(rest, args[i])
		}
	}
	return dataDir, rest, nil
}

// serverHint returns the command that starts kubectl's server, or "" if the user has selected another server.
func serverHint(dataDir string, args []string) string {
	if selectingFlag(args) != "" {
		return ""
	}
	own, err := connect.KubeconfigOf(connect.DefaultDataDir())
	switch {
	case dataDir != "":
		return fmt.Sprintf("The server of %s is not running. Start it with: bowsprit serve --data-dir=%s", dataDir,
			dataDir)
	case connect.UserHasKubeconfig():
		return ""
	case err == nil && connect.Exists(own):
		return "The Bowsprit server is not running. Start it with: bowsprit serve"
	}
	return "There is no kubeconfig, and no server has run yet. Start one with: bowsprit serve"
}

// runKubectl runs kubectl and returns its exit code. If the kubeconfig of the user selects no server, kubectl uses this
// user's server. If neither a flag of Bowsprit (selected) nor a flag of kubectl has chosen the server, it prints the
// server's name.
func runKubectl(args []string, selected bool) int {
	if !connect.UserHasKubeconfig() && selectingFlag(args) == "" {
		switch own, err := connect.Own(); {
		case err == nil:
			os.Setenv(clientcmd.RecommendedConfigPathEnvVar, filepath.Join(own.DataDir, "kubeconfig"))
		case errors.Is(err, connect.ErrSeveral):
			fmt.Fprintf(os.Stderr, "kubectl has no current context, and several servers of this user run: add "+
				"--context=NAME; there are the contexts of \"bowsprit list\"\n")
			return 1
		}
	}
	stampKubectl()
	os.Args = append([]string{"kubectl"}, args...) // kubectl takes plugins and messages from here
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	command := cmd.NewDefaultKubectlCommandWithArgs(cmd.KubectlOptions{
		PluginHandler: cmd.NewDefaultPluginHandler(plugin.ValidPluginFilenamePrefixes),
		Arguments:     os.Args, ConfigFlags: kubectlFlags(streams, selected), IOStreams: streams,
	})
	command.SetArgs(args)
	if err := cli.RunNoErrOutput(command); err != nil { // with -v and kubectl's other log flags
		util.CheckErr(err) // prints and exits as kubectl does
		return 1
	}
	return 0
}
