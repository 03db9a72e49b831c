package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

// kubectlCommand is the entry in the help; main hands the arguments to runKubectl before this command parses them.
func kubectlCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "kubectl [ARGUMENTS]",
		Short:              "Run the built-in kubectl, by default against this user's server",
		DisableFlagParsing: true,
		Run:                func(_ *cobra.Command, args []string) { os.Exit(runKubectl(args)) },
	}
}

// runKubectl runs kubectl and returns its exit code. Without a kubeconfig of the user's own it takes the one that
// "bowsprit serve" writes.
func runKubectl(args []string) int {
	if os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" && !exists(clientcmd.RecommendedHomeFile) {
		if own := filepath.Join(defaultDataDir(), "kubeconfig"); exists(own) {
			os.Setenv(clientcmd.RecommendedConfigPathEnvVar, own)
		}
	}
	os.Args = append([]string{"kubectl"}, args...) // kubectl takes plugins and messages from here
	command := cmd.NewDefaultKubectlCommand()
	command.SetArgs(args)
	if err := command.Execute(); err != nil {
		util.CheckErr(err) // prints and exits as kubectl does
		return 1
	}
	return 0
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
