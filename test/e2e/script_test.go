package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// commandLimit bounds every command of a script. It ends hung tests and measures nothing.
const commandLimit = 60 * time.Second

// TestStories runs testdata/*.txt, each against a server of its own. A script is a session as a user would paste it:
//
//	# text up to the end of the line is a comment
//	# server --flag …, as the first line, starts the server with flags that bowsprit and kube-apiserver share, or
//	  with bowsprit's own: such a story is not compared with kube-apiserver
//	$ command      runs with sh and must succeed; the next lines are its output, errors included
//	! command      the same, but it must fail
//	& command      runs in the background
//	wait N         waits until the background command has printed N lines, then ends it; its output follows
//
// $HOURS_AGO is a time that clients show as 40h ago, without fractions and zone.
// Commands find the conversion webhook of hook_test.go in $HOOK_URL, $HOOK_PORT and $HOOK_CA. They make it misbehave by
// writing the file hook-mode.
//
// In stories with names that begin with "accounts" pods have service accounts. Most expectations were recorded from a
// real kube-apiserver (see reference).
//
// "$ cat > file <<EOF" writes the lines up to EOF into a file. Text that differs from run to run (times, ages, uids,
// resource versions, addresses) is replaced before the comparison, see settle.
func TestStories(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := &session{
				server: startStory(t, strings.HasPrefix(filepath.Base(file), "accounts"), serverFlags(string(want))),
				dir:    t.TempDir(),
			}
			s.hook = startHook(t, s.dir)
			t.Cleanup(s.endBackground)
			got := s.run(t, strings.Split(strings.TrimSuffix(string(want), "\n"), "\n"))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// serverFlags returns the flags in the first line of a script.
func serverFlags(script string) []string {
	first, _, _ := strings.Cut(script, "\n")
	flags, _ := strings.CutPrefix(first, "# server ")
	if flags == first {
		return nil
	}
	return strings.Fields(flags)
}

// withoutAccounts disables the plugin that gives pods service accounts.
const withoutAccounts = "--disable-admission-plugins=ServiceAccount"

// startStory starts the server for a script, with more flags. Pods get service accounts only if accounts is true: the
// reference runs without the controller that makes the default ones, so all other stories disable the plugin, there and
// here.
func startStory(t *testing.T, accounts bool, flags []string) *process {
	if !accounts {
		flags = append(flags, withoutAccounts)
	}
	if reference == "" {
		return startServer(t, append([]string{"--ephemeral", "--service-cluster-ip-range=10.0.0.0/24"}, flags...)...)
	}
	for _, flag := range flags {
		if strings.HasPrefix(flag, "--simulate") {
			t.Skip("kube-apiserver simulates no workloads")
		}
	}
	return startReference(t, startCluster(t, 1, nil), flags...)
}

// session is one running script.
type session struct {
	server     *process
	dir        string
	hook       *hook
	background *background
	env        []string          // further variables for commands
	words      map[string]string // replacements for words of the script in this run
	site       *site             // the place of the server, if it is restarted
}

// run executes the script and returns it with the actual output of its commands.
func (s *session) run(t *testing.T, lines []string) string {
	var script strings.Builder
	for i := 0; i < len(lines); {
		line := lines[i]
		fmt.Fprintln(&script, line)
		number := i + 1
		i++
		verb, rest, _ := strings.Cut(line, " ")
		var got string
		switch {
		case line == "" || verb == "#":
			continue
		case strings.HasPrefix(line, "$ cat > "):
			name, _, _ := strings.Cut(strings.TrimPrefix(line, "$ cat > "), " ")
			var content strings.Builder
			for end := false; !end && i < len(lines); i++ {
				fmt.Fprintln(&script, lines[i])
				if end = lines[i] == "EOF"; !end {
					fmt.Fprintln(&content, lines[i])
				}
			}
			file := filepath.Join(s.dir, name)
			if err := os.WriteFile(file, []byte(s.replaced(content.String())), 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		case verb == "$" || verb == "!":
			out, err := s.command(t, rest)
			if (err != nil) != (verb == "!") {
				t.Errorf("line %d: %s\nended with %v:\n%s", number, line, err, out)
			}
			got = out
		case verb == "&":
			s.startBackground(t, rest)
			continue
		case verb == "wait":
			n, err := strconv.Atoi(rest)
			if err != nil || s.background == nil {
				t.Fatalf("line %d: %s: want a number of lines and a command in the background", number, line)
			}
			got = s.background.wait(t, n)
			s.endBackground()
		default:
			t.Fatalf("line %d: %q is not a command; see TestStories", number, line)
		}
		first := i
		for i < len(lines) && !startsCommand(lines[i]) {
			i++
		}
		last := i
		for last > first && lines[last-1] == "" {
			last-- // the empty lines before the next command are layout
		}
		got = s.settle(got)
		if want := strings.Join(lines[first:last], "\n"); !*update && got != want {
			t.Errorf("line %d: %s\ngot:\n%s\nwant:\n%s", number, line, got, want)
		}
		if got != "" {
			fmt.Fprintln(&script, got)
		}
		for ; last < i; last++ {
			fmt.Fprintln(&script)
		}
	}
	return script.String()
}

// startsCommand reports whether a line belongs to the script and not to a command's output.
func startsCommand(line string) bool {
	for _, verb := range []string{"$ ", "! ", "& ", "# ", "wait "} {
		if strings.HasPrefix(line, verb) {
			return true
		}
	}
	return false
}

// command runs a line of shell and returns its output.
func (s *session) command(t *testing.T, line string) (string, error) {
	out, err := s.shell(bounded(t, commandLimit), line).CombinedOutput()
	return string(out), err
}

// replaced returns a text of the script with its words replaced.
func (s *session) replaced(text string) string {
	for word, means := range s.words {
		text = strings.ReplaceAll(text, word, means)
	}
	return text
}

// shell returns the command that runs a line of shell in the session's directory. It and its children end with ctx.
func (s *session) shell(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", "-c", s.replaced(line))
	cmd.Dir = s.dir
	cmd.Env = append([]string{
		"PATH=" + binaries + ":" + s.dir + ":" + os.Getenv("PATH"),
		"HOME=" + s.dir, "TMPDIR=" + s.dir, "KUBECONFIG=" + s.server.kubeconfig,
		"HOOK_URL=" + s.hook.URL, "HOOK_PORT=" + s.hook.port(), "HOOK_CA=" + s.hook.ca,
		"HOURS_AGO=" + time.Now().UTC().Add(-40*time.Hour-30*time.Minute).Format("2006-01-02T15:04:05"),
	}, s.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// settle replaces text that differs from run to run, and cuts white space at the ends of lines.
func (s *session) settle(out string) string {
	for word, means := range s.words {
		out = strings.ReplaceAll(out, means, word)
	}
	out = strings.ReplaceAll(steady(out), s.dir, "DIR")
	out = strings.ReplaceAll(strings.ReplaceAll(out, ":"+s.hook.port(), ":PORT"), s.hook.ca, "CA")
	// An age keeps its width in a column, so that the text after it does not move.
	for range 2 { // of two next to each other the first takes the space between them
		out = regexp.MustCompile(`(?m)( )\d{1,2}s( +|$)`).ReplaceAllStringFunc(out, func(age string) string {
			return fmt.Sprintf("%-*s", len(age), " AGE")
		})
	}
	return strings.TrimRight(out, "\n")
}

// steady replaces times, uids, resource versions and addresses.
func steady(out string) string {
	for _, r := range []struct {
		pattern *regexp.Regexp
		by      string
	}{
		{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
		{regexp.MustCompile(`(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}`),
			"DATE"},
		{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4} [A-Z]+`), "DATE"},
		{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "UID"},
		{regexp.MustCompile(`(resourceVersion\\?"?: ?\\?")\d+`), "${1}N"},
		{regexp.MustCompile(`(ResourceVersion in record \()\d+`), "${1}N"},
		{regexp.MustCompile(`"Bad_\w{5}"`), `"Bad_XXXXX"`},
		{regexp.MustCompile(`(Resource Version: +)\d+`), "${1}N"},
		{regexp.MustCompile(`https://127\.0\.0\.1:\d+`), "https://SERVER"},
		{regexp.MustCompile(`kubectl-edit-\d+\.yaml`), "kubectl-edit-N.yaml"},
		// kubectl wait logs that its watch was short when its time limit ends the watch within the first second.
		{regexp.MustCompile(`(?m)^[IWE]\d{4} .* reflector\.go:\d+\].*very short watch.*\n`), ""},
		{regexp.MustCompile(`(?m)[ \t]+$`), ""},
	} {
		out = r.pattern.ReplaceAllString(out, r.by)
	}
	return out
}

// TestSteady keeps kubectl's log of its own watch, which only slow machines write, out of the comparison.
func TestSteady(t *testing.T) {
	const log = `I1124 02:19:49.113873    5165 reflector.go:664] "Warning: watch ended with error" ` +
		`err="very short watch: reflector.go:343: Unexpected watch close"` + "\n"
	const timeout = "error: timed out waiting for the condition on crontabs/my-new-cron-object\n"
	if got := steady(log + timeout); got != timeout {
		t.Errorf("got %q, want %q", got, timeout)
	}
}

// background is a command that runs while the script goes on.
type background struct {
	stop  context.CancelFunc
	ended chan struct{} // closed when the command has ended
	mu    struct {
		sync.Mutex
		out     bytes.Buffer
		changed chan struct{} // closed and replaced by each write
	}
}

func (s *session) startBackground(t *testing.T, line string) {
	ctx, stop := context.WithTimeout(t.Context(), commandLimit)
	b := &background{stop: stop, ended: make(chan struct{})}
	b.mu.changed = make(chan struct{})
	cmd := s.shell(ctx, line)
	cmd.Stdout, cmd.Stderr = b, b
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.background = b
	go func() { cmd.Wait(); close(b.ended) }()
}

// Write receives the command's output.
func (b *background) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.mu.changed)
	b.mu.changed = make(chan struct{})
	return b.mu.out.Write(p)
}

// wait returns the first n lines, or all lines when the command ends.
func (b *background) wait(t *testing.T, n int) string {
	for {
		b.mu.Lock()
		out, changed := b.mu.out.String(), b.mu.changed
		b.mu.Unlock()
		if strings.Count(out, "\n") >= n {
			return out
		}
		select {
		case <-changed:
		case <-b.ended:
			t.Errorf("the command in the background ended before it printed %d lines", n)
			return out
		}
	}
}

func (s *session) endBackground() {
	if s.background != nil {
		s.background.stop()
		<-s.background.ended
		s.background = nil
	}
}
