package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
)

// everyCommand returns all commands, including hidden commands and commands of cobra.
func everyCommand(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, below := range cmd.Commands() {
		all = append(all, everyCommand(below)...)
	}
	return all
}

// TestUnknownCommands checks that every group of commands refuses a command that it does not have, and help as well.
func TestUnknownCommands(t *testing.T) {
	t.Parallel()
	root := rootCommand()
	groups := 0
	for _, cmd := range everyCommand(root) {
		if !cmd.HasSubCommands() {
			continue
		}
		groups++
		below := cmd.Commands()[0].Name()
		for _, args := range [][]string{{"xyzzy"}, {below + "x"}} {
			err := cmd.ValidateArgs(args)
			if text := fmt.Sprint(err); exit.Of(err) != exit.Misuse || !strings.Contains(text, below) ||
				!strings.Contains(text, `unknown command "`+args[0]+`"`) {
				t.Errorf("%s %q: %v", cmd.CommandPath(), args, err)
			}
			path := append(strings.Fields(cmd.CommandPath())[1:], args...)
			if err := runIn(t, append([]string{"help"}, path...)...); exit.Of(err) != exit.Misuse {
				t.Errorf("help %q: %v", path, err)
			}
			if err := runIn(t, path...); exit.Of(err) != exit.Misuse {
				t.Errorf("%q: %v", path, err)
			}
		}
	}
	if groups < 7 {
		t.Errorf("only %d groups of commands", groups)
	}
	for _, path := range [][]string{nil, {"serve"}, {"crd", "lint"}} {
		if err := runIn(t, append([]string{"help"}, path...)...); err != nil {
			t.Errorf("help %q: %v", path, err)
		}
	}
	if err := runIn(t, "help", "serve", "now"); exit.Of(err) != exit.Misuse {
		t.Errorf("help about an argument: %v", err)
	}
}

// runIn runs a command line in this process, without its output.
func runIn(t *testing.T, args ...string) error {
	t.Helper()
	root := rootCommand()
	root.SetArgs(args)
	var out strings.Builder
	root.SetOut(&out)
	root.SetErr(&out)
	return root.ExecuteContext(t.Context())
}

// TestOutcomes checks that the help of each command has its exit codes, and that the table names existing commands.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	root := rootCommand()
	found := map[string]bool{}
	for _, cmd := range everyCommand(root) {
		path := pathBelow(root, cmd)
		found[path] = true
		if cmd.HasSubCommands() || cmd.Hidden || strings.HasPrefix(path, "completion") || path == "help" {
			continue
		}
		if n := strings.Count(cmd.Long, "exit code"); n != 1 {
			t.Errorf("the help of %q describes its exit codes %d times", path, n)
		}
	}
	for path := range maps.Keys(outcomes) {
		if !found[path] {
			t.Errorf("there is no command %q", path)
		}
	}
	for path, want := range map[string][]string{
		"why-denied": {"0 if the request is allowed", "2 if the command line is wrong", "3 if the request is denied"},
		"version":    {"0 if the command succeeded, 1 if the command failed, and 2 if"},
		"kubectl":    {"the exit codes of kubectl"},
	} {
		text := outcomes[path].String()
		if slices.ContainsFunc(want, func(part string) bool { return !strings.Contains(text, part) }) {
			t.Errorf("%s: %s", path, text)
		}
	}
	for line := range strings.Lines(wrap(strings.Repeat("word ", 50), 20)) {
		if len(strings.TrimSpace(line)) > 20 || strings.TrimSpace(line) == "" {
			t.Errorf("a wrapped line: %q", line)
		}
	}
}
