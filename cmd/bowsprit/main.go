// Command bowsprit is a Kubernetes-compatible API server for custom resources, in one process.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

func main() {
	root := &cobra.Command{
		Use:   "bowsprit",
		Short: "A Kubernetes API server for custom resources, in one process",
		Long: `Bowsprit serves CustomResourceDefinitions to unmodified Kubernetes clients: kubectl, client-go, controller-runtime, Helm.
It needs no cluster and no configuration: "bowsprit serve" starts the API server with an embedded etcd.`,
		Example: `  bowsprit serve                      # start, data below the XDG data home
  bowsprit kubectl get namespaces     # the built-in kubectl, against that server
  bowsprit serve --ephemeral --secure-port=0   # a server that forgets, on a free port`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(serveCommand(), kubectlCommand(), versionCommand())
	if len(os.Args) > 1 && os.Args[1] == "kubectl" {
		os.Exit(runKubectl(os.Args[2:]))
	}
	if err := root.Execute(); err != nil {
		if !errors.Is(err, errReported) {
			fmt.Fprintf(os.Stderr, "bowsprit: %v\n", err)
		}
		os.Exit(1)
	}
}

// errReported ends the process with code 1 after its reason has been printed.
var errReported = errors.New("reported")
