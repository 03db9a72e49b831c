package main

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestHurriedAlone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		set  string // in the environment
		want bool
	}{
		{nil, "", true},
		{[]string{"--data-dir=x", "--unsafe-no-fsync", "--listen-client-urls", "http://127.0.0.1:1"}, "", true},
		{[]string{"--data-dir", "initial-cluster"}, "", true},
		{[]string{"--initial-cluster", "a=http://127.0.0.1:1,b=http://127.0.0.1:2"}, "", false},
		{[]string{"--initial-cluster=a=http://127.0.0.1:1"}, "", false},
		{[]string{"-election-timeout=1000"}, "", false},
		{[]string{"--heartbeat-interval=100"}, "", false},
		{[]string{"--config-file=x"}, "", false},
		{[]string{"--discovery-srv=example.com"}, "", false},
		{[]string{"gateway", "start"}, "", false},
		{nil, "ETCD_INITIAL_CLUSTER", false},
		{nil, "ETCD_NAME", true},
	} {
		got := hurried(c.args, func(name string) (string, bool) { return "", name == c.set })
		if slices.Equal(got, c.args) == c.want {
			t.Errorf("%q with %s: %q", c.args, c.set, got)
		}
	}
}

// TestEtcdAlone starts etcd with every kind of mistake. etcd ends by itself with a code other than 0 and prints the
// reason.
func TestEtcdAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	file, damaged, missing := filepath.Join(dir, "file"), filepath.Join(dir, "damaged"), filepath.Join(dir, "missing")
	if err := os.WriteFile(file, []byte("no directory\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(damaged, "member", "snap"), 0o700); err != nil {
		t.Fatal(err)
	}
	db := filepath.Join(damaged, "member", "snap", "db")
	if err := os.WriteFile(db, []byte("not a database"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		want string
		args []string
	}{
		"unknown flag":      {"not defined: -no-such-flag", []string{"--no-such-flag"}},
		"argument":          {`\"stray\" is not a valid flag`, []string{"stray"}},
		"no URL":            {"invalid value \"foo\"", []string{"--listen-client-urls=foo"}},
		"no data directory": {"cannot access data directory", []string{"--data-dir=/proc/none/x"}},
		"a file as one":     {"not a directory", []string{"--data-dir=" + file}},
		"no configuration":  {"no such file or directory", []string{"--config-file=" + missing}},
		"damaged data":      {"invalid database", etcdFlags(damaged, "http://127.0.0.1:0")},
		"busy port": {"address already in use",
			etcdFlags(filepath.Join(dir, "a"), "http://"+busy.Addr().String())},
		"no certificate": {"no such file or directory",
			append(etcdFlags(filepath.Join(dir, "b"), "https://127.0.0.1:0"), "--cert-file="+missing,
				"--key-file="+missing)},
		"no certificate at all": {"must be provided for client url",
			etcdFlags(filepath.Join(dir, "c"), "https://127.0.0.1:0")},
	} {
		cmd := command(t, append([]string{"etcd"}, c.args...)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || !exit.Exited() {
			t.Errorf("%s: ended with %v", name, err)
		}
		if !strings.Contains(string(out), c.want) {
			t.Errorf("%s: no %q in:\n%s", name, c.want, out)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "a")); err == nil && info.Mode().Perm() != 0o700 {
		t.Errorf("the data directory has mode %v", info.Mode())
	}
}

// etcdFlags are the flags of a member with its data and its client URL.
func etcdFlags(dir, client string) []string {
	return []string{
		"--data-dir=" + dir, "--unsafe-no-fsync=true", "--listen-peer-urls=http://127.0.0.1:0",
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
	}
}

// TestEtcdHalfOpen ends etcd while clients have begun a handshake and do not go on.
func TestEtcdHalfOpen(t *testing.T) {
	t.Parallel()
	flags := etcdFlags(filepath.Join(t.TempDir(), "data"), "http://127.0.0.1:0")
	cmd := command(t, append([]string{"etcd"}, flags...)...)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	cmd.Stderr = writer
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = writer.Close()
	log := bufio.NewScanner(reader)
	address := linked{t, log}.find(`"serving client traffic insecurely.*"address":"([^"]+)"`)
	var draining sync.WaitGroup
	draining.Go(func() {
		for log.Scan() { // or etcd waits for the reader
		}
	})
	for i := range 90 {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, []string{"", "\x16\x03\x01", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"}[i%3])
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	draining.Wait()
	err = cmd.Wait() // after a minute the test kills it
	var exit *exec.ExitError
	if errors.As(err, &exit) && (exit.ExitCode() == 130 || exit.String() == "signal: interrupt") {
		return
	}
	t.Errorf("ended with %v", err)
}
