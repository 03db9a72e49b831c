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
)

func deleteCommand() *cobra.Command {
	var server connect.Flags
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Remove a user from all bindings",
		Long: `Remove a user from all bindings, and delete bindings without other subjects. Certificates cannot be revoked: until the
user's certificate expires, the user keeps the permissions of its groups. The command prints a reminder.`,
		Example: `  bowsprit user delete alice`,
		Args:    arguments.One("name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			to, err := server.Write(cmd, connect.ForPeople)
			if err != nil {
				return err
			}
			client, err := to.Clientset()
			if err != nil {
				return err
			}
			return remove(cmd.Context(), client, args[0], cmd.OutOrStdout())
		},
	}
	server.Bind(cmd.Flags())
	return cmd
}

// remove takes the user out of each binding. A binding that cannot be changed does not keep it from the others.
func remove(ctx context.Context, client kubernetes.Interface, user string, out io.Writer) error {
	bindings, err := grants(ctx, client)
	if err != nil {
		return err
	}
	var failures []error
	changed := 0
	for _, b := range bindings {
		left := without(b.Subjects, user)
		if len(left) == len(b.Subjects) {
			continue
		}
		did, err := change(ctx, client, b, left)
		if err != nil && !apierrors.IsNotFound(err) {
			failures = append(failures, fmt.Errorf("%s %s: %w", b.Kind, b.Name, err))
			continue
		}
		changed++
		fmt.Fprintf(out, "%s %s: %s.\n", b.Kind, b.Name, did)
	}
	switch {
	case len(failures) > 0:
		return errors.Join(failures...)
	case changed == 0:
		return fmt.Errorf("no binding names the user %q: \"bowsprit user list\" lists the users", user)
	}
	_, err = fmt.Fprintf(out, "No binding names %s any more. The user's certificates, with their groups, stay valid until they expire.\n",
		user)
	return err
}

// change writes a binding with other subjects, or deletes it if none are left. It sends the resourceVersion of the
// list, so that it does not undo changes of another client.
func change(ctx context.Context, client kubernetes.Interface, b grant, left []rbacv1.Subject) (did string, err error) {
	uid := b.object.GetUID()
	version := b.object.GetResourceVersion()
	gone := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}}
	switch object := b.object.(type) {
	case *rbacv1.ClusterRoleBinding:
		if len(left) == 0 {
			return "deleted", client.RbacV1().ClusterRoleBindings().Delete(ctx, b.Name, gone)
		}
		object.Subjects = left
		_, err = client.RbacV1().ClusterRoleBindings().Update(ctx, object, metav1.UpdateOptions{})
	case *rbacv1.RoleBinding:
		if len(left) == 0 {
			return "deleted", client.RbacV1().RoleBindings(b.Namespace).Delete(ctx, b.Name, gone)
		}
		object.Subjects = left
		_, err = client.RbacV1().RoleBindings(b.Namespace).Update(ctx, object, metav1.UpdateOptions{})
	}
	return "the user was removed", err
}
