package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
)

// kubectlFlags returns kubectl's flags for the server, with kubectl's defaults. When kubectl first reads the server
// from them, they print its name, unless --data-dir has selected it.
func kubectlFlags(streams genericiooptions.IOStreams, selected bool) *genericclioptions.ConfigFlags {
	flags := genericclioptions.NewConfigFlags(true).WithDeprecatedPasswordFlag().WithDiscoveryBurst(300).
		WithDiscoveryQPS(50).WithWarningPrinter(streams)
	if selected {
		return flags
	}
	var once sync.Once
	return flags.WithWrapConfigFn(func(config *rest.Config) *rest.Config {
		once.Do(func() { nameServer(streams.ErrOut, flags, config) })
		return config
	})
}

// nameServer prints the server that kubectl is about to use, unless a flag selects it or the user has no other.
func nameServer(notes io.Writer, flags *genericclioptions.ConfigFlags, config *rest.Config) {
	for _, flag := range []*string{flags.KubeConfig, flags.Context, flags.ClusterName, flags.APIServer} {
		if *flag != "" {
			return
		}
	}
	files, err := flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil || !connect.OffersAnother(&files) {
		return
	}
	fmt.Fprintf(notes, "kubectl: server %s\n", connect.Describe(config, files.CurrentContext))
}

// selectingFlag returns the first of kubectl's flags in args that selects a server, or "".
func selectingFlag(args []string) string {
	for _, arg := range args {
		name, _, _ := strings.Cut(arg, "=")
		switch {
		case arg == "--":
			return ""
		case slices.Contains([]string{"--kubeconfig", "--context", "--cluster", "--server"}, name):
			return name
		case strings.HasPrefix(arg, "-s"):
			return "--server"
		}
	}
	return ""
}
