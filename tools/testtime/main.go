// Command testtime measures the CPU time of builds and tests.
//
//	GOFLAGS='-exec=testtime -toolexec=testtime -count=1' TESTTIME=DIR go test ./...
//	testtime -report DIR
//
// With -exec and -toolexec, the go command starts test binaries, compilers and linkers through testtime, which passes
// arguments, output and exit codes on and writes the times of each process to a file in DIR. The build cache stays
// valid, because -toolexec does not change the version that a tool reports. The report sums up the files.
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// A process is one measured process with its children.
type process struct {
	Kind string        // "test", or the name of the tool: "compile", "link", "vet"
	Name string        // a test's folder, or a tool's output
	Race bool          // built with the race detector
	CPU  time.Duration // user and system
	Wall time.Duration
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "testtime: run it as -exec and -toolexec of go test, or with -report DIR")
		os.Exit(2)
	}
	if os.Args[1] != "-report" {
		os.Exit(run(os.Args[1:], os.Getenv("TESTTIME")))
	}
	all, err := read(strings.Join(os.Args[2:], ""))
	if err != nil {
		fmt.Fprintln(os.Stderr, "testtime:", err)
		os.Exit(1)
	}
	report(os.Stdout, all)
}

// run starts a program, writes its times to a new file in dir, and returns its exit code. Without dir it measures
// nothing.
func run(args []string, dir string) int {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "GOFLAGS="+without(os.Getenv("GOFLAGS")))
	start := time.Now()
	err := cmd.Run()
	wall := time.Since(start)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		fmt.Fprintln(os.Stderr, "testtime:", err)
		return 1
	}
	if p, ok := describe(args); ok && dir != "" {
		p.CPU, p.Wall = cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime(), wall
		if err := write(dir, p); err != nil {
			fmt.Fprintln(os.Stderr, "testtime:", err)
			return 1
		}
	}
	return max(cmd.ProcessState.ExitCode(), 0) | signalled(cmd.ProcessState)
}

// signalled returns 1 for a process that a signal ended, which has no exit code.
func signalled(state *os.ProcessState) int {
	if state.Exited() {
		return 0
	}
	return 1
}

// without removes testtime's flags from GOFLAGS, so that the go commands of tests count only for the test.
func without(flags string) string {
	var kept []string
	for _, f := range strings.Fields(flags) {
		if !strings.HasPrefix(f, "-exec=") && !strings.HasPrefix(f, "-toolexec=") && f != "-count=1" {
			kept = append(kept, f)
		}
	}
	return strings.Join(kept, " ")
}

// describe returns the kind and the name of a process, and false for questions about a tool's version.
func describe(args []string) (process, bool) {
	base := strings.TrimSuffix(filepath.Base(args[0]), ".exe")
	if strings.HasSuffix(base, ".test") {
		dir, _ := os.Getwd()
		return process{Kind: "test", Name: dir, Race: raced(args[0])}, true
	}
	p := process{Kind: base}
	for i, arg := range args {
		switch {
		case strings.HasPrefix(arg, "-V"), arg == "-flags":
			return p, false
		case arg == "-p", arg == "-o" && p.Name == "":
			if i+1 < len(args) {
				p.Name = args[i+1]
			}
		case arg == "-race":
			p.Race = true
		}
	}
	return p, true
}

// raced reports whether a binary was built with the race detector.
func raced(binary string) bool {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return false
	}
	for _, s := range info.Settings {
		if s.Key == "-race" {
			return s.Value == "true"
		}
	}
	return false
}

func write(dir string, p process) error {
	f, err := os.CreateTemp(dir, p.Kind+"-*.json")
	if err != nil {
		return err
	}
	if err := json.NewEncoder(f).Encode(p); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}

func read(dir string) ([]process, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s has no measured processes; set TESTTIME and GOFLAGS as make test-time does", dir)
	}
	all := make([]process, len(names))
	for i, name := range names {
		text, err := os.ReadFile(filepath.Clean(name))
		if err == nil {
			err = json.Unmarshal(text, &all[i])
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return all, nil
}
