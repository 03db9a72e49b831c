package people

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/output"
)

// right is the permission of a user or group from one binding.
type right struct {
	Subject     string `json:"subject"` // "User" or "Group"
	SubjectName string `json:"name"`
	grant
}

func listCommand() *cobra.Command {
	var server connect.Flags
	var form output.Form
	var all bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the roles of users and groups",
		Long: `List the users and groups in bindings, with their roles, namespaces and bindings. Kubernetes' own users and groups
(names that begin with "system:") are omitted without --all.`,
		Example: `  bowsprit user list
  bowsprit user list --all -o json`,
		Args: arguments.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			from, err := server.Read(cmd)
			if err != nil {
				return err
			}
			client, err := from.Clientset()
			if err != nil {
				return err
			}
			bindings, err := grants(cmd.Context(), client)
			if err != nil {
				return err
			}
			list := rights(bindings, all)
			return form.Print(cmd.OutOrStdout(), list, func(out io.Writer) error { return show(out, list) })
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&all, "all", "a", false, "show Kubernetes' own users and groups too")
	form.Bind(f)
	server.Bind(f)
	return cmd
}

// rights returns the permissions of each user and group, in the order of their names.
func rights(bindings []grant, all bool) []right {
	list := []right{}
	for _, b := range bindings {
		for _, s := range b.Subjects {
			if s.Kind != rbacv1.UserKind && s.Kind != rbacv1.GroupKind ||
				!all && strings.HasPrefix(s.Name, "system:") || !all && strings.HasPrefix(b.Name, "kubeadm:") {
				continue
			}
			list = append(list, right{s.Kind, s.Name, b})
		}
	}
	slices.SortStableFunc(list, func(a, b right) int {
		return cmp.Or(-cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.SubjectName, b.SubjectName),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Role, b.Role))
	})
	return list
}

func show(out io.Writer, list []right) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(out, "No binding names a user or group.")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "SUBJECT\tNAME\tROLE\tNAMESPACE\tBINDING")
	for _, r := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.Subject, r.SubjectName, r.Role, cmp.Or(r.Namespace, "(all)"), r.Name)
	}
	return w.Flush()
}
