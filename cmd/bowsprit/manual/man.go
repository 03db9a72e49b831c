package manual

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/help"
)

// page is a command in the macros of man(7).
func page(cmd *cobra.Command) string {
	var b strings.Builder
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	fmt.Fprintf(&b, ".TH %s 1 \"\" Bowsprit \"Bowsprit manual\"\n", roffWord(strings.ToUpper(name)))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(name), roff(cmd.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n%s\n", roff(cmd.UseLine()))
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n", roff(Long(cmd)))
	if cmd.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(cmd.Example))
	}
	if cmd.HasAvailableLocalFlags() {
		b.WriteString(".SH OPTIONS\n")
		for _, s := range help.Sections(cmd.LocalFlags()) {
			if s.Title != "" {
				fmt.Fprintf(&b, ".SS %s\n", roff(s.Title))
			}
			s.Flags.VisitAll(func(f *pflag.Flag) {
				if !f.Hidden {
					head, usage := describe(f)
					fmt.Fprintf(&b, ".TP\n\\fB%s\\fP\n%s\n", roff(head), roff(usage))
				}
			})
		}
	}
	if see := related(cmd); len(see) > 0 {
		fmt.Fprintf(&b, ".SH SEE ALSO\n%s\n", roff(strings.Join(see, ", ")))
	}
	return b.String()
}

// related names the pages above and below a command.
func related(cmd *cobra.Command) (pages []string) {
	if cmd.HasParent() {
		pages = append(pages, strings.ReplaceAll(cmd.Parent().CommandPath(), " ", "-")+"(1)")
	}
	for _, below := range Tree(cmd)[1:] {
		if below.Parent() == cmd {
			pages = append(pages, strings.ReplaceAll(below.CommandPath(), " ", "-")+"(1)")
		}
	}
	return pages
}

// describe returns the notation of a flag, and its meaning with the default.
func describe(f *pflag.Flag) (head, usage string) {
	kind, usage := pflag.UnquoteUsage(f)
	head = "--" + f.Name
	if f.Shorthand != "" {
		head = "-" + f.Shorthand + ", " + head
	}
	if kind != "" {
		head += " " + kind
	}
	switch value := homely(f.DefValue); value {
	case "", "false", "0", "0s", "[]":
	default:
		usage += fmt.Sprintf(" (default %s)", value)
	}
	return head, usage
}

// homely replaces this user's home directory with a general one, because pages are made on another machine.
func homely(value string) string {
	home, err := os.UserHomeDir()
	if err != nil || home == "/" || !strings.HasPrefix(value, home+string(filepath.Separator)) {
		return value
	}
	return "~" + filepath.ToSlash(value[len(home):])
}

// roff escapes the characters that troff interprets.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
		if line == "" {
			lines[i] = ".PP"
		}
	}
	return strings.Join(lines, "\n")
}

// roffWord is an argument of a macro.
func roffWord(text string) string { return `"` + strings.ReplaceAll(roff(text), `"`, `""`) + `"` }
