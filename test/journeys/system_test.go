package journeys

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/internal/testing/page"
)

// enter runs the appended command in the system at $0, from the folder /root. The system has its own network, so that
// the ports of the page are free, and its own process namespace, so that no process outlives the command. $1, $2 and $3
// are this machine's Go, its modules and its build cache, $4 this repository; "" for a system without them.
const enter = `set -e
ip link set lo up
mount -t proc proc "$0/proc"
share() {
	if [ -n "$1" ]; then
		mkdir -p "$root/$2"
		mount --bind "$1" "$root/$2"
	fi
}
root=$0
share "$1" usr/local/go
share "$2" go/mod
share "$3" go/cache
share "$4" src
shift 4
exec chroot "$root" sh -c 'cd /root && exec "$@"' sh "$@"
`

// system is a clean Debian.
type system struct {
	root   string
	goTool bool
}

// newSystem unpacks a system, with the files of a release in /root.
func newSystem(t *testing.T, goTool bool) system {
	t.Helper()
	base, release := os.Getenv("JOURNEYS_CHROOT"), os.Getenv("JOURNEYS_RELEASE")
	if base == "" || release == "" {
		t.Skip("there is no clean Debian: make journeys makes one")
	}
	s := system{root: t.TempDir(), goTool: goTool}
	run(t, "tar", "-C", s.root, "-xf", base)
	packages, err := filepath.Glob(filepath.Join(release, "*.deb"))
	if err != nil || len(packages) != 1 {
		t.Fatalf("packages in %s: %v %v", release, packages, err)
	}
	run(t, "cp", packages[0], filepath.Join(release, "SHA256SUMS"), filepath.Join(s.root, "root"))
	run(t, "install", "-m", "755", "systemctl.sh", filepath.Join(s.root, "usr", "bin", "systemctl"))
	run(t, "mkdir", "-p", filepath.Join(s.root, "run", "systemd", "system"))
	hosts := filepath.Join(s.root, "etc", "hosts") // an installer writes it, debootstrap does not
	if err := os.WriteFile(hosts, []byte("127.0.0.1 localhost\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return s
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// session is a root login shell in the system.
func (s system) session(t *testing.T) page.Session {
	t.Helper()
	path := "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	env := []string{"HOME=/root", "LANG=C.UTF-8"}
	shared := []string{"", "", "", ""}
	if s.goTool {
		source, err := filepath.Abs(filepath.Join("..", ".."))
		if err != nil {
			t.Fatal(err)
		}
		shared = []string{
			run(t, "go", "env", "GOROOT"), run(t, "go", "env", "GOMODCACHE"), run(t, "go", "env", "GOCACHE"), source,
		}
		path = "/usr/local/go/bin:" + path
		env = append(env, "GOMODCACHE=/go/mod", "GOCACHE=/go/cache", "GOPROXY=off", "GOTOOLCHAIN=local",
			"CGO_ENABLED=0", "GOFLAGS="+run(t, "go", "env", "GOFLAGS"))
	}
	namespaces := []string{"unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-c", enter, s.root}
	return page.Session{
		Dir: "/root", Root: s.root, Env: append(env, "PATH="+path), Limit: 20 * time.Minute,
		Enter: append(namespaces, shared...),
	}
}
