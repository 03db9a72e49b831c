package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/manual"
)

var update = flag.Bool("update", false, "write docs/command-errors.md anew")

// errorsPage is the page that TestCommandErrors generates.
var errorsPage = filepath.Join("..", "..", "docs", "command-errors.md")

// TestCommandErrors compares docs/command-errors.md with the commands. With -update it writes the page.
func TestCommandErrors(t *testing.T) {
	t.Parallel()
	got := exitCodesText
	root := rootCommand()
	for _, cmd := range manual.Tree(root) {
		if cmd.HasSubCommands() {
			continue
		}
		path := pathBelow(root, cmd)
		o := outcomes[path]
		if o.others != "" {
			got += fmt.Sprintf("| `%s` | the codes of %s | | |\n", path, o.others)
			continue
		}
		o = o.complete()
		got += fmt.Sprintf("| `%s` | %s | %s | %s |\n", path, o.success, o.failure, o.negative)
	}
	got = strings.ReplaceAll(got, "|  |", "| |")
	if *update {
		if err := os.WriteFile(errorsPage, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if read(t, errorsPage) != got {
		t.Error("docs/command-errors.md differs from the commands: run go test ./cmd/bowsprit -run TestCommandErrors -update")
	}
}

const exitCodesText = `# Exit codes of the commands

This page is generated from the commands.

## Exit codes

| code | meaning |
|---|---|
| 0 | the command did its work, or the answer is yes |
| 1 | the command could not do its work, or found problems |
| 2 | the command line is wrong: an unknown command or flag, a wrong argument or value; the command did nothing |
| 3 | the command did its work, and the answer is no |

An error is one line on stderr. It begins with ` + "`bowsprit: `" + `.

The codes of each command:

| command | 0 if | 1 if | 3 if |
|---|---|---|---|
`
