// Package people implements "bowsprit user": it creates credentials and rights of a person in one step, lists rights,
// and removes them. The API has no objects for users: a user is a name in a certificate and in bindings.
package people

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/output"
	"github.com/bowsprit/bowsprit/internal/auth/pki"
)

// Kubeconfig writes a kubeconfig for a person, signed by the server with a data directory, and remarks to notes.
type Kubeconfig func(out, notes io.Writer, dataDir string, person pki.Person) error

// Command returns "bowsprit user".
func Command(kubeconfig Kubeconfig) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "user",
		Short: "Create, list and delete users: their kubeconfigs and their roles",
		Long: `Create users with their kubeconfigs and roles, list them, and delete them. The API has no objects for users: a user is a
name in a client certificate and in role bindings.`,
	}
	cmd.AddCommand(createCommand(kubeconfig), listCommand(), deleteCommand())
	return cmd
}

// createFlags are the flags of "bowsprit user create".
type createFlags struct {
	dataDir, role, namespace string
	person                   pki.Person
	form                     output.Form
}

func createCommand(kubeconfig Kubeconfig) *cobra.Command {
	var flags createFlags
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Print a kubeconfig for a user, and bind a role to the name",
		Long: `Print a kubeconfig for a user, with a new certificate from the server on this machine. With --role, bind that ClusterRole
(view, edit, admin, cluster-admin or one of your own) to the user, in one namespace or in all. Running the command again
creates another certificate and keeps the binding.

-o json and -o yaml print the name, groups, role and binding of the user, the end of the certificate, and the kubeconfig.`,
		Example: `  bowsprit user create alice --role edit --namespace shop > alice.conf
  bowsprit user create bob --group operations --role view --duration 168h > bob.conf`,
		Args: arguments.One("name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			flags.person.User = args[0]
			if err := connect.Dir(cmd.Flags(), &flags.dataDir); err != nil {
				return err
			}
			return create(cmd, flags, kubeconfig)
		},
	}
	f := cmd.Flags()
	connect.BindDir(f, &flags.dataDir)
	f.StringVar(&flags.role, "role", "", "ClusterRole that the user gets (default: none)")
	f.StringVarP(&flags.namespace, "namespace", "n", "", "with --role: the namespace of the role (default: all)")
	f.StringSliceVar(&flags.person.Groups, "group", nil, "a group of the user; may be repeated")
	f.DurationVar(&flags.person.Duration, "duration", 24*time.Hour, "how long the certificate is valid")
	f.StringVar(&flags.person.Server, "server", "",
		"URL of the server in the kubeconfig (default: the URL in the administrator's)")
	flags.form.Bind(f)
	return cmd
}

func create(cmd *cobra.Command, flags createFlags, kubeconfig Kubeconfig) error {
	if err := flags.check(); err != nil {
		return exit.Usage(err)
	}
	// The certificate belongs to the server, too: without --role the choice counts as much.
	to, err := connect.OfDir(flags.dataDir, cmd.Flags()).Write(cmd, connect.CarriesData)
	if err != nil {
		return err
	}
	if flags.role != "" {
		if err := to.Running(cmd.Context()); err != nil {
			return err
		}
		client, err := to.Clientset()
		if err != nil {
			return err
		}
		result, err := bind(cmd.Context(), client, flags)
		if err != nil {
			return err
		}
		fmt.Fprintln(cmd.ErrOrStderr(), result)
	}
	var text bytes.Buffer
	if err := kubeconfig(&text, cmd.ErrOrStderr(), to.DataDir, flags.person); err != nil {
		return err
	}
	return flags.show(cmd.OutOrStdout(), text.Bytes())
}

// created is the result of "user create" for programs.
type created struct {
	User    string    `json:"user"`
	Groups  []string  `json:"groups"`
	Expires time.Time `json:"expires"` // of the certificate
	// Role and Binding are missing without --role, and Namespace if the role holds in all namespaces.
	Role      string `json:"role,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Binding   string `json:"binding,omitempty"`
	// Kubeconfig is the content of a kubeconfig file.
	Kubeconfig json.RawMessage `json:"kubeconfig"`
}

// show prints the kubeconfig, or everything about the user for programs.
func (f *createFlags) show(out io.Writer, kubeconfig []byte) error {
	if !f.form.ForPrograms() {
		_, err := out.Write(kubeconfig)
		return err
	}
	expires, err := expiry(kubeconfig)
	if err != nil {
		return err
	}
	data, err := yaml.YAMLToJSON(kubeconfig)
	if err != nil {
		return err
	}
	c := created{User: f.person.User, Groups: append([]string{}, f.person.Groups...), Expires: expires, Role: f.role,
		Namespace: f.namespace, Kubeconfig: data}
	if f.role != "" {
		c.Binding = bindingName(f.person.User, f.role)
	}
	return f.form.Print(out, c, nil)
}

// expiry returns the end of the client certificate in a kubeconfig.
func expiry(kubeconfig []byte) (time.Time, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return time.Time{}, err
	}
	certificates, err := cert.ParseCertsPEM(config.CertData)
	if err != nil {
		return time.Time{}, err
	}
	return certificates[0].NotAfter, nil
}

// check refuses wrong arguments before the binding is made.
func (f *createFlags) check() error {
	switch {
	case f.person.User == "":
		return errors.New("the user's name is empty")
	case pki.CheckName(f.person.User) != nil:
		return pki.CheckName(f.person.User)
	case strings.HasPrefix(f.person.User, "system:"):
		return fmt.Errorf("%s: names that begin with system: are reserved: create such a kubeconfig with "+
			"\"bowsprit kubeconfig --user\"", f.person.User)
	case f.namespace != "" && f.role == "":
		return errors.New("--namespace needs --role: name the role")
	}
	return nil
}

// bindingName returns the name of the binding that "user create" makes.
func bindingName(user, role string) string { return "user:" + user + ":" + role }

// bind gives the user the role, and returns a message about it. A missing role is an error, because a binding to it
// would have no effect.
func bind(ctx context.Context, client kubernetes.Interface, flags createFlags) (string, error) {
	if _, err := client.RbacV1().ClusterRoles().Get(ctx, flags.role, metav1.GetOptions{}); err != nil {
		return "", fmt.Errorf("--role %s: %w", flags.role, err)
	}
	user := flags.person.User
	meta := metav1.ObjectMeta{Name: bindingName(user, flags.role), Namespace: flags.namespace}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	role := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: flags.role}
	where, err := "in all namespaces", error(nil)
	if flags.namespace == "" {
		_, err = client.RbacV1().ClusterRoleBindings().Create(ctx,
			&rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: role}, metav1.CreateOptions{})
	} else {
		where = "in the namespace " + flags.namespace
		_, err = client.RbacV1().RoleBindings(flags.namespace).Create(ctx,
			&rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: role}, metav1.CreateOptions{})
	}
	if apierrors.IsAlreadyExists(err) {
		err = confirm(ctx, client, meta, role, user)
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("User %s has the role %s %s.", user, flags.role, where), nil
}

// confirm returns an error unless the existing binding gives the user the role: another client may have changed it.
func confirm(ctx context.Context, client kubernetes.Interface, meta metav1.ObjectMeta, role rbacv1.RoleRef, user string,
) error {
	bindings, err := grants(ctx, client)
	if err != nil {
		return err
	}
	for _, b := range bindings {
		if b.Name != meta.Name || b.Namespace != meta.Namespace {
			continue
		}
		if b.Role == roleOf(role) && len(without(b.Subjects, user)) < len(b.Subjects) {
			return nil
		}
		return fmt.Errorf("the %s %s does not bind %s to the role %s any more: delete it, and run this again", b.Kind, b.Name,
			user, role.Name)
	}
	return fmt.Errorf("the binding %s was deleted meanwhile: run this again", meta.Name)
}

// roleOf returns a role in the notation of grant.
func roleOf(r rbacv1.RoleRef) string { return r.Kind + "/" + r.Name }

// grant is one binding, as both kinds of bindings have it.
type grant struct {
	Kind      string           `json:"kind"`
	Name      string           `json:"binding"`
	Namespace string           `json:"namespace,omitempty"`
	Role      string           `json:"role"` // "ClusterRole/view"
	Subjects  []rbacv1.Subject `json:"-"`
	object    metav1.Object
}

// grants returns all bindings.
func grants(ctx context.Context, client kubernetes.Interface) ([]grant, error) {
	cluster, err := client.RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	spaced, err := client.RbacV1().RoleBindings("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var all []grant
	for i := range cluster.Items {
		b := &cluster.Items[i]
		all = append(all, grant{"ClusterRoleBinding", b.Name, "", roleOf(b.RoleRef), b.Subjects, b})
	}
	for i := range spaced.Items {
		b := &spaced.Items[i]
		all = append(all, grant{"RoleBinding", b.Name, b.Namespace, roleOf(b.RoleRef), b.Subjects, b})
	}
	return all, nil
}

// without returns the subjects without the user.
func without(subjects []rbacv1.Subject, user string) []rbacv1.Subject {
	return slices.DeleteFunc(slices.Clone(subjects), func(s rbacv1.Subject) bool {
		return s.Kind == rbacv1.UserKind && s.Name == user
	})
}
