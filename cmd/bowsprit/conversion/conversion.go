// Package conversion implements "bowsprit convert", which tries and serves declared conversions without a server.
package conversion

import (
	"github.com/spf13/cobra"
)

// Command returns "bowsprit convert".
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "convert",
		Short: "Try the conversion rules of definitions in files, and serve them to other clusters",
	}
	cmd.AddCommand(testCommand(), serveCommand())
	return cmd
}
