// Package connect finds the server that a command asks: the one that a kubeconfig names, or the one on this machine.
package connect

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Flags say which server a command asks, and as whom: as the user of a kubeconfig.
type Flags struct{ dataDir, kubeconfig, context string }

// OfDir names the server on this machine with the data directory, as its administrator.
func OfDir(dir string) Flags { return Flags{dataDir: dir} }

// Bind declares the flags.
func (c *Flags) Bind(f *pflag.FlagSet) {
	f.StringVar(&c.dataDir, "data-dir", "", "ask the server on this machine with this data directory")
	f.StringVar(&c.kubeconfig, "kubeconfig", "",
		"ask the server that this file names (default: the one that kubectl asks, else that on this machine)")
	f.StringVar(&c.context, "context", "", "the context of the kubeconfig to use")
}

// Loader finds the kubeconfig: the one that is named, or that of the data directory that is named; else kubectl's own,
// and if there is none that of the server with the default data directory.
func (c *Flags) Loader() (clientcmd.ClientConfig, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	switch {
	case c.kubeconfig != "" && c.dataDir != "":
		return nil, errors.New("--kubeconfig and --data-dir both name a server: give one of them")
	case c.kubeconfig != "":
		rules.ExplicitPath = c.kubeconfig
	case c.dataDir != "" || !UserHasKubeconfig():
		dir := c.dataDir
		if dir == "" {
			dir = DefaultDataDir()
		}
		file, err := KubeconfigOf(dir)
		if err != nil {
			return nil, err
		}
		if !Exists(file) {
			return nil, fmt.Errorf("no server has written %s: start one with \"bowsprit serve\", or name its directory "+
				"with --data-dir or its kubeconfig with --kubeconfig", file)
		}
		rules.ExplicitPath = file
	}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: c.context}), nil
}

// Connect returns how the server is reached, and the namespace of the context.
func (c *Flags) Connect() (config *rest.Config, namespace string, err error) {
	loader, err := c.Loader()
	if err != nil {
		return nil, "", err
	}
	if config, err = loader.ClientConfig(); err != nil {
		return nil, "", err
	}
	config.UserAgent = "bowsprit"
	namespace, _, err = loader.Namespace()
	return config, namespace, err
}

// Clientset returns a client for the server's built-in kinds.
func (c *Flags) Clientset() (kubernetes.Interface, error) {
	config, _, err := c.Connect()
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// UserHasKubeconfig reports whether kubectl finds a kubeconfig by itself.
func UserHasKubeconfig() bool {
	return os.Getenv(clientcmd.RecommendedConfigPathEnvVar) != "" || Exists(clientcmd.RecommendedHomeFile)
}
