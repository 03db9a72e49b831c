// Package tokens implements "bowsprit token", which creates, lists and deletes bootstrap tokens for joining nodes.
package tokens

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/kubernetes"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/output"
	"github.com/bowsprit/bowsprit/internal/auth/token"
)

// Command returns "bowsprit token".
func Command() *cobra.Command {
	var server connect.Flags
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Create, list and delete bootstrap tokens for joining nodes",
		Long: `Create, list and delete bootstrap tokens. With a token, a node verifies the server's certificate authority (the token signs
the ConfigMap cluster-info) and requests its own certificate, which is issued if the token has the default group.

A token has the form ID.SECRET. It is stored in the secret kube-system/bootstrap-token-ID, and deleted when it expires.`,
	}
	server.Bind(cmd.PersistentFlags())
	cmd.AddCommand(createCommand(&server), listCommand(&server), deleteCommand(&server),
		generateCommand())
	return cmd
}

// row is a bootstrap token in the results of "token list" and "token create".
type row struct {
	Token string `json:"token"`
	ID    string `json:"id"`
	// Expires is missing if the token is valid for ever.
	Expires     *time.Time `json:"expires,omitempty"`
	Usages      []string   `json:"usages"`
	Groups      []string   `json:"groups"`
	Description string     `json:"description,omitempty"`
}

func rowOf(t token.BootstrapToken) row {
	row := row{
		Token: t.String(), ID: t.ID, Usages: append([]string{}, t.Usages...), Groups: append([]string{}, t.Groups...),
		Description: t.Description,
	}
	if !t.Expires.IsZero() {
		at := t.Expires.UTC().Truncate(time.Second) // as the secret stores it
		row.Expires = &at
	}
	return row
}

func listCommand(server *connect.Flags) *cobra.Command {
	var form output.Form
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the bootstrap tokens, including their secrets",
		Args:  arguments.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			from, err := server.Read(cmd)
			if err != nil {
				return err
			}
			client, err := from.Clientset()
			if err != nil {
				return err
			}
			to := output.Streams{Out: cmd.OutOrStdout(), Notes: cmd.ErrOrStderr(), Form: form}
			return list(cmd.Context(), client, to)
		},
	}
	form.Bind(cmd.Flags())
	return cmd
}

func list(ctx context.Context, client kubernetes.Interface, to output.Streams) error {
	secrets, err := client.CoreV1().Secrets(metav1.NamespaceSystem).List(ctx,
		metav1.ListOptions{FieldSelector: "type=" + string(token.BootstrapType)})
	if err != nil {
		return fmt.Errorf("list the tokens: %w", err)
	}
	rows := []row{}
	for i := range secrets.Items {
		t, err := token.BootstrapOf(&secrets.Items[i])
		if err != nil {
			fmt.Fprintln(to.Notes, err)
			continue
		}
		rows = append(rows, rowOf(t))
	}
	return to.Form.Print(to.Out, rows, func(out io.Writer) error { return table(out, rows) })
}

// table prints the tokens in the columns of kubeadm.
func table(out io.Writer, rows []row) error {
	table := tabwriter.NewWriter(out, 10, 4, 3, ' ', 0)
	fmt.Fprintln(table, "TOKEN\tTTL\tEXPIRES\tUSAGES\tDESCRIPTION\tEXTRA GROUPS")
	for _, t := range rows {
		left, expires := "<forever>", "<never>"
		if t.Expires != nil {
			left = duration.ShortHumanDuration(time.Until(*t.Expires))
			expires = t.Expires.Format(time.RFC3339)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", t.Token, left, expires,
			cmp.Or(strings.Join(t.Usages, ","), "<none>"), cmp.Or(t.Description, "<none>"),
			cmp.Or(strings.Join(t.Groups, ","), "<none>"))
	}
	return table.Flush()
}

func deleteCommand(server *connect.Flags) *cobra.Command {
	return &cobra.Command{
		Use:     "delete TOKEN...",
		Short:   "Delete bootstrap tokens by token or ID",
		Example: "  bowsprit token delete abcdef",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("missing argument: name a token, of the form %q, or its ID, of the form %q",
					token.BootstrapPattern, token.BootstrapIDPattern)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ids := make([]string, len(args))
			for i, arg := range args {
				id, err := token.ParseBootstrapID(arg)
				if err != nil {
					return exit.Usage(err)
				}
				ids[i] = id
			}
			to, err := server.Write(cmd, connect.ForPeople)
			if err != nil {
				return err
			}
			client, err := to.Clientset()
			if err != nil {
				return err
			}
			for _, id := range ids {
				err := client.CoreV1().Secrets(metav1.NamespaceSystem).Delete(cmd.Context(),
					token.BootstrapNamePrefix+id, metav1.DeleteOptions{})
				if err != nil {
					return fmt.Errorf("failed to delete bootstrap token %q: %w", id, err)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "bootstrap token %q deleted\n", id)
			}
			return nil
		},
	}
}

func generateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "generate",
		Short: "Print a new bootstrap token, without adding it to a server",
		Args:  arguments.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), token.GenerateBootstrap())
			return err
		},
	}
}
