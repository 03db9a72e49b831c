package manual

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/help"
)

// Markdown is a page about all commands and all their flags.
func Markdown(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString("# Commands and flags\n\nGenerated from the help of each command.\n")
	for _, cmd := range Tree(root) {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n```\n%s\n```\n", cmd.CommandPath(), escape(Long(cmd)), cmd.UseLine())
		if cmd.Example != "" {
			fmt.Fprintf(&b, "\nFor example:\n\n```\n%s\n```\n", cmd.Example)
		}
		for _, s := range help.Sections(cmd.LocalFlags()) {
			rows := flagRows(s.Flags)
			if len(rows) == 0 {
				continue
			}
			if s.Title != "" {
				fmt.Fprintf(&b, "\n### %s\n", s.Title)
			}
			fmt.Fprintf(&b, "\n| flag | description |\n|---|---|\n%s\n", strings.Join(rows, "\n"))
		}
	}
	return b.String()
}

func flagRows(flags *pflag.FlagSet) (rows []string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		head, usage := describe(f)
		usage = strings.Join(strings.Fields(usage), " ")
		rows = append(rows, fmt.Sprintf("| `%s` | %s |", head, strings.ReplaceAll(escape(usage), "|", `\|`)))
	})
	return rows
}

// escape escapes the characters that Markdown interprets.
func escape(text string) string {
	return strings.NewReplacer("<", `\<`, "*", `\*`, "_", `\_`).Replace(text)
}
