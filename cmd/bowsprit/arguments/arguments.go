// Package arguments refuses unexpected arguments of a command. Its errors name the expected ones.
package arguments

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
)

// None refuses all arguments except flags. On a command with subcommands, an argument is the name of an unknown
// command.
func None(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case cmd.HasAvailableSubCommands():
		return fmt.Errorf("unknown command %q for %q: %s", args[0], cmd.CommandPath(), instead(cmd, args[0]))
	}
	return fmt.Errorf("%q takes no arguments, but got %q: see %q", cmd.CommandPath(), args[0], help(cmd))
}

// One requires a single argument. Its name in errors is noun: "file", "directory".
func One(noun string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			return nil
		}
		return fmt.Errorf("%q takes one %s, but got %d arguments: see %q", cmd.CommandPath(), noun, len(args), help(cmd))
	}
}

// Printable refuses control characters in arguments. A flag with a list drops everything after a line break. Elsewhere
// a line break or an escape sequence changes the meaning of a file, a header or a terminal.
func Printable(args []string) error {
	for _, arg := range args {
		if strings.ContainsFunc(arg, unicode.IsControl) {
			return fmt.Errorf("%q contains a control character, such as a line break, which arguments and flags must not", arg)
		}
	}
	return nil
}

// TextOrJSON refuses values of the flag --output other than "text" and "json".
func TextOrJSON(output string) error {
	if output != "text" && output != "json" {
		return fmt.Errorf("--output %q is unknown: use text or json", output)
	}
	return nil
}

// instead suggests commands below cmd for the wrong name, or lists all of them.
func instead(cmd *cobra.Command, wrong string) string {
	cmd.SuggestionsMinimumDistance = 2
	names := cmd.SuggestionsFor(wrong)
	begins := func(name string) bool { return strings.HasPrefix(name, wrong) }
	if slices.ContainsFunc(names, begins) { // prefer names with this beginning to similar names
		names = slices.DeleteFunc(names, func(name string) bool { return !begins(name) })
	}
	if len(names) > 0 {
		return fmt.Sprintf("did you mean %s? See %q", strings.Join(names, " or "), help(cmd))
	}
	for _, below := range cmd.Commands() {
		if below.IsAvailableCommand() {
			names = append(names, below.Name())
		}
	}
	return fmt.Sprintf("there are %s; see %q", strings.Join(names, ", "), help(cmd))
}

func help(cmd *cobra.Command) string { return cmd.CommandPath() + " --help" }
