package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// desk is a user's machine: a home directory, and a PATH with a systemctl.
type desk struct{ home, path string }

// newDesk returns a machine without a systemd for the user. Its instances stop when t ends.
func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{home: t.TempDir(), path: t.TempDir()}
	d.systemctl(t, "exit 1")
	t.Cleanup(func() { d.run("down", "--all", "--delete") })
	return d
}

// systemctl sets the content of the program systemctl.
func (d *desk) systemctl(t *testing.T, script string) {
	t.Helper()
	text := "#!/bin/sh\n" + script + "\n"
	if err := os.WriteFile(filepath.Join(d.path, "systemctl"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// run runs bowsprit, and returns its output and exit code.
func (d *desk) run(args ...string) (out string, code int) {
	cmd := exec.Command(filepath.Join(binaries, "bowsprit"), args...)
	cmd.Env = []string{"HOME=" + d.home, "PATH=" + d.path + ":" + os.Getenv("PATH"), "BOWSPRIT_SIMULATE=nodes=7"}
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	_ = cmd.Run() // the exit code says it
	return both.String(), cmd.ProcessState.ExitCode()
}

// works fails the test unless bowsprit succeeds, and its output has a text.
func (d *desk) works(t *testing.T, want string, args ...string) string {
	t.Helper()
	out, code := d.run(args...)
	if code != 0 || !strings.Contains(out, want) {
		t.Fatalf("bowsprit %q: exit code %d, want %q in:\n%s", args, code, want, out)
	}
	return out
}

// fails fails the test unless bowsprit fails, and its error has a text.
func (d *desk) fails(t *testing.T, want string, args ...string) {
	t.Helper()
	if out, code := d.run(args...); code == 0 || !strings.Contains(out, want) {
		t.Fatalf("bowsprit %q: exit code %d, want an error with %q in:\n%s", args, code, want, out)
	}
}

// row is a part of the output of "bowsprit list -o json".
type row struct {
	Name, Status, URL, Data, Unit string
	PID                           int
}

func (d *desk) list(t *testing.T) map[string]row {
	t.Helper()
	var rows []row
	if err := json.Unmarshal([]byte(d.works(t, "[", "list", "-o", "json")), &rows); err != nil {
		t.Fatal(err)
	}
	out := map[string]row{}
	for _, r := range rows {
		out[r.Name] = r
	}
	return out
}

// TestInstances starts, uses and stops two named servers, and kills one of them.
func TestInstances(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.works(t, "There is no instance", "list")
	d.fails(t, "start one with \"bowsprit up\"", "status")
	d.works(t, "bowsprit-one is in ", "up", "one")
	d.works(t, "The instance one runs already", "up", "one")
	d.fails(t, "runs with other settings", "up", "one", "--simulate=nodes=1")
	d.works(t, "local, instance one", "demo")
	d.works(t, "demo", "kubectl", "get", "namespaces", "--no-headers", "-o", "name")

	d.works(t, "bowsprit-two", "up", "two", "--ephemeral", "--simulate=nodes=2")
	d.fails(t, "add --name=NAME; there are one, two", "status")
	d.fails(t, "several servers of this user run", "kubectl", "get", "namespaces")
	d.fails(t, "several servers of this user run", "kubeconfig")
	if out := d.works(t, "", "kubectl", "--context=bowsprit-two", "get", "nodes", "-o", "name"); strings.Count(out,
		"node/") != 2 {
		t.Errorf("the nodes of two: %s", out)
	}
	d.works(t, "Ready", "status", "--name=one")
	d.fails(t, "--name and --data-dir both name a server", "status", "--name=one", "--data-dir=x")
	d.fails(t, "there is no instance three", "status", "--name=three")
	rows := d.list(t)
	if rows["one"].Status != "Ready" || rows["two"].Status != "Ready" || rows["two"].Data != "memory" ||
		rows["one"].URL == rows["two"].URL {
		t.Errorf("%+v", rows)
	}

	// A killed instance starts again at its address, with its data and its context.
	if err := syscall.Kill(rows["one"].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	d.works(t, "Bowsprit is ready", "logs", "one", "--follow") // until the process has ended
	if again := d.list(t)["one"]; again.Status != "Stopped" {
		t.Errorf("%+v", again)
	}
	d.works(t, "is the current context", "up", "one", "--switch")
	if again := d.list(t)["one"]; again.URL != rows["one"].URL {
		t.Errorf("%s, it was %s", again.URL, rows["one"].URL)
	}
	d.works(t, "demo", "kubectl", "get", "namespaces")

	d.works(t, "The instance two is removed", "down", "two")
	d.works(t, "The instance one is stopped", "down")
	d.works(t, "was stopped already", "down", "one")
	d.fails(t, "start it with \"bowsprit up one\"", "status", "--name=one")
	d.works(t, "The instance one is removed", "down", "one", "--delete")
	config, err := os.ReadFile(filepath.Join(d.home, ".kube", "config"))
	if err != nil || strings.Contains(string(config), "bowsprit-") {
		t.Errorf("%v: the file of kubectl has a context of an instance that is removed:\n%s", err, config)
	}
	if left, err := os.ReadDir(filepath.Join(d.home, ".local", "share", "bowsprit-instances")); err != nil ||
		len(left) > 0 {
		t.Errorf("%v: %v is left", err, left)
	}
}

// TestInstanceErrors checks that an instance that does not start leaves nothing, and that the error has the reason.
func TestInstanceErrors(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	busy := startServer(t, "--ephemeral")
	_, port, _ := strings.Cut(strings.TrimPrefix(busy.config(t).Host, "https://"), ":")
	d.fails(t, "is in use by another process", "up", "one", "--secure-port="+port)
	d.fails(t, "unknown flag: --nope", "up", "one", "--", "--nope")
	d.fails(t, "cannot be the name of an instance", "up", "One")
	d.fails(t, "takes one name", "up", "one", "two")
	d.fails(t, "is no port", "up", "one", "--secure-port=70000")
	d.fails(t, "no such file", "up", "one", "--config=nosuch.yaml")
	d.fails(t, "there is no instance one", "down", "one")
	d.fails(t, "there is no instance: ", "logs")
	d.works(t, "There is no instance", "list")

	// Data without settings, which the user has deleted, survives a start that fails.
	kept := filepath.Join(d.home, ".local", "share", "bowsprit-instances", "lost", "data", "kept")
	if err := os.MkdirAll(kept, 0o700); err != nil {
		t.Fatal(err)
	}
	d.fails(t, "is in use by another process", "up", "lost", "--secure-port="+port)
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
	d.works(t, "is removed", "down", "lost", "--delete")
	d.works(t, "bowsprit-free", "up", "free", "--secure-port=0")
	d.works(t, "is removed", "down", "free", "--delete")

	served := startServer(t, "--data-dir="+filepath.Join(d.home, ".local", "share", "bowsprit"))
	d.fails(t, "\"bowsprit serve\" runs with the data", "up")
	d.works(t, "bowsprit-one", "up", "one")
	d.fails(t, "default (of \"bowsprit serve\")", "status")
	d.works(t, served.config(t).Host, "status", "--name=default")
	d.works(t, served.config(t).Host, "list")
}

// TestInstanceOfSystemd checks that an instance is a unit of the user's systemd. The test's systemctl starts a unit's
// program by itself.
func TestInstanceOfSystemd(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	units := filepath.Join(d.home, ".config", "systemd", "user")
	d.systemctl(t, `echo "$@" >> "$HOME/systemctl.log"
[ "$2" != restart ] && exit 0
exec > /dev/null 2>&1
unit="$HOME/.config/systemd/user/$4"
program=$(sed -n 's/^ExecStart=//p' "$unit")
log=$(sed -n 's/^StandardOutput=append://p' "$unit")
eval "setsid $program" >> "$log" 2>&1 < /dev/null &`)
	d.works(t, "It starts again", "up", "one")
	if got := d.list(t)["one"]; got.Unit != "bowsprit-one.service" || got.Status != "Ready" {
		t.Errorf("%+v", got)
	}
	d.works(t, "is stopped", "down", "one")
	if _, err := os.Stat(filepath.Join(units, "bowsprit-one.service")); !os.IsNotExist(err) {
		t.Errorf("the unit is left: %v", err)
	}
	calls, err := os.ReadFile(filepath.Join(d.home, "systemctl.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range []string{
		"--user daemon-reload", "--user enable bowsprit-one.service",
		"--user disable --now --no-block bowsprit-one.service",
	} {
		if !strings.Contains(string(calls), call) {
			t.Errorf("%q is missing in:\n%s", call, calls)
		}
	}
	d.works(t, "Its data is gone then", "up", "two", "--ephemeral") // never a unit
	if got := d.list(t)["two"]; got.Unit != "" {
		t.Errorf("%+v", got)
	}
}
