// Package manual writes the help of the command tree as files: pages for man(1), scripts that complete command lines,
// and a reference in Markdown. Packages and the documentation include them, so no text is maintained twice.
package manual

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/files"
)

// Command returns the hidden "bowsprit manual", which packages are made with.
func Command() *cobra.Command {
	return &cobra.Command{
		Use:     "manual DIRECTORY",
		Short:   "Write manual pages, completion scripts and the reference of all commands",
		Example: "  bowsprit manual /tmp/manual",
		Hidden:  true,
		Args:    arguments.One("directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return Write(cmd.Root(), args[0])
		},
	}
}

// Write makes the files below a directory: man1/*.1, completion/{bowsprit,_bowsprit,bowsprit.fish,bowsprit.ps1} and
// commands.md. They depend on the tree alone.
func Write(root *cobra.Command, dir string) error {
	written := map[string][]byte{"commands.md": []byte(Markdown(root))}
	for _, cmd := range Tree(root) {
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
		written["man1/"+name+".1"] = []byte(page(cmd))
	}
	for name, generate := range map[string]func(*bytes.Buffer) error{
		"bowsprit":      func(b *bytes.Buffer) error { return root.GenBashCompletionV2(b, true) },
		"_bowsprit":     func(b *bytes.Buffer) error { return root.GenZshCompletion(b) },
		"bowsprit.fish": func(b *bytes.Buffer) error { return root.GenFishCompletion(b, true) },
		"bowsprit.ps1":  func(b *bytes.Buffer) error { return root.GenPowerShellCompletionWithDesc(b) },
	} {
		var b bytes.Buffer
		if err := generate(&b); err != nil {
			return fmt.Errorf("completion %s: %w", name, err)
		}
		written["completion/"+name] = b.Bytes()
	}
	to, err := files.OpenDir(dir)
	if err != nil {
		return err
	}
	defer to.Close()
	for name, data := range written {
		if err := to.Write(name, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Tree returns a command and all below it that help lists, in its order.
func Tree(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, below := range cmd.Commands() {
		if below.IsAvailableCommand() && below.Name() != "help" && below.Name() != "completion" {
			all = append(all, Tree(below)...)
		}
	}
	return all
}

// Long returns the long description of a command, or else its short one.
func Long(cmd *cobra.Command) string {
	if cmd.Long != "" {
		return cmd.Long
	}
	return cmd.Short + "."
}
