package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/output"
)

// versions is the result of "bowsprit version".
type versions struct {
	Bowsprit   string `json:"bowsprit"`
	Kubernetes string `json:"kubernetes"` // the version of the API, such as "1.36.3"
	Go         string `json:"go"`
	Platform   string `json:"platform"`
}

func versionCommand() *cobra.Command {
	var form output.Form
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version and the Kubernetes version of the API",
		Args:  arguments.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return form.Print(cmd.OutOrStdout(), versions(bowsprit.Version()), func(out io.Writer) error {
				_, err := fmt.Fprint(out, versionLine())
				return err
			})
		},
	}
	form.Bind(cmd.Flags())
	return cmd
}

func versionLine() string {
	v := bowsprit.Version()
	return fmt.Sprintf("bowsprit %s, API of Kubernetes v%s, %s, %s\n", v.Bowsprit, v.Kubernetes, v.Go, v.Platform)
}
