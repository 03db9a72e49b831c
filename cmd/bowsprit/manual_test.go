package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/manual"
)

// TestManual checks that the files for packages cover every command and flag, and contain no detail of the build
// machine.
func TestManual(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := command(t, "manual", dir)
	home := strings.TrimPrefix(cmd.Env[1], "HOME=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	reference := read(t, dir, "commands.md")
	for _, c := range manual.Tree(rootCommand()) {
		name := strings.ReplaceAll(c.CommandPath(), " ", "-")
		page := read(t, dir, "man1", name+".1")
		if !strings.HasPrefix(page, ".TH ") || !strings.Contains(page, ".SH SYNOPSIS\n") ||
			strings.Contains(page, home) {
			t.Errorf("%s.1:\n%s", name, page)
		}
		if !strings.Contains(reference, "\n## "+c.CommandPath()+"\n") {
			t.Errorf("commands.md does not have %q", c.CommandPath())
		}
		for line := range strings.Lines(c.LocalFlags().FlagUsages()) {
			flag := strings.Fields(line)
			if len(flag) > 1 && strings.HasPrefix(flag[0], "--") && flag[0] != "--help" &&
				!strings.Contains(reference, "| `"+flag[0]) {
				t.Errorf("%s: commands.md does not have %s", c.CommandPath(), flag[0])
			}
		}
	}
	if strings.Contains(reference, home) {
		t.Error("commands.md names the home of who has made it")
	}
	for file, want := range map[string]string{
		"bowsprit": "complete -o", "_bowsprit": "#compdef bowsprit", "bowsprit.fish": "complete -c bowsprit",
		"bowsprit.ps1": "Register-ArgumentCompleter",
	} {
		if text := read(t, dir, "completion", file); !strings.Contains(text, want) {
			t.Errorf("completion/%s lacks %q", file, want)
		}
	}
}

func read(t *testing.T, parts ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A server that systemd has started says when it is ready and when it stops.
func TestServiceManagerHears(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "n")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Skip("no datagram sockets:", err)
	}
	t.Cleanup(func() { conn.Close() })
	cmd := command(t, "serve", "--ephemeral", "--secure-port=0")
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+name, "WATCHDOG_USEC=300000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	receive := func() string {
		if err := conn.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
			t.Fatal(err)
		}
		buffer := make([]byte, 4096)
		n, err := conn.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		return string(buffer[:n])
	}
	if message := receive(); !strings.HasPrefix(message, "READY=1\nSTATUS=Serving https://") {
		t.Errorf("first: %q", message)
	}
	if message := receive(); message != "WATCHDOG=1" {
		t.Errorf("then: %q", message)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	message := receive()
	for message == "WATCHDOG=1" {
		message = receive()
	}
	if !strings.HasPrefix(message, "STOPPING=1\n") {
		t.Errorf("last: %q", message)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// doctor takes the settings of serve from all sources. Its exit code reports problems.
func TestDoctor(t *testing.T) {
	t.Parallel()
	fine, err := command(t, "doctor", "--secure-port=0", "-o", "json").Output()
	if err != nil || !strings.Contains(string(fine), `"check": "data directory"`) {
		t.Errorf("%v: %s", err, fine)
	}
	cmd := command(t, "doctor", "--secure-port=0")
	cmd.Env = append(cmd.Env, "BOWSPRIT_TLS_CERT_FILE=/only/half")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "--tls-private-key-file go together") ||
		!strings.Contains(string(out), "to do: ") {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := command(t, "doctor", "-o", "xml").CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "use text, json or yaml") {
		t.Errorf("%v: %s", err, out)
	}
}
