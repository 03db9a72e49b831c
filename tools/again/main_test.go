package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRun runs modules with tests that fail never, once, or always; a file in the module records earlier runs.
func TestRun(t *testing.T) {
	const once = `
func TestOnce(t *testing.T) {
	if _, err := os.Stat("seen"); err != nil {
		os.WriteFile("seen", nil, 0o600)
		FAIL
	}
}
func TestGood(t *testing.T) { println("TestGood runs") }
`
	for _, c := range []struct {
		name, tests string
		code        int
		says, not   string
	}{
		{"good", "func TestGood(t *testing.T) { _ = os.Args }", 0, "ok", "again:"},
		{"fails once", strings.Replace(once, "FAIL", `t.Error("x")`, 1), 0,
			"again: FLAKY: failed once, and then passed: m (TestOnce)", "TestGood runs\nok"},
		{"ends the process once", strings.Replace(once, "FAIL", `os.Exit(255)`, 1), 0,
			"again: FLAKY: failed once, and then passed: m\n", "passed: m ("},
		{"panics once", strings.Replace(once, "FAIL", `panic(1)`, 1), 0,
			"again: FLAKY: failed once", "no tests to run"},
		{"fails always", `func TestBad(t *testing.T) { t.Error(os.Args) }`, 1, "once more", "FLAKY"},
		{"does not compile", `func TestBad(t *testing.T) { os.Nothing() }`, 1, "[build failed]", "again:"},
		{"many fail", `
func TestA(t *testing.T) { t.Error(os.Args) }
func TestB(t *testing.T) { t.Error(os.Args) }
func TestC(t *testing.T) { t.Error(os.Args) }`, 1, "TestC", "again:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			write(t, "go.mod", "module m\n\ngo 1.26\n")
			write(t, "m_test.go", "package m\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n"+c.tests)
			var out strings.Builder
			if code := run(&out, 2, []string{"-count=1", "./..."}); code != c.code {
				t.Errorf("the exit code is %d, expected %d", code, c.code)
			}
			if got := out.String(); !strings.Contains(got, c.says) || strings.Contains(got, c.not) {
				t.Errorf("it does not say %q, or says %q:\n%s", c.says, c.not, got)
			}
		})
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Clean(name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
