package aspod

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestReadAll(t *testing.T) {
	file := filepath.Join(t.TempDir(), "Podfile")
	read := func(text string) ([]entry, error) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return readAll(file)
	}
	all, err := read(`
# two operators
manager: deployment/manager -n system -- ./bin/manager --metrics=:8080
hooks:  sts/hooks --port 9443=19443 -- sh -c 'exec "$0" a\b' "two words" \# ""
`)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%q", all)
	want := `[{"manager" ["--as-pod=deployment/manager" "-n" "system" "--" "./bin/manager" "--metrics=:8080"]} ` +
		`{"hooks" ["--as-pod=sts/hooks" "--port" "9443=19443" "--" "sh" "-c" "exec \"$0\" a\\b" "two words" "#" ""]}]`
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for text, want := range map[string]string{
		"":                                   "names no program",
		"# nothing":                          "names no program",
		"manager":                            ":1: no program",
		"a b: deployment/a -- x":             ":1: no program",
		"\na: deployment/a --":               ":2: no program",
		"a: deployment/a x":                  ":1: no program",
		"a: -- x":                            ":1: no program",
		"a: pod/a -- x":                      `"pod/a" is not a workload`,
		"a: deployment/a -- 'x":              "a quote ' has no end",
		`a: deployment/a -- x\`:              "a backslash ends the line",
		"a: deploy/a --all=b -- x":           "--all belongs to the command line",
		"a: deploy/a --as-pod deploy/b -- x": "--as-pod belongs to the command line",
		"a: deploy/a -- x\na: deploy/b -- y": ":2: the name a is there already",
		strings.Repeat("#", maxAll+1):        "has more than 65536 bytes",
		strings.Join(programLines(maxPrograms+1), "\n"): "names 51 programs, more than 50",
	} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
	if _, err := readAll(filepath.Join(t.TempDir(), "nosuch")); err == nil {
		t.Error("a missing file is no error")
	}
}

func programLines(n int) (lines []string) {
	for i := range n {
		lines = append(lines, fmt.Sprintf("p%d: deployment/a -- x", i))
	}
	return lines
}

func FuzzSplit(f *testing.F) {
	f.Add(`a 'b c' "d\"e" \f ''`)
	f.Fuzz(func(t *testing.T, line string) {
		words, err := split(line)
		if err != nil {
			return
		}
		var quoted []string
		for _, w := range words {
			quoted = append(quoted, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
		}
		again, err := split(strings.Join(quoted, " "))
		if err != nil || !slices.Equal(words, again) {
			t.Errorf("%q: %q, then %q, %v", line, words, again, err)
		}
	})
}

// TestPrefixed checks that lines of several programs do not mix.
func TestPrefixed(t *testing.T) {
	var out strings.Builder
	var lock sync.Mutex
	a, b := &prefixed{lock: &lock, prefix: "a | ", to: &out}, &prefixed{lock: &lock, prefix: "b | ", to: &out}
	fmt.Fprint(a, "on")
	fmt.Fprint(b, "x\ny\n\nz")
	fmt.Fprint(a, "e\n", strings.Repeat("l", maxLine+1))
	a.flush()
	b.flush()
	want := "b | x\nb | y\nb | \na | one\na | " + strings.Repeat("l", maxLine) + "\na | l\nb | z\n"
	if out.String() != want {
		t.Errorf("%.200q", out.String())
	}
}
