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
	got = strings.ReplaceAll(got, "|  |", "| |") + situationsText + situations(t)
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

const situationsText = `
## Situations

The commands in six situations, with their output and exit code. The test that generates this page runs them.

- **no server**: the local server is stopped.
- **wrong server**: another server than that of the kubeconfig answers at its URL.
- **no rights**: the user has no permissions.
- **bad input**: an argument, a file or a value is wrong.
- **bad flag**: a flag does not exist.
- **typo**: the name of the command is misspelled.

A command that contacts no server does not have the first three. The programs that Bowsprit contains, such as kubectl,
have their own errors. PORT and DIR stand for a port and a directory. Of a long output, the first lines are shown.
`

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
