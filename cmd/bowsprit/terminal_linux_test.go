package main

import (
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal returns both ends of a new terminal.
func terminal(t *testing.T) (keyboard, screen *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals:", err)
	}
	t.Cleanup(func() { keyboard.Close() })
	if err := unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	screen, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return keyboard, screen
}

// TestConsent answers the question of each command that would change the server of KUBECONFIG. Only yes permits the
// change.
func TestConsent(t *testing.T) {
	t.Parallel()
	l := &landscape{}
	l.front(t, http.NotFoundHandler())
	u := l.newUser(t, false, t.TempDir(), "KUBECONFIG="+l.kubeconfig)
	ask := func(i invocation, answer string) (shown string, reached []string) {
		t.Helper()
		l.take()
		keyboard, screen := terminal(t)
		cmd := command(t, slices.Concat(strings.Fields(i.path), strings.Fields(i.args))...)
		cmd.Dir, cmd.Env = u.work, append(cmd.Env, append([]string{"HOME=" + u.home}, u.env...)...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = screen, screen, screen
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		screen.Close()
		if _, err := io.WriteString(keyboard, answer); err != nil {
			t.Fatal(err)
		}
		out, _ := io.ReadAll(keyboard) // fails when the last program has ended
		if err := cmd.Wait(); err == nil {
			t.Errorf("bowsprit %s %s, %q: no failure at a server without pages:\n%s", i.path, i.args, answer, out)
		}
		return string(out), l.take()
	}
	const prompt = "Change that server? [y/N]"
	for _, i := range invocations {
		if effects[i.path] != writes || i.effect != 0 || i.until != "" {
			continue
		}
		shown, reached := ask(i, "n\n")
		if len(reached) > 0 || !strings.Contains(shown, l.production+" (context production)") ||
			!strings.Contains(shown, prompt) || !strings.Contains(shown, "nothing was changed") {
			t.Errorf("bowsprit %s %s, no: %q reached production\n%s", i.path, i.args, reached, shown)
		}
	}
	i := invocation{path: "token delete", args: "abcdef"}
	for _, answer := range []string{"\n", "\x04", "ye\n", "production\n", "nyes\n"} {
		if shown, reached := ask(i, answer); len(reached) > 0 || !strings.Contains(shown, prompt) {
			t.Errorf("%q: %q reached production\n%s", answer, reached, shown)
		}
	}
	for _, answer := range []string{"y\n", "yes\n", " YES \n"} {
		shown, reached := ask(i, answer)
		if !slices.ContainsFunc(reached, func(r string) bool { return strings.HasPrefix(r, "DELETE ") }) ||
			!strings.Contains(shown, "Server: "+l.production+" (context production)") {
			t.Errorf("%q: %q reached production\n%s", answer, reached, shown)
		}
	}
}
