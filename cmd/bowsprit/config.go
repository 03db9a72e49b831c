package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
)

func configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print or check the settings of a server",
		Long: `Print or check the settings that "bowsprit serve" would use. They come from flags, from environment variables
(` + variableOf("secure-port") + ` for --secure-port) and from the file that --config or ` + variableOf(configFlag) + ` names, in this order.`,
	}
	cmd.AddCommand(configPrintCommand(), configCheckCommand())
	return cmd
}

func configPrintCommand() *cobra.Command {
	var all bool
	var config bowsprit.Config
	var flags serveFlags
	cmd := &cobra.Command{
		Use:   "print [flags of serve]",
		Short: "Print the settings as a file for --config, with the source of each",
		Example: `  bowsprit config print --secure-port=7443 > bowsprit.yaml   # then: bowsprit serve --config bowsprit.yaml
  bowsprit config print --all                                # every setting, with its default`,
		Args: arguments.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := flags.sources.apply(cmd.Flags(), os.Environ()); err != nil {
				return err
			}
			return printSettings(cmd.OutOrStdout(), cmd.Flags(), flags.sources.from, all)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "include settings that have their default, as comments")
	bindFlags(cmd.Flags(), &config, &flags)
	return cmd
}

func configCheckCommand() *cobra.Command {
	var config bowsprit.Config
	var flags serveFlags
	cmd := &cobra.Command{
		Use:     "check [flags of serve]",
		Short:   "Report errors in the settings, without starting a server",
		Example: `  bowsprit config check --config /etc/bowsprit/bowsprit.yaml`,
		Args:    arguments.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := flags.prepare(&config, cmd.Flags()); err != nil {
				return err
			}
			for _, text := range flags.sources.strange {
				fmt.Fprintln(cmd.ErrOrStderr(), "Warning:", text)
			}
			if err := config.Validate(); err != nil {
				return err
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "The settings are valid.")
			return err
		},
	}
	bindFlags(cmd.Flags(), &config, &flags)
	return cmd
}

// printSettings prints settings as a file for --config. Settings from the environment or a file name their source.
func printSettings(out io.Writer, f *pflag.FlagSet, from map[string]string, all bool) error {
	var b strings.Builder
	var failures []error
	f.VisitAll(func(flag *pflag.Flag) {
		switch flag.Name {
		case "all", "help", configFlag:
			return
		}
		if !all && !flag.Changed {
			return
		}
		text, err := yaml.Marshal(map[string]any{flag.Name: valueOf(f, flag)})
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", flag.Name, err))
			return
		}
		if all {
			fmt.Fprintf(&b, "# %s\n", strings.ReplaceAll(flag.Usage, "\n", "\n# "))
		}
		switch source := from[flag.Name]; {
		case source != "":
			fmt.Fprintf(&b, "# from %s\n", source)
		case flag.Changed:
			fmt.Fprintf(&b, "# from the command line\n")
		default:
			text = []byte("# " + strings.ReplaceAll(strings.TrimSuffix(string(text), "\n"), "\n", "\n# ") + "\n")
		}
		b.Write(text)
	})
	if err := errors.Join(failures...); err != nil {
		return err
	}
	if b.Len() == 0 {
		b.WriteString("# Every setting has its default.\n{}\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// valueOf returns the value of a flag in a form that the file may have.
func valueOf(f *pflag.FlagSet, flag *pflag.Flag) any {
	if several, ok := flag.Value.(pflag.SliceValue); ok {
		return several.GetSlice()
	}
	if several, ok := flag.Value.(*pairs); ok {
		return map[string]string(*several)
	}
	text := flag.Value.String()
	switch flag.Value.Type() {
	case "bool":
		return text == "true"
	case "int", "int64", "uint", "float32":
		var number any
		if yaml.Unmarshal([]byte(text), &number) == nil {
			return number
		}
	case "stringToString":
		if pairs, err := f.GetStringToString(flag.Name); err == nil {
			return pairs
		}
	}
	return text
}
