package page

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The words of blocks for another terminal: a new one, the previous one in which Ctrl-C ends the running command, and
// the keys that end the command of a terminal.
const (
	terminal = "terminal"
	again    = "again"
	stop     = "stop"
	kill     = "kill"
)

// keys are the texts of the blocks that end a command, with the signal of each.
var keys = map[string]struct{ text, signal string }{stop: {"^C", "TERM"}, kill: {`^\`, "KILL"}}

// Session is a reader's shell.
type Session struct {
	Dir   string        // where files are written and commands run
	Env   []string      // the whole environment
	Limit time.Duration // ends commands that hang; it measures nothing
	// Root is the directory of another system with the shell that runs the commands; Dir is a path inside it. Enter is
	// the command that runs an appended command inside it, in Dir. Without Root the session runs on this machine.
	Root  string
	Enter []string
}

// Run runs a page, with some words replaced; each of them must occur. Background processes end with the test.
func (s Session) Run(t *testing.T, file string, words map[string]string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(file)
	script, expected := s.script(t, name, Blocks(replace(t, file, string(text), words)))
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
			t.Errorf("%s:%d: %q is not in the output:\n%s", name, want.Line, missing, got)
		}
	}
	if !strings.Contains(out, mark(len(expected))) {
		t.Errorf("%s ended before its end:\n%s", name, out)
	}
}

// replace replaces words; where several match at one place, the longest counts.
func replace(t *testing.T, file, text string, words map[string]string) string {
	t.Helper()
	var pairs []string
	for _, word := range slices.SortedFunc(maps.Keys(words), func(a, b string) int { return len(b) - len(a) }) {
		if !strings.Contains(text, word) {
			t.Fatalf("%s has no %s", file, word)
		}
		pairs = append(pairs, word, words[word])
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// WriteFiles writes the files of a page.
func (s Session) WriteFiles(t *testing.T, name string, all []Block) {
	t.Helper()
	s.script(t, name, all)
}

// mark is the line before the output of block i.
func mark(i int) string { return fmt.Sprintf("<<%d>>\n", i) }

// script writes the files of a page. It returns the commands, each block with a mark before it, and their expected
// output.
func (s Session) script(t *testing.T, name string, all []Block) (script string, expected []Block) {
	t.Helper()
	for i, b := range all {
		switch b.Language {
		case "yaml", "json", "toml", "go", "ini":
			if b.Name == "" {
				continue
			}
			if err := s.write(b); err != nil {
				t.Fatal(err)
			}
		case "sh":
			commands := b.Text
			if b.Name != "" {
				commands = elsewhere(t, name, all[i:])
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

// write writes the file that a block is, and the folders that its name has.
func (s Session) write(b Block) error {
	file := filepath.Join(s.Root, s.Dir, filepath.FromSlash(b.Name))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(b.Text), 0o600)
}

// elsewhere returns the commands for a block of another terminal. The first block is "terminal", a verb or none, and a
// name or none. The name is a variable of the shell with the terminal's process.
func elsewhere(t *testing.T, page string, blocks []Block) string {
	t.Helper()
	words := strings.Fields(blocks[0].Name)
	if words[0] != terminal || len(words) > 3 {
		t.Fatalf("%s:%d: a block %q of a shell", page, blocks[0].Line, blocks[0].Name)
	}
	verb, process := "", terminal
	for _, word := range words[1:] {
		if word == again || keys[word].text != "" {
			verb = word
		} else {
			process = word
		}
	}
	if key, ok := keys[verb]; ok {
		if strings.TrimSpace(blocks[0].Text) != key.text {
			t.Fatalf("%s:%d: the block must be %q", page, blocks[0].Line, key.text)
		}
		return end(process, key.signal)
	}
	commands := begin(t, page, blocks, process)
	if verb == again {
		commands = end(process, "TERM") + commands // background commands of shells ignore SIGINT
	}
	return commands
}

// end returns the commands that end a terminal's process.
func end(process, signal string) string {
	return fmt.Sprintf("kill -%s $%s\nwait $%[2]s || :\n", signal, process)
}

// begin returns the commands that run the first block in the background and wait until it has printed the last line of
// the second.
func begin(t *testing.T, page string, blocks []Block, process string) string {
	t.Helper()
	command := strings.TrimSpace(blocks[0].Text)
	if len(blocks) < 2 || blocks[1].Language != "text" {
		t.Fatalf("%s:%d: the page has no output that shows that the terminal is ready", page, blocks[0].Line)
	}
	if strings.Contains(strings.ReplaceAll(command, "\\\n", ""), "\n") {
		t.Fatalf("%s:%d: more than one command for a terminal", page, blocks[0].Line)
	}
	lines := strings.Split(strings.TrimSuffix(blocks[1].Text, "\n"), "\n")
	last := strings.ReplaceAll(strings.TrimSpace(lines[len(lines)-1]), "'", `'\\''`)
	return fmt.Sprintf(`%s > %[2]s 2>&1 &
%[4]s=$!
until grep -qF '%[3]s' %[2]s; do
  kill -0 $%[4]s || { cat %[2]s; exit 1; }
  sleep 0.05
done
cat %[2]s
`, command, fmt.Sprintf(".terminal-%d", blocks[0].Line), last, process)
}

// shell runs the commands in one shell and returns their output, including errors.
func (s Session) shell(t *testing.T, script string) string {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out")) // background processes would hold a pipe open
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := s.command(t, script)
	cmd.Env, cmd.Stdout, cmd.Stderr = s.Env, out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.endAll(t, cmd.Process.Pid) })
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

// command returns the shell that runs a script, here or in the other system.
func (s Session) command(t *testing.T, script string) *exec.Cmd {
	t.Helper()
	dir, args := t.TempDir(), []string{"sh", "-e"}
	if s.Root != "" {
		dir, args = filepath.Join(s.Root, "tmp"), append(slices.Clone(s.Enter), args...)
	}
	file := filepath.Join(dir, "page.sh")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	inside := "/" + strings.TrimPrefix(strings.TrimPrefix(file, s.Root), "/")
	cmd := exec.Command(args[0], append(args[1:], inside)...)
	if s.Root == "" {
		cmd.Dir = s.Dir
	}
	return cmd
}

// endAll stops the processes of a group and waits until none is left.
func (s Session) endAll(t *testing.T, group int) {
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
