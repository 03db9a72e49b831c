// Package arguments refuses unexpected arguments of a command. Its errors name the expected ones.
package arguments

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
)

// Complete completes the arguments of a command and of all commands below it. Errors about arguments get the exit code
// of a wrong command line. A command that only groups others prints its help, and refuses unknown commands, because
// cobra accepts them.
func Complete(cmd *cobra.Command) {
	if cmd.HasSubCommands() && !cmd.Runnable() {
		cmd.Args = None
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error { return exit.Usage(check(cmd, args)) }
	}
	for _, below := range cmd.Commands() {
		Complete(below)
	}
}

// Command requires the names of an existing command, as after "help".
func Command(cmd *cobra.Command, args []string) error {
	found, rest, err := cmd.Root().Find(args)
	switch {
	case err != nil:
		return err
	case len(rest) > 0 && !found.HasAvailableSubCommands():
		return fmt.Errorf("%q has no commands, but got %q: see %q", found.CommandPath(), rest[0], help(found))
	}
	return None(found, rest)
}

// Known refuses an unknown command beside flags. cobra answers --help with the help of the command above, and reports
// other flags, which the command above does not have, instead of the command.
func Known(root *cobra.Command, args []string) error {
	found, rest, err := root.Find(args)
	if err != nil || !found.HasAvailableSubCommands() {
		return nil // the command itself refuses its arguments
	}
	if len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return exit.Usage(None(found, rest))
	}
	words, helps := []string(nil), false
	for i := 0; i < len(rest) && rest[i] != "--"; i++ {
		name, _, assigned := strings.Cut(strings.TrimLeft(rest[i], "-"), "=")
		switch flag := found.Flag(name); {
		case rest[i] == "--help" || rest[i] == "-h":
			helps = true
		case !strings.HasPrefix(rest[i], "-"):
			words = append(words, rest[i])
		case flag != nil && flag.NoOptDefVal == "" && !assigned:
			i++ // its value
		}
	}
	if !helps {
		return nil
	}
	return exit.Usage(None(found, words))
}

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

// Two requires two arguments. Their names in errors are nouns: "an old and a new file".
func Two(nouns string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 2 {
			return nil
		}
		return fmt.Errorf("%q takes %s, but got %d arguments: see %q", cmd.CommandPath(), nouns, len(args), help(cmd))
	}
}

// Several requires at least one argument. Its name in errors is noun.
func Several(noun string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return nil
		}
		return fmt.Errorf("%q takes at least one %s: see %q", cmd.CommandPath(), noun, help(cmd))
	}
}

// AtMostOne allows no argument or a single one. Its name in errors is noun.
func AtMostOne(noun string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return One(noun)(cmd, args)
	}
}

// Printable refuses control characters in arguments. A flag with a list drops everything after a line break. Elsewhere
// a line break or an escape sequence changes the meaning of a file, a header or a terminal.
func Printable(args []string) error {
	for _, arg := range args {
		if strings.ContainsFunc(arg, unicode.IsControl) {
			return exit.Usage(fmt.Errorf("%q contains a control character, such as a line break, which arguments and flags must not", arg))
		}
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
