package tokens

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/output"
	"github.com/bowsprit/bowsprit/internal/auth/token"
)

// nodeGroup is the usual group of tokens of nodes: kubeadm's name.
const nodeGroup = "system:bootstrappers:kubeadm:default-node-token"

// createFlags are the flags of "bowsprit token create", by kubeadm's names.
type createFlags struct {
	ttl             time.Duration
	usages, groups  []string
	description     string
	printKubeconfig bool
	form            output.Form
}

func createCommand(server *connect.Flags) *cobra.Command {
	var flags createFlags
	cmd := &cobra.Command{
		Use:   "create [TOKEN]",
		Short: "Create a bootstrap token, and print it",
		Long: `Create a bootstrap token and print it, or with --print-kubeconfig a kubeconfig for a joining node, for the flag
--bootstrap-kubeconfig of its kubelet. Without an argument the token is random, which is recommended.

For tokens with the default group, the command creates missing bindings that let kubelets request a certificate, have it
approved automatically, and renew it (kubeadm:kubelet-bootstrap, kubeadm:node-autoapprove-bootstrap,
kubeadm:node-autoapprove-certificate-rotation).`,
		Example: `  bowsprit token create
  bowsprit token create --ttl 1h --description "rack 4" --print-kubeconfig > token.conf`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("%q creates one token, but got %d: see %q", cmd.CommandPath(), len(args), cmd.CommandPath()+
					" --help")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if flags.printKubeconfig && flags.form.ForPrograms() {
				return exit.Usage(errors.New("--print-kubeconfig and --output are mutually exclusive: the result is one of them"))
			}
			token, err := flags.token(args, time.Now())
			if err != nil {
				return exit.Usage(err)
			}
			to, err := server.Write(cmd, connect.CarriesData)
			if err != nil {
				return err
			}
			client, err := to.Clientset()
			if err != nil {
				return err
			}
			return create(cmd.Context(), client, token, flags.printKubeconfig,
				output.Streams{Out: cmd.OutOrStdout(), Notes: cmd.ErrOrStderr(), Form: flags.form})
		},
	}
	f := cmd.Flags()
	f.DurationVar(&flags.ttl, "ttl", 24*time.Hour, "lifetime of the token; 0 for ever")
	f.StringSliceVar(&flags.usages, "usages", []string{"signing", "authentication"}, "permitted uses of the token")
	f.StringSliceVar(&flags.groups, "groups", []string{nodeGroup},
		"groups of a client that authenticates with the token; they begin with system:bootstrappers:")
	f.StringVar(&flags.description, "description", "", "description of the token")
	f.BoolVar(&flags.printKubeconfig, "print-kubeconfig", false, "print a kubeconfig with the token, for a kubelet")
	flags.form.Bind(f)
	return cmd
}

func (f *createFlags) token(args []string, now time.Time) (token.BootstrapToken, error) {
	text := token.GenerateBootstrap()
	if len(args) > 0 {
		text = args[0]
	}
	t, err := token.ParseBootstrap(text)
	if err != nil {
		return t, err
	}
	t.Usages, t.Groups, t.Description = f.usages, f.groups, f.description
	switch {
	case f.ttl < 0:
		return t, fmt.Errorf("--ttl %s is negative: use a duration such as 24h, or 0 for ever", f.ttl)
	case f.ttl > 0:
		t.Expires = now.Add(f.ttl)
	}
	if !slices.Contains(t.Usages, "authentication") {
		if f.printKubeconfig {
			return t, errors.New("--print-kubeconfig needs a token with the usage authentication")
		}
		t.Groups = nil
	}
	return t, t.Validate()
}

func create(
	ctx context.Context, client kubernetes.Interface, t token.BootstrapToken, printKubeconfig bool, to output.Streams,
) error {
	if slices.Contains(t.Groups, nodeGroup) {
		if err := bindNodes(ctx, client, to.Notes); err != nil {
			return err
		}
	}
	_, err := client.CoreV1().Secrets(metav1.NamespaceSystem).Create(ctx, t.AsSecret(),
		metav1.CreateOptions{FieldManager: "bowsprit"})
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("a token with id %q already exists", t.ID)
	}
	if err != nil {
		return fmt.Errorf("create the token: %w", err)
	}
	if !printKubeconfig {
		return to.Form.Print(to.Out, rowOf(t), func(out io.Writer) error {
			_, err := fmt.Fprintln(out, t)
			return err
		})
	}
	text, err := kubeconfig(ctx, client, t)
	if err != nil {
		return fmt.Errorf("the token %s... was created, but no kubeconfig: %w", t.ID, err)
	}
	_, err = to.Out.Write(text)
	return err
}

// bindNodes makes the bindings that let kubelets with a token of the usual group join.
func bindNodes(ctx context.Context, client kubernetes.Interface, notes io.Writer) error {
	const requests = "system:certificates.k8s.io:certificatesigningrequests:"
	for _, b := range []struct{ name, role, group string }{
		{"kubeadm:kubelet-bootstrap", "system:node-bootstrapper", nodeGroup},
		{"kubeadm:node-autoapprove-bootstrap", requests + "nodeclient", nodeGroup},
		{"kubeadm:node-autoapprove-certificate-rotation", requests + "selfnodeclient", "system:nodes"},
	} {
		_, err := client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: b.name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: b.role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: b.group}},
		}, metav1.CreateOptions{FieldManager: "bowsprit"})
		switch {
		case apierrors.IsAlreadyExists(err):
		case err != nil:
			return fmt.Errorf("create the binding %s for joining nodes: %w", b.name, err)
		default:
			fmt.Fprintf(notes, "Created the ClusterRoleBinding %s.\n", b.name)
		}
	}
	return nil
}

// kubeconfig returns a kubeconfig with the token for the server that the ConfigMap cluster-info names.
func kubeconfig(ctx context.Context, client kubernetes.Interface, t token.BootstrapToken) ([]byte, error) {
	info, err := client.CoreV1().ConfigMaps(metav1.NamespacePublic).Get(ctx, "cluster-info", metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the connection data for nodes: %w", err)
	}
	config, err := clientcmd.Load([]byte(info.Data["kubeconfig"]))
	if err != nil || config.Clusters[""] == nil {
		return nil, errors.New("the ConfigMap kube-public/cluster-info has no kubeconfig with a cluster")
	}
	const user, name = "tls-bootstrap-token-user", "bowsprit"
	return clientcmd.Write(clientcmdapi.Config{
		Clusters:  map[string]*clientcmdapi.Cluster{name: config.Clusters[""]},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{user: {Token: t.String()}},
		Contexts: map[string]*clientcmdapi.Context{
			user + "@" + name: {Cluster: name, AuthInfo: user},
		},
		CurrentContext: user + "@" + name,
	})
}
