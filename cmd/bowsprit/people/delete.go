package people

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/output"
)

func deleteCommand() *cobra.Command {
	var (
		server connect.Flags
		form   output.Form
	)
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Remove a user from all bindings",
		Long: `Remove a user from all bindings, and delete bindings without other subjects. Certificates cannot be revoked: until the
user's certificate expires, the user keeps the permissions of its groups. The command prints a reminder.`,
		Example: `  bowsprit user delete alice`,
		Args:    arguments.One("name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			audience := connect.ForPeople
			if form.ForPrograms() {
				audience = connect.CarriesData
			}
			to, err := server.Write(cmd, audience)
			if err != nil {
				return err
			}
			client, err := to.Clientset()
			if err != nil {
				return err
			}
			result, failure := remove(cmd.Context(), client, args[0])
			if result == nil {
				return failure
			}
			return errors.Join(form.Print(cmd.OutOrStdout(), result, result.print), failure)
		},
	}
	form.Bind(cmd.Flags())
	server.Bind(cmd.Flags())
	return cmd
}

// removal is the result of "bowsprit user delete".
type removal struct {
	User     string           `json:"user"`
	Bindings []changedBinding `json:"bindings"`
	// Certificates is true: the user's certificates stay valid until they expire.
	Certificates bool `json:"certificatesStayValid"`
	complete     bool // no binding names the user any more
}

// changedBinding is a binding that named the user.
type changedBinding struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Deleted   bool   `json:"deleted"` // it had no other subject
}

func (r *removal) print(out io.Writer) error {
	for _, b := range r.Bindings {
		did := "the user was removed"
		if b.Deleted {
			did = "deleted"
		}
		fmt.Fprintf(out, "%s %s: %s.\n", b.Kind, b.Name, did)
	}
	if !r.complete {
		return nil
	}
	_, err := fmt.Fprintf(out,
		"No binding names %s any more. The user's certificates, with their groups, stay valid until they expire.\n", r.User)
	return err
}

// remove takes the user out of each binding. A binding that cannot be changed does not keep it from the others. The
// result is nil if nothing was changed.
func remove(ctx context.Context, client kubernetes.Interface, user string) (*removal, error) {
	bindings, err := grants(ctx, client)
	if err != nil {
		return nil, err
	}
	result := &removal{User: user, Certificates: true}
	var failures []error
	for _, b := range bindings {
		left := without(b.Subjects, user)
		if len(left) == len(b.Subjects) {
			continue
		}
		err := change(ctx, client, b, left)
		if err != nil && !apierrors.IsNotFound(err) {
			failures = append(failures, fmt.Errorf("%s %s: %w", b.Kind, b.Name, err))
			continue
		}
		result.Bindings = append(result.Bindings, changedBinding{b.Kind, b.Namespace, b.Name, len(left) == 0})
	}
	if len(result.Bindings) == 0 {
		if len(failures) == 0 {
			err = fmt.Errorf("no binding names the user %q: \"bowsprit user list\" lists the users", user)
		}
		return nil, errors.Join(append(failures, err)...)
	}
	result.complete = len(failures) == 0
	return result, errors.Join(failures...)
}

// change writes a binding with other subjects, or deletes it if none are left. It sends the resourceVersion of the
// list, so that it does not undo changes of another client.
func change(ctx context.Context, client kubernetes.Interface, b grant, left []rbacv1.Subject) (err error) {
	uid := b.object.GetUID()
	version := b.object.GetResourceVersion()
	gone := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}}
	switch object := b.object.(type) {
	case *rbacv1.ClusterRoleBinding:
		if len(left) == 0 {
			return client.RbacV1().ClusterRoleBindings().Delete(ctx, b.Name, gone)
		}
		object.Subjects = left
		_, err = client.RbacV1().ClusterRoleBindings().Update(ctx, object, metav1.UpdateOptions{})
	case *rbacv1.RoleBinding:
		if len(left) == 0 {
			return client.RbacV1().RoleBindings(b.Namespace).Delete(ctx, b.Name, gone)
		}
		object.Subjects = left
		_, err = client.RbacV1().RoleBindings(b.Namespace).Update(ctx, object, metav1.UpdateOptions{})
	}
	return err
}
