package assistant

import (
	"context"
	"errors"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
)

// MaxRequest bounds a message of the client, in bytes: the manifests of a plan, quoted in JSON.
const MaxRequest = 4 * maxManifests

// Command returns "bowsprit mcp". version is the version of the program.
func Command(version string) *cobra.Command {
	var server connect.Flags
	options := Options{Version: version}
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Give an assistant tools for a server, in the Model Context Protocol",
		Long: `Give an assistant tools for a Kubernetes server. An assistant starts this command and uses its standard input and output in
the Model Context Protocol. The tools read with the permissions of the kubeconfig's user: lists as tables, objects as YAML,
events, explanations of kinds, of refusals and of deletions that take long. The assistant cannot choose another server.

Without flags the tools change nothing. With --allow-apply the assistant can execute a plan, which shows its changes first.
The values of Secrets and sensitive fields are masked. Text of objects is marked as data, but an assistant may still follow
instructions in it: give it a user with the permissions that it needs.`,
		Example: `  bowsprit mcp --context=dev
  claude mcp add dev -- bowsprit mcp --context=dev
  bowsprit mcp --name=test --allow-apply`,
		Args: arguments.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if options.AllowDelete && !options.AllowApply {
				return exit.Usage(errors.New("--allow-delete needs --allow-apply: give both"))
			}
			chosen, err := choose(cmd, &server, options.AllowApply)
			if err != nil {
				return err
			}
			if err := connect.CheckAnswers(cmd.Context(), chosen.Config); err != nil {
				return err
			}
			tools, err := New(chosen, options)
			if err != nil {
				return err
			}
			return tools.serve(cmd)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&options.AllowApply, "allow-apply", false, "the assistant can execute plans, which create and change objects")
	f.BoolVar(&options.AllowDelete, "allow-delete", false, "with --allow-apply: it can also execute plans that delete objects")
	f.BoolVar(&options.ShowSecrets, "show-secrets", false, "show the values of Secrets and of sensitive fields")
	server.Bind(f)
	return cmd
}

// choose returns the server. Standard output carries the protocol.
func choose(cmd *cobra.Command, server *connect.Flags, write bool) (*connect.Server, error) {
	if write {
		return server.Write(cmd, connect.CarriesData)
	}
	return server.Read(cmd)
}

// serve serves the tools on standard input and output, until the input or the context ends.
func (t *Tools) serve(cmd *cobra.Command) error {
	err := t.Server().Run(cmd.Context(), &mcp.StdioTransport{MaxLineLength: MaxRequest})
	if errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
