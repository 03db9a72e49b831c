package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/internal/testing/freeport"
)

// tunnel is a running "ssh -D".
type tunnel struct {
	address string // of the SOCKS5 proxy that ssh opens
	stop    func()
}

// sshdConfig is for a server that one client speaks to over its standard input.
const sshdConfig = `
HostKey DIR/host
AuthorizedKeysFile DIR/user.pub
StrictModes no
PidFile none
UsePAM USEPAM
`

// startSSH connects OpenSSH's client with OpenSSH's server on this machine: "ssh -D PORT -q -N user@host". The server
// is the machine's, or comes from Debian's packages, unpacked into a directory of the test; without a server t is
// skipped.
func startSSH(t *testing.T) *tunnel {
	t.Helper()
	sshd, env := findSSHD(t)
	dir, err := os.MkdirTemp("", "ssh") // the paths of the test's own directories are not for other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	user, as := sshUser(t)
	for _, name := range []string{"host", "user"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f",
			filepath.Join(dir, name)).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v: %s", err, out)
		}
	}
	// sshd without root cannot read the shadow file, and the account nobody may be locked there: PAM decides.
	config := strings.NewReplacer("DIR", dir, "USEPAM", map[bool]string{true: "yes", false: "no"}[as != nil]).
		Replace(sshdConfig)
	if err := os.WriteFile(filepath.Join(dir, "sshd_config"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if as != nil {
		own(t, dir, as)
	}
	return connectSSH(t, dir, sshd, user, env, as)
}

// connectSSH starts the client and waits until it listens.
func connectSSH(t *testing.T, dir, sshd, user string, env []string, as *syscall.Credential) *tunnel {
	t.Helper()
	address := freeport.Address(t)
	cmd := exec.CommandContext(bounded(t, 5*time.Minute), "ssh", "-D", address, "-v", "-N",
		"-F", "/dev/null", "-i", filepath.Join(dir, "user"), "-o", "BatchMode=yes", "-o", "ExitOnForwardFailure=yes",
		"-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
		"-o", fmt.Sprintf("ProxyCommand=%s -i -e -f %s/sshd_config", sshd, dir),
		user+"@kubernetes-remote-server.example")
	cmd.Dir, cmd.Env = dir, append(append(os.Environ(), "HOME="+dir), env...)
	cmd.WaitDelay = 5 * time.Second // for sshd, which writes to the same place
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	output, ended := &lines{changed: make(chan struct{}, 1)}, make(chan struct{})
	cmd.Stderr = output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { cmd.Wait(); close(ended) }()
	to := &tunnel{address: address, stop: func() {
		cmd.Process.Signal(syscall.SIGTERM)
		<-ended
	}}
	t.Cleanup(to.stop)
	for !output.have("Entering interactive session") {
		select {
		case <-output.changed:
		case <-ended:
			t.Skipf("ssh and sshd do not come together on this machine: %s", output.text())
		}
	}
	return to
}

// findSSHD returns the path of OpenSSH's server and its environment.
func findSSHD(t *testing.T) (path string, env []string) {
	t.Helper()
	for _, name := range []string{"ssh", "ssh-keygen"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("OpenSSH's client is not on this machine: %v", err)
		}
	}
	for _, name := range []string{"sshd", "/usr/sbin/sshd", "/usr/local/sbin/sshd"} {
		if found, err := exec.LookPath(name); err == nil {
			if found, err = filepath.Abs(found); err == nil {
				return found, nil
			}
		}
	}
	dir, err := os.MkdirTemp("", "sshd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	get := exec.CommandContext(bounded(t, 30*time.Second), "apt-get", "download", "-o", "Acquire::Retries=0",
		"-o", "Acquire::http::Timeout=10", "openssh-server", "libwrap0")
	get.Dir = dir
	if out, err := get.CombinedOutput(); err != nil {
		t.Skipf("OpenSSH's server is neither on this machine nor to be had from its packages: %v: %s", err, out)
	}
	packages, _ := filepath.Glob(filepath.Join(dir, "*.deb"))
	for _, p := range packages {
		if out, err := exec.Command("dpkg-deb", "-x", p, dir).CombinedOutput(); err != nil {
			t.Skipf("Debian's packages cannot be unpacked here: %v: %s", err, out)
		}
	}
	libraries, _ := filepath.Glob(filepath.Join(dir, "*", "lib", "*-linux-gnu"))
	more, _ := filepath.Glob(filepath.Join(dir, "lib", "*-linux-gnu"))
	return filepath.Join(dir, "usr", "sbin", "sshd"),
		[]string{"LD_LIBRARY_PATH=" + strings.Join(append(libraries, more...), ":")}
}

// sshUser returns the connecting user: this user, or nobody if the test runs as root, because root's sshd needs more of
// the machine.
func sshUser(t *testing.T) (string, *syscall.Credential) {
	t.Helper()
	if os.Getuid() != 0 {
		me, err := user.Current()
		if err != nil {
			t.Skip(err)
		}
		return me.Username, nil
	}
	other, err := user.Lookup("nobody")
	if err != nil {
		t.Skip(err)
	}
	uid, _ := strconv.ParseUint(other.Uid, 10, 32)
	gid, _ := strconv.ParseUint(other.Gid, 10, 32)
	return other.Username, &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// own gives a directory and the files in it to a user.
func own(t *testing.T, dir string, as *syscall.Credential) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, dir) {
		if err := os.Chown(file, int(as.Uid), int(as.Gid)); err != nil {
			t.Fatal(err)
		}
	}
}

// lines is the output of a process.
type lines struct {
	changed chan struct{} // capacity 1: one notice is enough
	mu      struct {
		sync.Mutex
		bytes.Buffer
	}
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.changed <- struct{}{}:
	default:
	}
	return l.mu.Write(p)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.String()
}

func (l *lines) have(text string) bool { return strings.Contains(l.text(), text) }
