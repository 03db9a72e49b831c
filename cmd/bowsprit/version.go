package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version and the Kubernetes version of the API",
		Args:  arguments.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), versionLine())
			return err
		},
	}
}

func versionLine() string {
	v := bowsprit.Version()
	return fmt.Sprintf("bowsprit %s, API of Kubernetes v%s, %s, %s\n", v.Bowsprit, v.Kubernetes, v.Go, v.Platform)
}
