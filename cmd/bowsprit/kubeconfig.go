package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
	"github.com/bowsprit/bowsprit/internal/auth/pki"
)

// kubeconfigFlags are the flags of "bowsprit kubeconfig".
type kubeconfigFlags struct {
	dataDir    string
	merge, use bool
	person     personFlags
}

func kubeconfigCommand() *cobra.Command {
	var flags kubeconfigFlags
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the administrator's kubeconfig or one for a user, or add it to kubectl's own",
		Long: `Print the administrator's kubeconfig of a server on this machine, or add it to kubectl's file: the first existing file of
KUBECONFIG, or ~/.kube/config. The rest of that file stays unchanged. If it has a context, cluster or user of the same
name for another server, the command changes nothing.

With --user, the kubeconfig is for a user of that name, with a new client certificate from the server's own authority. The
user has the permissions that bindings grant to the name and the groups; without a binding, none.`,
		Example: `  bowsprit kubeconfig > admin.conf
  bowsprit kubeconfig --merge                 # then: kubectl --context=bowsprit get namespaces
  bowsprit kubeconfig --merge --use-context   # then: kubectl get namespaces

  # alice, of the group dev, may edit objects in the namespace shop, for a week
  kubectl create rolebinding dev --clusterrole=edit --group=dev --namespace=shop
  bowsprit kubeconfig --user alice --group dev --duration 168h --server https://api.example.com:6443 > alice.conf`,
		Args: arguments.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("user") && flags.person.user == "" {
				return exit.Usage(errors.New("--user: the name is empty"))
			}
			if err := connect.Dir(cmd.Flags(), &flags.dataDir); err != nil {
				return err
			}
			return showKubeconfig(cmd.OutOrStdout(), cmd.ErrOrStderr(), flags)
		},
	}
	f := cmd.Flags()
	connect.BindDir(f, &flags.dataDir)
	f.BoolVar(&flags.merge, "merge", false, "add the context bowsprit to kubectl's file")
	f.BoolVar(&flags.use, "use-context", false,
		"with --merge: make it the current context, even if another one is set")
	p := &flags.person
	f.StringVar(&p.user, "user", "", "print a kubeconfig for the user with this name, with a new certificate")
	f.StringSliceVar(&p.groups, "group", nil, "with --user: a group of the user; may be repeated")
	f.DurationVar(&p.duration, "duration", defaultPersonDuration, "with --user: how long the certificate is valid")
	f.StringVar(&p.server, "server", "",
		"with --user: URL of the server in the kubeconfig (default: the URL in the administrator's)")
	return cmd
}

func showKubeconfig(out, notes io.Writer, flags kubeconfigFlags) error {
	if flags.use && !flags.merge {
		return exit.Usage(errors.New("--use-context needs --merge: add it"))
	}
	if err := flags.person.validate(); err != nil {
		return exit.Usage(err)
	}
	file, err := connect.KubeconfigOf(flags.dataDir)
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
	name := pki.ContextName
	if p := flags.person; p.user != "" {
		if content, err = p.kubeconfig(flags.dataDir, content, notes); err != nil {
			return err
		}
		name = p.person().Context()
	}
	if !flags.merge {
		_, err := out.Write(content)
		return err
	}
	if target := clientcmd.NewDefaultPathOptions().GetDefaultFilename(); sameFile(file, target) {
		return fmt.Errorf("nothing was changed: KUBECONFIG names the server's own file %s, which needs no merging: "+
			"unset KUBECONFIG, or name your own file, as in KUBECONFIG=FILE bowsprit kubeconfig --merge", target)
	}
	return mergeKubeconfig(out, name, content, flags.use)
}

// sameFile reports whether two names lead to one existing file.
func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// mergeKubeconfig adds a kubeconfig with the context name to kubectl's own. It keeps the current context, from any file
// of KUBECONFIG, unless use is set or there is no current context.
func mergeKubeconfig(out io.Writer, name string, content []byte, use bool) error {
	paths := clientcmd.NewDefaultPathOptions()
	target := paths.GetDefaultFilename()
	files, err := paths.GetStartingConfig()
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	if !use && files.CurrentContext != "" {
		if content, err = withoutCurrent(content); err != nil {
			return err
		}
	}
	current, err := pki.Merge(target, content, use)
	if errors.Is(err, pki.ErrOtherServer) {
		return fmt.Errorf("nothing was changed: %w: add this server to another file, as in KUBECONFIG=FILE bowsprit "+
			"kubeconfig --merge, or remove that context, its cluster and its user with kubectl config", err)
	}
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	current = cmp.Or(current, files.CurrentContext)
	if current == name {
		_, err = fmt.Fprintf(out, "Context %s in %s is now the current context.\n", name, target)
		return err
	}
	_, err = fmt.Fprintf(out,
		"Added context %s to %s; the current context is still %s:\n\n  kubectl --context=%[1]s get namespaces\n\n",
		name, target, current)
	return err
}

// withoutCurrent returns a kubeconfig without its current context.
func withoutCurrent(kubeconfig []byte) ([]byte, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.CurrentContext = ""
	return clientcmd.Write(*config)
}
