package node

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A page of docs is run like this: a block "yaml NAME" is a file of that name, the blocks "sh" are one session of a
// shell that ends with the first command that fails, and a block "text" after one of them is what it prints: each line
// of it must be within a line of the output, in that order, whatever there is between words. Blocks "console"
// and "ini" are not run.

// block is one block of code of a page.
type block struct {
	language, name string
	line           int
	text           string
}

// blocks returns the blocks of code of a page.
func blocks(page string) []block {
	var all []block
	var open *block
	for i, line := range strings.Split(page, "\n") {
		fence, found := strings.CutPrefix(line, "```")
		switch {
		case open != nil && found:
			all = append(all, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		case found:
			language, name, _ := strings.Cut(fence, " ")
			open = &block{language: language, name: name, line: i + 1}
		}
	}
	return all
}

// runPage runs a page against the cluster, with other words in the place of some. Processes that it leaves in the
// background end with the test.
func (c *cluster) runPage(t *testing.T, page string, words map[string]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	replaced := string(text)
	for word, means := range words {
		if !strings.Contains(replaced, word) {
			t.Fatalf("%s has no %s", page, word)
		}
		replaced = strings.ReplaceAll(replaced, word, means)
	}
	script, expected := c.script(t, page, blocks(replaced))
	out := c.session(t, script)
	for i, want := range expected {
		begin, end := fmt.Sprintf("<<%d>>\n", i), fmt.Sprintf("<<%d>>\n", i+1)
		_, rest, found := strings.Cut(out, begin)
		if !found {
			t.Errorf("%s ended before line %d:\n%s", page, want.line, out)
			return
		}
		got, _, _ := strings.Cut(rest, end)
		if missing := missingLine(got, want.text); missing != "" {
			t.Errorf("%s:%d: %q is not in what was printed:\n%s", page, want.line, missing, got)
		}
	}
	if !strings.Contains(out, fmt.Sprintf("<<%d>>\n", len(expected))) {
		t.Errorf("%s ended before its end:\n%s", page, out)
	}
}

// script writes the files of a page and returns the commands, each block with a mark before it, and what the blocks
// print.
func (c *cluster) script(t *testing.T, page string, all []block) (script string, expected []block) {
	t.Helper()
	for _, b := range all {
		switch b.language {
		case "yaml":
			if b.name == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(c.home, b.name), []byte(b.text), 0o600); err != nil {
				t.Fatal(err)
			}
		case "sh":
			script += fmt.Sprintf("printf '<<%d>>\\n'\n%s", len(expected), b.text)
			expected = append(expected, block{line: b.line})
		case "text":
			expected[len(expected)-1].text = b.text
		case "console", "ini": // not for this shell
		default:
			t.Fatalf("%s:%d: a block of the language %q", page, b.line, b.language)
		}
	}
	return script + fmt.Sprintf("printf '<<%d>>\\n'\n", len(expected)), expected
}

// session runs the commands in one shell and returns what they print, errors included.
func (c *cluster) session(t *testing.T, script string) string {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out")) // a pipe would be held open by what goes on
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	file := filepath.Join(filepath.Dir(out.Name()), "page.sh")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-e", file)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.home, c.env(), out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		awaitGone(t, cmd.Process.Pid)
	})
	hung := time.AfterFunc(limit, func() { cmd.Process.Kill() })
	defer hung.Stop()
	ended := cmd.Wait()
	text, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	if ended != nil {
		t.Errorf("the page's commands ended with %v", ended)
	}
	return string(text)
}

var space = regexp.MustCompile(`[ \t]+`)

// missingLine returns the first line of want that is in no line of got after those before.
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

func TestMissingLine(t *testing.T) {
	for _, c := range []struct{ got, want, missing string }{
		{"a\nb  c\nd\n", "a\nb c\n", ""}, {"a\nb\n", "b\na\n", "a"}, {"", "a\n", "a"}, {"x a y\n", "a\n", ""},
		{"a\n", "", ""}, {"a\n", "a\na\n", "a"},
	} {
		if got := missingLine(c.got, c.want); got != c.missing {
			t.Errorf("%q in %q: %q is missing, want %q", c.want, c.got, got, c.missing)
		}
	}
}
