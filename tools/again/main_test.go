package main

import (
	"os"
	"path/filepath"
	"regexp"
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
		want, not   string
	}{
		{"good", "func TestGood(t *testing.T) { _ = os.Args }", 0, "ok", "again:"},
		{"fails once", strings.Replace(once, "FAIL", `t.Error("x")`, 1), 0,
			"again: FLAKY: failed once, and then passed: m (TestOnce)", "TestGood runs\nok"},
		{"ends the process once", strings.Replace(once, "FAIL", `os.Exit(255)`, 1), 0,
			"again: FLAKY: failed once, and then passed: m\n", "passed: m ("},
		{"panics once", strings.Replace(once, "FAIL", `panic(1)`, 1), 0,
			"again: FLAKY: failed once", "no tests to run"},
		{"fails always", `func TestBad(t *testing.T) { t.Error(os.Args) }`, 1, "repeated once", "FLAKY"},
		{"is not listed", strings.ReplaceAll(strings.Replace(once, "FAIL", `t.Error("x")`, 1), "Once", "Ours"), 1,
			"does not list m TestOurs", "FLAKY"},
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
			s := settings{2, []foreign{{"m", regexp.MustCompile("^Test(Once|Bad|A|B|C)$")}}, ""}
			if code := s.run(&out, []string{"-count=1", "./..."}); code != c.code {
				t.Errorf("the exit code is %d, expected %d", code, c.code)
			}
			if got := out.String(); !strings.Contains(got, c.want) || strings.Contains(got, c.not) {
				t.Errorf("it does not say %q, or says %q:\n%s", c.want, c.not, got)
			}
		})
	}
}

// TestRecord runs a test that fails once, twice: the second FLAKY fails, and the deleted record is a new beginning.
func TestRecord(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "go.mod", "module m\n\ngo 1.26\n")
	write(t, "m_test.go", `package m

import (
	"os"
	"testing"
)

func TestOnce(t *testing.T) {
	if _, err := os.Stat("seen"); err != nil {
		os.WriteFile("seen", nil, 0o600)
		t.Error("x")
	}
}
`)
	s := settings{2, []foreign{{"m", regexp.MustCompile("^TestOnce$")}}, filepath.Join(t.TempDir(), "flaky.txt")}
	for i, code := range []int{0, 1, 0} {
		_ = os.Remove("seen")
		if i == 2 {
			_ = os.Remove(s.record)
		}
		var out strings.Builder
		if got := s.run(&out, []string{"-count=1", "."}); got != code ||
			strings.Contains(out.String(), "for the second time: m TestOnce; repair it") != (code == 1) {
			t.Errorf("run %d: exit code %d, expected %d:\n%s", i+1, got, code, &out)
		}
	}
}

// TestForeign checks that each line of foreign.txt matches tests of its package.
func TestForeign(t *testing.T) {
	list, err := parse(foreignText)
	if err != nil || len(list) == 0 {
		t.Fatal(list, err)
	}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, l := range list {
		dir := filepath.FromSlash("../../" + strings.TrimPrefix(l.pkg, root))
		files, _ := filepath.Glob(filepath.Join(dir, "*_test.go"))
		found := false
		for _, file := range files {
			text, err := os.ReadFile(filepath.Clean(file))
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
				found = found || l.tests.MatchString(m[1])
			}
		}
		if !found {
			t.Errorf("%s has no test %s: correct foreign.txt", l.pkg, l.tests)
		}
	}
	for _, bad := range []string{"test/e2e TestX", "test/e2e Test( kubectl"} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Clean(name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
