package arguments_test

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
)

func TestArguments(t *testing.T) {
	run := func(*cobra.Command, []string) {}
	root := &cobra.Command{Use: "ship", Args: arguments.None, Run: run}
	root.AddCommand(&cobra.Command{Use: "sail", Args: arguments.None, Run: run},
		&cobra.Command{Use: "save FILE", Args: arguments.One("file"), Run: run},
		&cobra.Command{Use: "compare A B", Args: arguments.Two("two files"), Run: run})
	compare, sail, save := root.Commands()[0], root.Commands()[1], root.Commands()[2]
	for _, c := range []struct {
		cmd  *cobra.Command
		args []string
		want string
	}{
		{root, nil, ""},
		{root, []string{"sial"}, `unknown command "sial" for "ship": did you mean sail? See "ship --help"`},
		{root, []string{"sai"}, `unknown command "sai" for "ship": did you mean sail? See "ship --help"`},
		{root, []string{"zzzzzz"}, `unknown command "zzzzzz" for "ship": there are compare, sail, save; see "ship --help"`},
		{sail, nil, ""},
		{sail, []string{"now"}, `"ship sail" takes no arguments, but got "now": see "ship sail --help"`},
		{save, []string{"a"}, ""},
		{compare, []string{"a", "b"}, ""},
		{compare, []string{"a"}, `"ship compare" takes two files, but got 1 arguments: see "ship compare --help"`},
		{save, nil, `"ship save" takes one file, but got 0 arguments: see "ship save --help"`},
		{save, []string{"a", "b"}, `"ship save" takes one file, but got 2 arguments: see "ship save --help"`},
	} {
		got := ""
		if err := c.cmd.Args(c.cmd, c.args); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s %q: %s\nwant %s", c.cmd.Name(), c.args, got, c.want)
		}
	}
}

// TestPrintable checks that control characters are refused in every position, and text in every script is accepted.
func TestPrintable(t *testing.T) {
	for r := rune(0); r < 0x300; r++ {
		err := arguments.Printable([]string{"--group", "a" + string(r) + "b"})
		if refused := r < 0x20 || r >= 0x7f && r < 0xa0; (err != nil) != refused {
			t.Errorf("%U: %v", r, err)
		}
	}
	for _, text := range []string{"", "größe", "日本", "a,b", `"a`, "/tmp/a b"} {
		if err := arguments.Printable([]string{text}); err != nil {
			t.Error(err)
		}
	}
}
