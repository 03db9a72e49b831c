// Command again runs go test, and repeats failed tests of other projects' programs once.
//
//	again [-n 3] [-record FILE] [flags of go test] packages
//
// Suites that compare Bowsprit with other projects' programs meet the races of these programs, such as a server that
// ends the whole process when it is stopped during its start, and no change here repairs them. foreign.txt lists their
// tests; the failure of any other test is final. A test counts as failed if it fails twice. The last line names each
// test that passes the second time, as FLAKY, for an investigation, and FILE keeps the names: a second FLAKY of one
// name fails. If more than n tests or packages failed, or a package does not compile, again repeats nothing, because
// that is not chance.
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
	"strconv"
	"strings"
)

func main() {
	list, err := parse(foreignText)
	if err != nil {
		fmt.Fprintln(os.Stderr, "again: foreign.txt:", err)
		os.Exit(2)
	}
	s := settings{most: 3, list: list}
	args := os.Args[1:]
	for len(args) > 1 && (args[0] == "-n" || args[0] == "-record") {
		if args[0] == "-record" {
			s.record = args[1]
		} else if s.most, err = strconv.Atoi(args[1]); err != nil {
			fmt.Fprintf(os.Stderr, "again: -n %s is not a number\n", args[1])
			os.Exit(2)
		}
		args = args[2:]
	}
	os.Exit(s.run(os.Stdout, args))
}

// settings decide which failures are repeated.
type settings struct {
	most   int       // more failures than these are not repeated
	list   []foreign // the tests that may be repeated
	record string    // the file of earlier FLAKY names; empty to keep none
}

// run returns the exit code of go test: of the first run, or of the second if there was one.
func (s settings) run(out io.Writer, args []string) int {
	code, failed := test(out, args)
	if code == 0 || !failed.few(s.most) {
		return code
	}
	if final := failed.unlisted(s.list); len(final) > 0 {
		fmt.Fprintf(out, "again: not repeated, because tools/again/foreign.txt does not list %s\n", strings.Join(final, ", "))
		return code
	}
	fmt.Fprintf(out, "again: repeated once, because another project's program may have failed: %s\n", failed)
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
	before, err := remember(s.record, failed.names())
	if err != nil {
		fmt.Fprintf(out, "again: %v\n", err)
		return code
	}
	if len(before) > 0 {
		fmt.Fprintf(out, "again: FLAKY for the second time: %s; repair it, and then delete its line in %s\n",
			strings.Join(before, ", "), s.record)
		return code
	}
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
