package help

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// annotation is the key of a flag's group.
const annotation = "bowsprit.dev/group"

// common are the most used flags of "bowsprit serve". They stand before the groups.
var common = []string{
	"data-dir", "ephemeral", "config", "bind-address", "secure-port", "write-kubeconfig", "simulate", "tls-cert-file",
	"tls-private-key-file", "v",
}

// Put puts a flag into a group of its command's help.
func Put(f *pflag.FlagSet, flag, group string) {
	if group != "" {
		_ = f.SetAnnotation(flag, annotation, []string{group}) // fails only for an unknown flag
	}
}

// Section is a group of flags. Title is empty if the command's flags have no groups.
type Section struct {
	Title string
	Flags *pflag.FlagSet
}

// Sections divides flags into groups, in the order of their first flags. The common flags are the first group. The
// flags without a group are the last.
func Sections(flags *pflag.FlagSet) []Section {
	var all []Section
	of := map[string]*pflag.FlagSet{}
	add := func(title string, flag *pflag.Flag) {
		if of[title] == nil {
			of[title] = pflag.NewFlagSet("", pflag.ContinueOnError)
			of[title].SortFlags = flags.SortFlags
			all = append(all, Section{title, of[title]})
		}
		of[title].AddFlag(flag)
	}
	if !grouped(flags) {
		flags.VisitAll(func(flag *pflag.Flag) { add("", flag) })
		return all
	}
	for _, name := range common {
		if flag := flags.Lookup(name); flag != nil {
			add("Common", flag)
		}
	}
	var others []*pflag.Flag
	flags.VisitAll(func(flag *pflag.Flag) {
		switch group := flag.Annotations[annotation]; {
		case slices.Contains(common, flag.Name):
		case len(group) == 0:
			others = append(others, flag)
		default:
			add(group[0], flag)
		}
	})
	for _, flag := range others {
		add("Other", flag)
	}
	return all
}

// grouped reports whether some of the flags have groups.
func grouped(flags *pflag.FlagSet) (found bool) {
	flags.VisitAll(func(flag *pflag.Flag) { found = found || len(flag.Annotations[annotation]) > 0 })
	return found
}

// Usage returns a function for the usage of commands, with the flags in groups. plain is the function for commands with
// flags that have no groups.
func Usage(plain func(*cobra.Command) error) func(*cobra.Command) error {
	return func(cmd *cobra.Command) error {
		flags := cmd.LocalFlags()
		if !grouped(flags) {
			return plain(cmd)
		}
		var b strings.Builder
		fmt.Fprintf(&b, "Usage:\n  %s\n", cmd.UseLine())
		if cmd.HasExample() {
			fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
		}
		for _, s := range Sections(flags) {
			fmt.Fprintf(&b, "\n%s:\n%s", s.Title, s.Flags.FlagUsages())
		}
		_, err := fmt.Fprint(cmd.OutOrStderr(), b.String())
		return err
	}
}
