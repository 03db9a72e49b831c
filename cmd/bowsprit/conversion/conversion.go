// Package conversion implements "bowsprit convert", which proposes, tries and serves declared conversions without
// a server.
package conversion

import (
	"github.com/spf13/cobra"
)

// Command returns "bowsprit convert".
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "convert",
		Short: "Propose conversion rules, try them on files, and serve them to other clusters",
	}
	cmd.AddCommand(initCommand(), testCommand(), serveCommand())
	return cmd
}
