// Command again runs go test, and repeats failed tests once.
//
//	again [-n 3] [flags of go test] packages
//
// It is for suites that compare Bowsprit with other projects' programs. These have races of their own, such as a server
// that ends the whole process when it is stopped during its start, and no change here repairs them. A test counts as
// failed if it fails twice. The last line names each test that passes the second time, for an investigation. If more
// than n tests or packages failed, or a package does not compile, again repeats nothing, because that is not chance.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

func main() {
	most := 3
	args := os.Args[1:]
	if len(args) > 1 && args[0] == "-n" {
		if _, err := fmt.Sscan(args[1], &most); err != nil {
			fmt.Fprintf(os.Stderr, "again: -n %s is not a number\n", args[1])
			os.Exit(2)
		}
		args = args[2:]
	}
	os.Exit(run(os.Stdout, most, args))
}

// run returns the exit code of go test: of the first run, or of the second if there was one.
func run(out io.Writer, most int, args []string) int {
	code, failed := test(out, args)
	if code == 0 || !failed.few(most) {
		return code
	}
	fmt.Fprintf(out, "again: once more, since chance may have had a hand in it: %s\n", failed)
	flags := slices.DeleteFunc(slices.Clone(args), func(a string) bool { return isPackage(a) })
	for _, p := range failed.packages {
		again := slices.Clone(flags)
		if tests := failed.tests[p]; len(tests) > 0 && !failed.died[p] {
			again = append(again, "-run", "^("+strings.Join(tests, "|")+")$")
		}
		if code, _ := test(out, append(again, p)); code != 0 {
			return code
		}
	}
	fmt.Fprintf(out, "again: FLAKY: failed once, and then passed: %s\n", failed)
	return 0
}

// isPackage reports whether an argument of go test names packages. All packages in use begin with a dot.
func isPackage(arg string) bool { return strings.HasPrefix(arg, ".") }

// failures are the failed packages and tests of one run.
type failures struct {
	packages []string            // by import path
	tests    map[string][]string // names of top-level tests by package
	died     map[string]bool     // the test process ended before its tests had
	built    bool                // all packages could be built
}

func (f failures) few(most int) bool {
	n := 0
	for _, p := range f.packages {
		n += max(1, len(f.tests[p]))
	}
	return f.built && n > 0 && n <= most
}

func (f failures) String() string {
	var parts []string
	for _, p := range f.packages {
		if parts = append(parts, p); len(f.tests[p]) > 0 {
			parts[len(parts)-1] += " (" + strings.Join(f.tests[p], ", ") + ")"
		}
	}
	return strings.Join(parts, ", ")
}

var (
	failedTest    = regexp.MustCompile(`^--- FAIL: (\S+) \(`)
	failedPackage = regexp.MustCompile(`^FAIL\t(\S+)(?: \[(\w+) failed\])?`)
	died          = regexp.MustCompile(`^(panic: |fatal error: |exit status [^1]|F\d{4} )`)
)

// test runs go test once, shows its output, and returns its exit code and the failures.
func test(out io.Writer, args []string) (int, failures) {
	f := failures{tests: map[string][]string{}, died: map[string]bool{}, built: true}
	cmd := exec.Command("go", append([]string{"test"}, args...)...)
	reader, writer := io.Pipe()
	cmd.Stdout, cmd.Stderr = writer, writer
	done := make(chan struct{})
	go func() {
		defer close(done)
		var tests []string
		dead := false
		lines := bufio.NewReader(reader)
		for {
			line, err := lines.ReadString('\n')
			_, _ = io.WriteString(out, line)
			if m := failedTest.FindStringSubmatch(line); m != nil {
				tests = append(tests, m[1])
			} else if died.MatchString(line) {
				dead = true
			} else if m := failedPackage.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
				f.packages = append(f.packages, m[1])
				f.tests[m[1]], f.died[m[1]] = tests, dead
				f.built = f.built && m[2] == ""
				tests, dead = nil, false
			} else if strings.HasPrefix(line, "ok  \t") {
				tests, dead = nil, false // a passing test may print such lines
			}
			if err != nil {
				return
			}
		}
	}()
	err := cmd.Run()
	_ = writer.Close()
	<-done
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, f
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exit.ExitCode(), f
	}
	fmt.Fprintf(out, "again: go test: %v\n", err)
	return 1, f
}
