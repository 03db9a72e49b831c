package main

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
)

// asCommand makes the test binary behave as the command: the code under test without a second build.
const asCommand = "BOWSPRIT_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// command returns the command with args. It ends at the latest with the test, and in a minute.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	// t.Context ends before cleanup does
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	home := t.TempDir()
	cmd.Env = []string{asCommand + "=1", "HOME=" + home, "XDG_DATA_HOME=" + home, "TMPDIR=" + home, "PATH=" +
		os.Getenv("PATH")}
	return cmd
}

// TestErrors checks that a user's mistakes end with the documented code and one line that names the mistake and its
// repair.
func TestErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("no certificate, no directory\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(dir, "damaged")
	if err := os.MkdirAll(filepath.Join(damaged, "etcd", "member", "snap"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(damaged, "etcd", "member", "snap", "db"), []byte("not a database"),
		0o600); err != nil {
		t.Fatal(err)
	}
	newer := filepath.Join(dir, "newer")
	if err := errors.Join(os.Mkdir(newer, 0o700), os.WriteFile(filepath.Join(newer, "format.json"),
		[]byte(`{"format":99,"version":"v9.8.7"}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { busy.Close() })
	_, busyPort, _ := net.SplitHostPort(busy.Addr().String())
	missing, bare := filepath.Join(dir, "missing"), filepath.Join(dir, "bare")
	if err := errors.Join(os.Mkdir(bare, 0o700),
		os.WriteFile(filepath.Join(bare, "kubeconfig"), []byte("apiVersion: v1\nkind: Config\n"), 0o600)); err != nil {
		t.Fatal(err)
	}

	serve := func(args ...string) []string {
		return append([]string{"serve", "--ephemeral", "--secure-port=0"}, args...)
	}
	tests := []struct {
		name string
		args []string
		want []string // parts of the line, in order
		code exit.Code
	}{
		{"unknown command", []string{"frob"},
			[]string{`unknown command "frob" for "bowsprit"`, "there are ", "serve", "snapshot", "bowsprit --help"},
			exit.Misuse},
		{"nearly a command", []string{"serv"}, []string{`unknown command "serv"`, "did you mean serve?"}, exit.Misuse},
		{"another word for a command", []string{"start"}, []string{`unknown command "start"`, "did you mean serve?"},
			exit.Misuse},
		{"unknown command of snapshot", []string{"snapshot", "frob"},
			[]string{`unknown command "frob" for "bowsprit snapshot"`, "there are restore, save"}, exit.Misuse},
		{"nearly a command of snapshot", []string{"snapshot", "svae"},
			[]string{`unknown command "svae"`, "did you mean save?"}, exit.Misuse},
		{"ephemeral with a directory", serve("--data-dir=" + missing),
			[]string{"--ephemeral and --data-dir", "set one of them"}, exit.Misuse},
		{"data of a later version", []string{"serve", "--secure-port=0", "--data-dir=" + newer},
			[]string{"the data is of a newer format", newer + " was written by bowsprit v9.8.7 in format 99",
				"start that version or a later one"}, exit.Failure},
		{"kubeconfig of no server", []string{"kubeconfig", "--data-dir=" + missing},
			[]string{"no server has written " + missing + "/kubeconfig", "bowsprit serve", "--data-dir"}, exit.Failure},
		{"context that is not merged", []string{"kubeconfig", "--use-context"},
			[]string{"--use-context needs --merge"}, exit.Misuse},
		{"kubeconfig of a user of no server", []string{"kubeconfig", "--user=alice", "--data-dir=" + missing},
			[]string{"no server has written " + missing + "/kubeconfig", "bowsprit serve", "--data-dir"}, exit.Failure},
		{"kubeconfig of a user without an authority", []string{"kubeconfig", "--user=alice", "--data-dir=" + bare},
			[]string{"there is no certificate authority in " + bare + "/pki", "bowsprit serve", "--data-dir"},
			exit.Failure},
		{"user without a name", []string{"kubeconfig", "--user="}, []string{"--user: the name is empty"}, exit.Misuse},
		{"groups of no user", []string{"kubeconfig", "--group=dev"},
			[]string{"--group, --duration and --server need --user"}, exit.Misuse},
		{"group without a name", []string{"kubeconfig", "--user=alice", "--group=dev,"},
			[]string{"--group: the name is empty"}, exit.Misuse},
		{"certificate for no time", []string{"kubeconfig", "--user=alice", "--duration=0"},
			[]string{"--duration 0s: must be positive, such as 24h"}, exit.Misuse},
		{"duration of a certificate that is none", []string{"kubeconfig", "--user=alice", "--duration=1d"},
			[]string{`--duration "1d" is not a value of type duration`}, exit.Misuse},
		{"server that is no URL", []string{"kubeconfig", "--user=alice", "--server=api.example.com"},
			[]string{`--server "api.example.com" is not the URL of a server, such as https://`}, exit.Misuse},
		{"kubectl for no server", []string{"kubectl", "--data-dir", missing, "get", "ns"},
			[]string{"no server has written " + missing + "/kubeconfig", "bowsprit serve --data-dir=" + missing},
			exit.Failure},
		{"kubectl without a directory", []string{"kubectl", "--data-dir"},
			[]string{"flag needs an argument: --data-dir"}, exit.Failure},
		{"proxy for no server", []string{"proxy", "--data-dir=" + missing},
			[]string{"no server has written " + missing + "/kubeconfig", "bowsprit serve", "--data-dir"}, exit.Failure},
		{"kubeconfig that is none", serve("--write-kubeconfig=" + file),
			[]string{"kubeconfig: " + file + " is not a kubeconfig and stays unchanged",
				"choose another file with --write-kubeconfig"}, exit.Failure},
		{"snapshot over a file", []string{"snapshot", "save", file, "--data-dir=" + missing},
			[]string{"nothing was saved: " + file + " exists", "--force"}, exit.Failure},
		{"argument", []string{"serve", "now"},
			[]string{`"bowsprit serve" takes no arguments`, `"now"`, "bowsprit serve --help"}, exit.Misuse},
		{"argument of version", []string{"version", "now"}, []string{`"bowsprit version" takes no arguments`},
			exit.Misuse},
		{"unknown flag", serve("--nope"), []string{"unknown flag: --nope", "bowsprit serve --help"}, exit.Misuse},
		{"flag without value", []string{"serve", "--data-dir"}, []string{"--data-dir", "bowsprit serve --help"},
			exit.Misuse},
		{"port that is no number", serve("--secure-port=abc"),
			[]string{`--secure-port "abc" is not a value of type int`, "bowsprit serve --help"}, exit.Misuse},
		{"duration that is none", serve("--shutdown-timeout=soon"),
			[]string{`--shutdown-timeout "soon" is not a value of type duration`}, exit.Misuse},
		{"gate that is unknown", serve("--feature-gates=Nope=true"),
			[]string{`--feature-gates "Nope=true": unrecognized feature gate: Nope`, "CBORServingAndStorage",
				"bowsprit serve --help"}, exit.Misuse},
		{"negative limit", serve("--max-requests-inflight=-1"),
			[]string{`--max-requests-inflight "-1": must not be negative; its help describes 0`}, exit.Misuse},
		{"audit log without its words", serve("--audit-log-path=-", "--audit-log-mode=", "--audit-log-format=",
			"--audit-log-version="), []string{`invalid audit log mode "", allowed`,
			"invalid group version, allowed", `invalid audit log format "", allowed`}, exit.Failure},
		{"audit log of batches of none", serve("--audit-log-path=-", "--audit-log-mode=batch",
			"--audit-log-batch-max-size=0", "--audit-log-truncate-max-event-size=0"),
			[]string{"invalid audit batch log max batch size", "invalid audit truncate log max event size"},
			exit.Failure},
		{"audit log that holds none", serve("--audit-log-path=-", "--audit-log-mode=batch",
			"--audit-log-batch-buffer-size=0", "--audit-log-truncate-max-batch-size=0"),
			[]string{"invalid audit batch log buffer size", "invalid audit truncate log max batch size"}, exit.Failure},
		{"audit webhook that posts nothing", serve("--audit-webhook-config-file=x", "--audit-webhook-batch-throttle-qps=0"),
			[]string{"invalid audit batch webhook throttle QPS"}, exit.Failure},
		{"negative life", serve("--event-ttl=-1s"),
			[]string{`--event-ttl "-1s": must not be negative; its help describes 0`}, exit.Misuse},
		{"negative time", serve("--min-request-timeout=-3", "--request-timeout=-1s"),
			[]string{"--request-timeout -1s is negative", "; ", "--min-request-timeout -3 is negative"}, exit.Failure},
		{"origin that is too wide", serve("--cors-allowed-origins=example.com"),
			[]string{`--cors-allowed-origins "example.com" matches parts of other hosts' names`, "begin with ^ or //"},
			exit.Failure},
		{"origin that is no expression", serve("--cors-allowed-origins=//(:"),
			[]string{`--cors-allowed-origins "//(:" is not a regular expression`}, exit.Failure},
		{"version of TLS", serve("--tls-min-version=1.3"),
			[]string{`--tls-min-version "1.3" is not a version`, "VersionTLS13"}, exit.Failure},
		{"suite of TLS", serve("--tls-cipher-suites=RC4"), []string{`--tls-cipher-suites: "RC4" is unknown`},
			exit.Failure},
		{"suites without one for HTTP/2", serve("--tls-cipher-suites=TLS_RSA_WITH_AES_128_CBC_SHA"),
			[]string{"HTTP/2 needs TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "add one"}, exit.Failure},
		{"port out of range", serve("--secure-port=70000"),
			[]string{"--secure-port 70000 is not a port", "use 1 to 65535"}, exit.Failure},
		{"two mistakes", serve("--secure-port=70000", "--bind-address=localhost"),
			[]string{"--secure-port 70000", "; ", "--bind-address"}, exit.Failure},
		{"unknown group", serve("--runtime-config=foo/v1"), []string{"--runtime-config: unknown api groups foo/v1"},
			exit.Failure},
		{"log format", serve("--log-format=xml"), []string{`--log-format "xml" is unknown`, "use text or json"},
			exit.Failure},
		{"busy port", []string{"serve", "--ephemeral", "--secure-port=" + busyPort},
			[]string{"127.0.0.1:" + busyPort +
				" is in use by another process: stop it, or choose another port with --secure-port (0 takes a free one)"},
			exit.Failure},
		{"address of another machine", serve("--bind-address=192.0.2.1"),
			[]string{"cannot listen on 192.0.2.1:0", "check --bind-address"}, exit.Failure},
		{"data directory is a file", []string{"serve", "--secure-port=0", "--data-dir=" + file},
			[]string{"data directory " + file, "not a directory", "--data-dir"}, exit.Failure},
		{"data directory below a file", []string{"serve", "--secure-port=0", "--data-dir=" + file + "/sub"},
			[]string{"not a directory", "--data-dir"}, exit.Failure},
		{"group of two lines", []string{"kubeconfig", "--user=a", "--group=g\nsystem:masters"},
			[]string{`"--group=g\nsystem:masters" contains a control character`}, exit.Misuse},
		{"user with an escape sequence", []string{"user", "create", "a\x1b[2J"}, []string{`"a\x1b[2J" contains a control`},
			exit.Misuse},
		{"damaged data directory", []string{"serve", "--secure-port=0", "--data-dir=" + damaged},
			[]string{"data directory " + damaged, "damaged", "restore it from a backup"}, exit.Failure},
		{"kubeconfig below a file", serve("--write-kubeconfig=" + file + "/kubeconfig"),
			[]string{"kubeconfig", "choose another file with --write-kubeconfig"}, exit.Failure},
		{"etcd is no URL", serve("--etcd-servers=foo"), []string{`--etcd-servers: "foo" is not a URL`}, exit.Failure},
		{"etcd's authority is missing", serve("--etcd-servers=https://127.0.0.1:1", "--etcd-cafile="+missing),
			[]string{missing, "check --etcd-cafile"}, exit.Failure},
		{"token file is missing", serve("--token-auth-file=" + missing),
			[]string{"token file", missing, "--token-auth-file"}, exit.Failure},
		{"token file is none", serve("--token-auth-file=" + file),
			[]string{"token file " + file + ": line 1", "--token-auth-file"}, exit.Failure},
		{"client authorities are missing", serve("--client-ca-file=" + missing),
			[]string{"client authorities", missing, "the flag that names it"}, exit.Failure},
		{"client authorities are none", serve("--client-ca-file=" + file),
			[]string{file + " holds no PEM certificate", "the flag that names it"}, exit.Failure},
		{"serving certificate without key", serve("--tls-cert-file=" + file),
			[]string{"--tls-cert-file and --tls-private-key-file go together"}, exit.Failure},
		{"serving certificate is none", serve("--tls-cert-file="+file, "--tls-private-key-file="+file),
			[]string{"serving certificate " + file, "the flag that names it"}, exit.Failure},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			fails(t, test.code, test.want, test.args...)
		})
	}
	t.Run("etcd does not answer", func(t *testing.T) {
		if testing.Short() {
			t.Skip("the server waits ten seconds for etcd")
		}
		t.Parallel()
		fails(t, exit.Failure, []string{"etcd at http://127.0.0.1:1 does not answer", "check --etcd-servers"},
			serve("--etcd-servers=http://127.0.0.1:1")...)
	})
}

// fails runs the command, which must end with code, print nothing, and end its log with a line that has all parts.
func fails(t *testing.T, code exit.Code, parts []string, args ...string) {
	t.Helper()
	cmd := command(t, args...)
	var out, log strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &log
	err := cmd.Run()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != int(code) {
		t.Errorf("ended with %v, want code %d", err, code)
	}
	if out.Len() > 0 {
		t.Errorf("printed %q", out.String())
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	line, ok := strings.CutPrefix(lines[len(lines)-1], "bowsprit: ")
	if !ok {
		t.Fatalf("no message in the last line of:\n%s", log.String())
	}
	rest := line
	for _, part := range parts {
		_, after, found := strings.Cut(rest, part)
		if !found {
			t.Fatalf("no %q (in this order) in: %s", part, line)
		}
		rest = after
	}
	for _, l := range lines[:len(lines)-1] {
		if !strings.Contains(l, "level=") {
			t.Errorf("more than one line: %s", l)
		}
	}
}

// TestOneProcessPerDirectory checks that a second process on a data directory is refused, that the first continues, and
// that a restart finds the data directory in order.
func TestOneProcessPerDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 2 {
		stop := start(t, "serve", "--secure-port=0", "--data-dir="+dir)
		fails(t, exit.Failure,
			[]string{"data directory " + dir, "in use by another process", "choose another --data-dir"}, "serve",
			"--secure-port=0", "--data-dir="+dir)
		stop()
	}
}

// start runs the command until it reports that it is ready and that no controller creates pods. stop interrupts the
// command, which must end with code 0.
func start(t *testing.T, args ...string) (stop func()) {
	t.Helper()
	cmd := command(t, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	ready, found := false, false
	for !ready && lines.Scan() {
		found = found || strings.Contains(lines.Text(), "no controller creates pods for Deployments or Jobs")
		ready = strings.HasPrefix(lines.Text(), "Stop with")
	}
	if !ready {
		t.Fatalf("not ready: %v\n%s", cmd.Wait(), log.String())
	}
	if !found {
		t.Error("nothing says that workloads are not run")
	}
	return func() {
		t.Helper()
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		for lines.Scan() {
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("stop: %v\n%s", err, log.String())
		}
	}
}

// TestHelp checks that the help is on standard output and names every command.
func TestHelp(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"help"}, {"--help"}} {
		out, err := command(t, args...).Output()
		if err != nil {
			t.Errorf("%q: %v", args, err)
		}
		for _, part := range []string{"bowsprit serve", "kubectl", "version", "Examples:"} {
			if !strings.Contains(string(out), part) {
				t.Errorf("%q: no %q in:\n%s", args, part, out)
			}
		}
	}
}
