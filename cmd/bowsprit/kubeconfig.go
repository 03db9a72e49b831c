package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/bowsprit/bowsprit/internal/auth/pki"
)

// kubeconfigFlags are the flags of "bowsprit kubeconfig".
type kubeconfigFlags struct {
	dataDir    string
	merge, use bool
}

func kubeconfigCommand() *cobra.Command {
	var flags kubeconfigFlags
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the administrator's kubeconfig, or add it to kubectl's own",
		Long: `Print the kubeconfig of a server on this machine, which has the rights of an administrator, or add it to the file that
kubectl reads: the first that exists of those that KUBECONFIG names, or ~/.kube/config. What else the file holds stays.`,
		Example: `  bowsprit kubeconfig > admin.conf
  bowsprit kubeconfig --merge                 # then: kubectl --context=bowsprit get namespaces
  bowsprit kubeconfig --merge --use-context   # then: kubectl get namespaces`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return showKubeconfig(cmd.OutOrStdout(), flags) },
	}
	f := cmd.Flags()
	f.StringVar(&flags.dataDir, "data-dir", defaultDataDir(), "the server's data directory")
	f.BoolVar(&flags.merge, "merge", false, "add the context bowsprit to kubectl's file")
	f.BoolVar(&flags.use, "use-context", false,
		"with --merge: make it the current context, also if there is another one")
	return cmd
}

func showKubeconfig(out io.Writer, flags kubeconfigFlags) error {
	if flags.use && !flags.merge {
		return errors.New("--use-context is about kubectl's own file: add --merge")
	}
	file, err := kubeconfigOf(flags.dataDir)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf(
			"no server has written %s: start one with \"bowsprit serve\", or name its directory with --data-dir", file)
	}
	if err != nil {
		return err
	}
	if !flags.merge {
		_, err := out.Write(content)
		return err
	}
	target := clientcmd.NewDefaultPathOptions().GetDefaultFilename()
	current, err := pki.Merge(target, content, flags.use)
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	if current == pki.ContextName {
		_, err = fmt.Fprintf(out, "Context %s is in %s, and is the current one.\n", pki.ContextName, target)
		return err
	}
	_, err = fmt.Fprintf(out,
		"Context %s is in %s; the current one is still %s:\n\n  kubectl --context=%[1]s get namespaces\n\n",
		pki.ContextName, target, current)
	return err
}
