// Package page runs the commands in a page of the documentation in a real shell, and compares their output with the
// page. So no command is first tried by a reader.
//
// A block "yaml NAME" (or "json NAME", "toml NAME", "go NAME", "ini NAME") is a file of that name, which may be in a
// folder. The blocks "sh" are one session of a shell that ends with the first command that fails. A block "sh terminal"
// is the command for another terminal: it runs in the background, and the session continues when it has printed the
// last line of the following block "text". "sh terminal again" is the next command there, after Ctrl-C. "sh terminal
// stop" with the text ^C ends the command, "sh terminal kill" with the text ^\ kills it. A further word is the name of
// one of several terminals: "sh terminal agent", "sh terminal kill agent". A block "text" after a block "sh" is its
// output: each line of it must be contained in a line of the output, in that order, with any text between words. Blocks
// "console", blocks of files without a name, and blocks without a language are not run.
//
// The functions fail the given test. They are safe for concurrent use by several tests.
package page

import (
	"bytes"
	"regexp"
	"strings"
)

// Block is one block of code of a page.
type Block struct {
	Language, Name string // the words after the fence: "yaml nodes.yaml"
	Line           int    // of the fence, from 1
	Text           string
}

// Blocks returns the blocks of code of a page.
func Blocks(page string) []Block {
	var all []Block
	var open *Block
	for i, line := range strings.Split(page, "\n") {
		fence, found := strings.CutPrefix(line, "```")
		switch {
		case open != nil && found:
			all = append(all, *open)
			open = nil
		case open != nil:
			open.Text += line + "\n"
		case found:
			language, name, _ := strings.Cut(fence, " ")
			open = &Block{Language: language, Name: name, Line: i + 1}
		}
	}
	return all
}

var space = regexp.MustCompile(`[ \t]+`)

// missingLine returns the first line of want that got does not have after the preceding lines.
func missingLine(got, want string) string {
	lines := bytes.Split(space.ReplaceAll([]byte(got), []byte(" ")), []byte("\n"))
	for _, w := range strings.Split(strings.TrimSuffix(want, "\n"), "\n") {
		part := strings.TrimSpace(space.ReplaceAllString(w, " "))
		for len(lines) > 0 && !bytes.Contains(lines[0], []byte(part)) {
			lines = lines[1:]
		}
		if len(lines) == 0 {
			return w
		}
		lines = lines[1:]
	}
	return ""
}
