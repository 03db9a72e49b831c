package pki

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/bowsprit/bowsprit/internal/storage/durable"
)

// Merge merges the context, cluster and user of a result of Kubeconfig into file, like kubectl config: entries with the
// same names are replaced, all others stay, and a missing file is created. The current context changes only if there is
// none, or if use is set. Merge returns the current context of the file.
//
// A file with entries of another server (ErrOtherServer), or one that is not a kubeconfig, is left unchanged. Merge
// honours kubectl's lock file.
func Merge(file string, kubeconfig []byte, use bool) (current string, err error) {
	return merge(file, kubeconfig, use, otherServer)
}

// merge is Merge with another rule about the entries that may be replaced.
func merge(file string, kubeconfig []byte, use bool, refuse func(there, ours *clientcmdapi.Config) error,
) (current string, err error) {
	ours, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", fmt.Errorf("write kubeconfig: %w", err)
	}
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target // keep a symbolic link
	}
	unlock, err := lockKubeconfig(file)
	if err != nil {
		return "", err
	}
	defer unlock()
	merged, err := readKubeconfig(file)
	if err != nil {
		return "", err
	}
	if err := refuse(merged, ours); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	mergeEntries(merged, ours)
	if use || merged.CurrentContext == "" {
		merged.CurrentContext = ours.CurrentContext
	}
	content, err := clientcmd.Write(*merged)
	if err != nil {
		return "", fmt.Errorf("write kubeconfig: %w", err)
	}
	if err := durable.WriteFile(file, content); err != nil {
		return "", fmt.Errorf("write kubeconfig: %w", err)
	}
	return merged.CurrentContext, nil
}

// Remove removes the context, cluster and user with a name from file. It changes nothing if there are none. If the
// context is the current one, the file has no current context afterwards. Remove honours kubectl's lock file.
func Remove(file, name string) error {
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target
	}
	unlock, err := lockKubeconfig(file)
	if err != nil {
		return err
	}
	defer unlock()
	config, err := readKubeconfig(file)
	if err != nil {
		return err
	}
	if config.Contexts[name] == nil && config.Clusters[name] == nil && config.AuthInfos[name] == nil {
		return nil
	}
	delete(config.Contexts, name)
	delete(config.Clusters, name)
	delete(config.AuthInfos, name)
	if config.CurrentContext == name {
		config.CurrentContext = ""
	}
	content, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	if err := durable.WriteFile(file, content); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

// lockKubeconfig creates the lock file that kubectl uses while it changes a kubeconfig.
func lockKubeconfig(file string) (unlock func(), err error) {
	lock := file + ".lock"
	f, err := os.OpenFile(lock, os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil,
			fmt.Errorf("%s is being changed by another program: if none is running, remove %s", file, lock)
	case err != nil:
		return nil, fmt.Errorf("write kubeconfig: %w", err)
	}
	return func() { _ = errors.Join(f.Close(), os.Remove(lock)) }, nil
}

// readKubeconfig returns the content of file, empty if it is missing. Paths in it stay unchanged.
func readKubeconfig(file string) (*clientcmdapi.Config, error) {
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return clientcmdapi.NewConfig(), nil
	}
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	config, err := clientcmd.Load(content)
	if err != nil {
		return nil, fmt.Errorf("%s is not a kubeconfig and stays unchanged: %w", file, err)
	}
	return config, nil
}

func mergeEntries(into, from *clientcmdapi.Config) {
	for name, cluster := range from.Clusters {
		into.Clusters[name] = cluster
	}
	for name, user := range from.AuthInfos {
		into.AuthInfos[name] = user
	}
	for name, context := range from.Contexts {
		if old := into.Contexts[name]; old != nil {
			context.Namespace = old.Namespace // the user's choice
		}
		into.Contexts[name] = context
	}
}
