package main

import (
	"errors"

	"github.com/spf13/pflag"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/assistant"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/assistant/endpoint"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/help"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/server/config"
)

// assistantFlags are the flags for the tools at /mcp.
type assistantFlags struct {
	serve   bool
	options assistant.Options
}

func (a *assistantFlags) bind(f *pflag.FlagSet) {
	for _, flag := range []struct {
		value      *bool
		name, help string
	}{
		{&a.serve, "mcp", "serve tools for assistants at /mcp, in the Model Context Protocol, with the rights of the caller"},
		{&a.options.AllowApply, "mcp-allow-apply", "with --mcp: the tools can execute plans, which create and change objects"},
		{&a.options.AllowDelete, "mcp-allow-delete", "with --mcp-allow-apply: they can also execute plans that delete objects"},
		{&a.options.ShowSecrets, "mcp-show-secrets", "with --mcp: show the values of Secrets and of sensitive fields"},
	} {
		f.BoolVar(flag.value, flag.name, false, flag.help)
		help.Put(f, flag.name, "HTTP")
	}
}

// extend adds the tools to a server, if the flags demand them.
func (a *assistantFlags) extend(c *bowsprit.Config) error {
	switch {
	case !a.serve && (a.options.AllowApply || a.options.AllowDelete || a.options.ShowSecrets):
		return exit.Usage(errors.New("--mcp-allow-apply, --mcp-allow-delete and --mcp-show-secrets need --mcp: add it"))
	case a.options.AllowDelete && !a.options.AllowApply:
		return exit.Usage(errors.New("--mcp-allow-delete needs --mcp-allow-apply: give both"))
	case !a.serve:
		return nil
	}
	a.options.Version = bowsprit.Version().Bowsprit
	c.Extensions = append(c.Extensions, config.NewExtension(part.Extension{Part: endpoint.Part(a.options)}))
	return nil
}
