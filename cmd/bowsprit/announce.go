package main

import (
	"fmt"
	"io"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/internal/auth/pki"
)

// announce prints the server's URL, the next commands, and whether workloads run.
func announce(out io.Writer, server *bowsprit.Server, simulated bool) {
	fmt.Fprintf(out, "Bowsprit is ready at %s\n", server.URL())
	kubeconfig := server.Kubeconfig()
	if absolute, err := filepath.Abs(kubeconfig); err == nil { // the other terminal may be in another directory
		kubeconfig = absolute
	}
	kubectl := "kubectl"
	if config, err := clientcmd.LoadFromFile(kubeconfig); err == nil &&
		config.CurrentContext != pki.ContextName {
		kubectl += " --context=" + pki.ContextName // the kubeconfig also has other contexts
	}
	fmt.Fprintf(out, "\nIn another terminal:\n\n  export KUBECONFIG=%s\n  %s get namespaces\n\n",
		connect.Quote(kubeconfig), kubectl)
	if simulated {
		fmt.Fprintln(out,
			"Workloads are simulated: Deployments and Jobs create pods, and pods become ready, but no container runs.")
	} else {
		fmt.Fprintln(out,
			"Workloads are stored, not run: no controller creates pods for Deployments or Jobs, and no node runs pods.")
	}
	fmt.Fprintln(out, "Stop with Ctrl-C.")
}
