package page

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The names of blocks for another terminal: a new one, or the one before, where what runs is ended by Ctrl-C.
const (
	first = "terminal"
	again = "terminal again"
)

// Session is a shell as the reader of a page has one.
type Session struct {
	Dir   string        // where files are written and commands run
	Env   []string      // all of the environment
	Limit time.Duration // ends commands that hang; it measures nothing
}

// Run runs a page, with other words in the place of some, each of which must be there. Processes that it leaves in the
// background end with the test.
func (s Session) Run(t *testing.T, file string, words map[string]string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	replaced := string(text)
	for word, means := range words {
		if !strings.Contains(replaced, word) {
			t.Fatalf("%s has no %s", file, word)
		}
		replaced = strings.ReplaceAll(replaced, word, means)
	}
	name := filepath.Base(file)
	script, expected := s.script(t, name, Blocks(replaced))
	out := s.shell(t, script)
	for i, want := range expected {
		begin, end := mark(i), mark(i+1)
		_, rest, found := strings.Cut(out, begin)
		if !found {
			t.Errorf("%s ended before line %d:\n%s", name, want.Line, out)
			return
		}
		got, _, _ := strings.Cut(rest, end)
		if missing := missingLine(got, want.Text); missing != "" {
			t.Errorf("%s:%d: %q is not in what was printed:\n%s", name, want.Line, missing, got)
		}
	}
	if !strings.Contains(out, mark(len(expected))) {
		t.Errorf("%s ended before its end:\n%s", name, out)
	}
}

// WriteFiles writes the files of a page.
func (s Session) WriteFiles(t *testing.T, name string, all []Block) {
	t.Helper()
	s.script(t, name, all)
}

// mark is the line before what block i prints.
func mark(i int) string { return fmt.Sprintf("<<%d>>\n", i) }

// script writes the files of a page and returns the commands, each block with a mark before it, and what the blocks
// print.
func (s Session) script(t *testing.T, name string, all []Block) (script string, expected []Block) {
	t.Helper()
	for i, b := range all {
		switch b.Language {
		case "yaml", "go", "ini":
			if b.Name == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(s.Dir, b.Name), []byte(b.Text), 0o600); err != nil {
				t.Fatal(err)
			}
		case "sh":
			commands := b.Text
			switch b.Name {
			case "":
			case first, again:
				commands = terminal(t, name, all[i:])
			default:
				t.Fatalf("%s:%d: a block %q of a shell", name, b.Line, b.Name)
			}
			script += fmt.Sprintf("printf '%%s\\n' '<<%d>>'\n%s", len(expected), commands)
			expected = append(expected, Block{Line: b.Line})
		case "text":
			if len(expected) == 0 {
				t.Fatalf("%s:%d: nothing has printed this", name, b.Line)
			}
			expected[len(expected)-1].Text = b.Text
		case "console", "": // not for this shell
		default:
			t.Fatalf("%s:%d: a block of the language %q", name, b.Line, b.Language)
		}
	}
	return script + fmt.Sprintf("printf '%%s\\n' '<<%d>>'\n", len(expected)), expected
}

// terminal returns the command that runs the first block in the background and waits until it has printed the last line
// of the second. What ran in a terminal before is ended first by "terminal again".
func terminal(t *testing.T, name string, blocks []Block) string {
	t.Helper()
	command := strings.TrimSpace(blocks[0].Text)
	if len(blocks) < 2 || blocks[1].Language != "text" {
		t.Fatalf("%s:%d: what does this terminal print when it is ready?", name, blocks[0].Line)
	}
	if strings.Contains(strings.ReplaceAll(command, "\\\n", ""), "\n") {
		t.Fatalf("%s:%d: more than one command for a terminal", name, blocks[0].Line)
	}
	lines := strings.Split(strings.TrimSuffix(blocks[1].Text, "\n"), "\n")
	last := strings.ReplaceAll(strings.TrimSpace(lines[len(lines)-1]), "'", `'\''`)
	before := ""
	if blocks[0].Name == again {
		before = "kill $terminal\nwait $terminal || :\n" // shells have background commands ignore what Ctrl-C sends
	}
	return before + fmt.Sprintf(`%s > %[2]s 2>&1 &
terminal=$!
until grep -qF '%[3]s' %[2]s; do
  kill -0 $terminal || { cat %[2]s; exit 1; }
  sleep 0.05
done
cat %[2]s
`, command, fmt.Sprintf(".terminal-%d", blocks[0].Line), last)
}

// shell runs the commands in one shell and returns what they print, errors included.
func (s Session) shell(t *testing.T, script string) string {
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
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.Dir, s.Env, out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.end(t, cmd.Process.Pid) })
	hung := time.AfterFunc(s.Limit, func() { cmd.Process.Kill() })
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

// end stops the processes of a group and waits until none is left.
func (s Session) end(t *testing.T, group int) {
	syscall.Kill(-group, syscall.SIGTERM)
	late := time.AfterFunc(s.Limit/2, func() { syscall.Kill(-group, syscall.SIGKILL) })
	defer late.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	hung := time.After(s.Limit)
	for !errors.Is(syscall.Kill(-group, 0), syscall.ESRCH) {
		select {
		case <-tick.C:
		case <-hung:
			t.Error("processes of the page go on after SIGKILL")
			return
		}
	}
}
