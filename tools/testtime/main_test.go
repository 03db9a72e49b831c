package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMeasure runs a module's tests through testtime: the output, the exit code and the report.
func TestMeasure(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "testtime")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, c := range []struct {
		name, body, expect string
		fails              bool
	}{
		{"passes", `println("TestIt runs", os.Getenv("GOFLAGS"))`, "TestIt runs -trimpath\n", false},
		{"fails", `t.Error(os.Args[0])`, "--- FAIL: TestIt", true},
		{"a signal ends it", `syscall.Kill(os.Getpid(), syscall.SIGKILL)`, "FAIL\tm", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, times := t.TempDir(), t.TempDir()
			write := func(name, text string) {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write("go.mod", "module m\n\ngo 1.26\n")
			write("m_test.go", "// In "+dir+": no cache has it.\n\npackage m\n\nimport (\n\t\"os\"\n\t\"syscall\"\n\t\"testing\"\n)\n\nvar _ = os.Args\nvar _ = "+
				"syscall.Getpid\n\nfunc TestIt(t *testing.T) { "+c.body+" }\n")
			cmd := exec.Command("go", "test", "-v", ".")
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "TESTTIME="+times,
				"GOFLAGS=-trimpath -exec="+bin+" -toolexec="+bin+" -count=1")
			out, err := cmd.CombinedOutput()
			if (err != nil) != c.fails || !strings.Contains(string(out), c.expect) {
				t.Errorf("the output lacks %q, or the exit code is wrong: %v\n%s", c.expect, err, out)
			}
			all, err := read(times)
			if err != nil {
				t.Fatal(err)
			}
			var printed strings.Builder
			report(&printed, all)
			for _, kind := range []string{" test\n", " compile\n", " link\n", " all\n"} {
				if !strings.Contains(printed.String(), kind) {
					t.Errorf("the report has no line of %q:\n%s", kind, &printed)
				}
			}
		})
	}
}

// TestReport checks the sums, their order, and the line of small ones.
func TestReport(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	report(&out, []process{
		{Kind: "link", Name: "a.test", Race: true, CPU: 2e9, Wall: 3e9},
		{Kind: "link", Name: "b.test", Race: true, CPU: 1e9, Wall: 1e9},
		{Kind: "test", Name: filepath.Join(here, "a"), Race: true, CPU: 6e9, Wall: 9e9},
		{Kind: "test", Name: filepath.Join(here, "b"), CPU: 7e9, Wall: 7e9},
		{Kind: "test", Name: filepath.Join(here, "c"), CPU: 1e9, Wall: 2e9},
	})
	const expect = `   CPU s   wall s number
     8.0      9.0      2 test
     6.0      9.0      1 test (race)
     3.0      4.0      2 link (race)
    17.0     22.0      5 all

5s of CPU and more:
     7.0      7.0      1 b
     6.0      9.0      1 a (race)
     1.0      2.0      1 others
`
	if out.String() != expect {
		t.Errorf("the report is\n%s\nexpected\n%s", &out, expect)
	}
}

// TestRead checks the error of a folder without measurements.
func TestRead(t *testing.T) {
	if _, err := read(t.TempDir()); err == nil || !strings.Contains(err.Error(), "make test-time") {
		t.Errorf("an empty folder: %v", err)
	}
}
