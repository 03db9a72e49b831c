package main

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/help"
)

// TestCommandGroups checks that each command of the root is in a group of its help, and none is left over.
func TestCommandGroups(t *testing.T) {
	t.Parallel()
	root := rootCommand()
	for _, cmd := range root.Commands() {
		if !cmd.Hidden && (cmd.GroupID == "" || !root.ContainsGroup(cmd.GroupID)) {
			t.Errorf("%q is in no group: add it to help.groups", cmd.Name())
		}
	}
	out, err := command(t, "--help").Output()
	if err != nil || strings.Contains(string(out), "Additional Commands") ||
		!strings.Contains(string(out), "Find causes:\n") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestFlagGroups checks that the help of commands with the settings of a server has each flag once, the ten common ones
// first, and the settings in groups.
func TestFlagGroups(t *testing.T) {
	t.Parallel()
	root := rootCommand()
	for path, first := range map[string]string{
		"serve": "data-dir", "doctor": "data-dir", "kube-apiserver": "bind-address",
	} {
		cmd, _, err := root.Find(strings.Fields(path))
		if err != nil {
			t.Fatal(err)
		}
		usage := cmd.UsageString()
		sections := help.Sections(cmd.LocalFlags())
		if len(sections) < 10 || sections[0].Title != "Common" ||
			!strings.Contains(strings.TrimSpace(sections[0].Flags.FlagUsages()), "--"+first) {
			t.Fatalf("%s: %d sections, the first %q", path, len(sections), sections[0].Title)
		}
		seen := map[string]bool{}
		for _, s := range sections {
			if !strings.Contains(usage, "\n"+s.Title+":\n") {
				t.Errorf("%s: the usage has no section %s", path, s.Title)
			}
			s.Flags.VisitAll(func(f *pflag.Flag) {
				if seen[f.Name] {
					t.Errorf("%s: --%s is in two sections", path, f.Name)
				}
				seen[f.Name] = true
			})
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !seen[f.Name] {
				t.Errorf("%s: --%s is in no section", path, f.Name)
			}
		})
		if path == "serve" {
			if common := names(sections[0].Flags); len(common) != 10 {
				t.Errorf("common are %q", common)
			}
			for _, s := range sections {
				if s.Title == "Other" && !slices.Equal(names(s.Flags), []string{"help"}) {
					t.Errorf("in no group are %q", names(s.Flags))
				}
			}
		}
	}
}

// names returns the names of flags, in their order.
func names(flags *pflag.FlagSet) (all []string) {
	flags.VisitAll(func(f *pflag.Flag) { all = append(all, f.Name) })
	return all
}

// TestHelpOfUnknownCommands checks that --help beside an unknown command is an error, and that it is none beside the
// value of a flag.
func TestHelpOfUnknownCommands(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]exit.Code{
		"frob --help": exit.Misuse, "-h frob": exit.Misuse, "crd lnt --help": exit.Misuse,
		"token --name=x frob -h": exit.Misuse, "serve --help": exit.Success,
		"token --data-dir frob --help": exit.Success,
		"token -h -- frob":             exit.Success, "crd lint --help": exit.Success,
	} {
		out, err := command(t, strings.Fields(line)...).CombinedOutput()
		if code := exitCode(t, err); code != want || want != 0 && !strings.Contains(string(out), "unknown command") {
			t.Errorf("%s: %d %s", line, code, out)
		}
	}
}

// exitCode returns the exit code of a command that ended with err.
func exitCode(t *testing.T, err error) exit.Code {
	t.Helper()
	if err == nil {
		return exit.Success
	}
	var ended *exec.ExitError
	if !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return exit.Code(ended.ExitCode())
}
