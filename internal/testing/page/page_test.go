package page

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

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

// A page's files, its commands, and commands in another terminal, which has printed its last line when the next begin.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "page.md")
	const text = "# A page\n```yaml a.yaml\nkind: A\n```\n" + "```ini folder/b.ini\nWORD WORDS\n```\n" +
		"```sh\nmkfifo gate\n```\n" +
		"```sh terminal\nsh -c 'echo one; echo up; read x < gate; echo $x > told' \\\n  unused\n```\n" +
		"```text\none\nup\n```\n" +
		"```sh\ncat a.yaml folder/b.ini\necho WORD\necho there > gate; wait; cat told\n```\n" +
		"```text\nkind: A\nother others there\nother\nthere\n```\n" +
		"```sh terminal\nsh -c 'trap \"rm held; exit\" TERM; touch held; echo up; while :; do sleep 0.05; done'\n```\n" +
		"```text\nup\n```\n" +
		"```sh terminal again\nsh -c 'ls; echo up'\n```\n```text\na.yaml\ntold\nup\n```\n" +
		"```sh terminal other\nsh -c 'echo up; exec sleep 1000'\n```\n```text\nup\n```\n" +
		"```sh terminal\nsh -c 'trap \"touch stopped; exit\" TERM; echo up; while :; do sleep 0.05; done'\n```\n```text\nup\n```\n" +
		"```sh terminal kill other\n^\\\n```\n" + "```sh terminal stop\n^C\n```\n" +
		"```sh\nls stopped; kill -0 $other || echo killed\n```\n```text\nstopped\nkilled\n```\n" +
		"```console\n$ false\n```\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := Session{Dir: dir, Env: []string{"PATH=" + os.Getenv("PATH")}, Limit: time.Minute}
	s.Run(t, file, map[string]string{"WORD": "other", "WORDS": "others there"})
	if _, err := os.Stat(filepath.Join(dir, "held")); err == nil {
		t.Error("the first program of the terminal was not ended")
	}
}

func TestBlocks(t *testing.T) {
	got := Blocks("a\n```sh\nx\ny\n```\n\n```yaml f.yaml\nz\n```\n```text\nnever closed\n")
	want := []Block{{"sh", "", 2, "x\ny\n"}, {"yaml", "f.yaml", 7, "z\n"}}
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%+v", got)
	}
}
