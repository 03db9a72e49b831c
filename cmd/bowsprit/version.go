package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/bowsprit/bowsprit"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version and the Kubernetes version that is served",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := bowsprit.Version()
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "bowsprit %s, API of Kubernetes v%s, %s, %s\n", v.Bowsprit,
				v.Kubernetes, v.Go, v.Platform)
			return err
		},
	}
}
