package lifecycle

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/instance"
	"github.com/bowsprit/bowsprit/internal/auth/pki"
)

// addContext adds the instance's context to kubectl's file, the first existing one of KUBECONFIG, or ~/.kube/config. It
// returns the file and its current context, which changes only with use.
func addContext(i *instance.Instance, use bool) (file, current string, err error) {
	file = clientcmd.NewDefaultPathOptions().GetDefaultFilename()
	if same, err := filepath.Abs(file); err == nil && same == kubeconfig(i) {
		return file, "", fmt.Errorf("KUBECONFIG names the server's own file %s: unset it, or name another file", file)
	}
	own, err := clientcmd.LoadFromFile(kubeconfig(i))
	if err != nil {
		return file, "", err
	}
	content, err := renamed(own, i.Context(), use)
	if err != nil {
		return file, "", err
	}
	if i.Kubeconfig == file { // entries of the instance's earlier server, perhaps with another authority
		if err := pki.Remove(file, i.Context()); err != nil {
			return file, "", err
		}
	}
	current, err = pki.Merge(file, content, use)
	if err != nil {
		return file, "", fmt.Errorf("%w: remove that context with \"kubectl config delete-context %s\", or choose another "+
			"name for the instance", err, i.Context())
	}
	return file, current, nil
}

// renamed returns a kubeconfig with the entries of another's current context, under one name. It has a current context
// only with use.
func renamed(own *clientcmdapi.Config, name string, use bool) ([]byte, error) {
	context := own.Contexts[own.CurrentContext]
	if context == nil || own.Clusters[context.Cluster] == nil || own.AuthInfos[context.AuthInfo] == nil {
		return nil, fmt.Errorf("the server's kubeconfig has no current context")
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[name], config.AuthInfos[name] = own.Clusters[context.Cluster], own.AuthInfos[context.AuthInfo]
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: context.Namespace}
	if use {
		config.CurrentContext = name
	}
	return clientcmd.Write(*config)
}

// removeContext removes the instance's context from the file that has it.
func removeContext(i *instance.Instance) error {
	if i.Kubeconfig == "" {
		return nil
	}
	if _, err := os.Stat(i.Kubeconfig); os.IsNotExist(err) {
		return nil
	}
	return pki.Remove(i.Kubeconfig, i.Context())
}
