package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/internal/testing/freeport"
	"github.com/bowsprit/bowsprit/internal/testing/page"
)

// pagePorts matches the ports that a page names. Another test may use the same ports.
var pagePorts = regexp.MustCompile(`\b(6443|1080|8080|813[234]|1[0-9]{4})\b`)

// TestTutorials runs the tutorials, and two other pages, that need further programs (curl, openssl, a program built
// from a project), word for word except for ports and folders.
func TestTutorials(t *testing.T) {
	t.Parallel()
	source, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	folder, err := os.MkdirTemp("", "kp") // a socket's name has about 100 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	for name, words := range map[string]map[string]string{
		// the module of this checkout instead of the published one
		"extension-server": {"--api sea.example.com/v1\ncd": "--api sea.example.com/v1 --replace " + source + "\ncd"},
		"konnectivity":     {"/etc/kubernetes": folder},
		"proxies":          {},
		"clients":          {},
		"ways-in":          {},
		"extension": {"go get github.com/bowsprit/bowsprit@latest": "go mod edit -require=github.com/bowsprit/bowsprit@v0.0.0 " +
			"-replace=github.com/bowsprit/bowsprit=" + source + " && cp " + source + "/go.sum ."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join("..", "..", "docs", "tutorials", name+".md")
			if name == "ways-in" || name == "extension" {
				file = filepath.Join("..", "..", "docs", name+".md")
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, port := range pagePorts.FindAllString(string(text), -1) {
				if words[port] == "" {
					words[port] = strconv.Itoa(freeport.Port(t))
				}
			}
			session := reader(t)
			if name == "clients" {
				cnat(t, session.Dir)
			}
			session.Run(t, file, words)
		})
	}
}

// cnat makes the initial module of the tutorial on client programs, with the dependencies of the module test/clients.
func cnat(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join("..", "clients", name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), strings.Replace(string(text),
			"module github.com/bowsprit/bowsprit/test/clients\n", "module cnat\n", 1))
	}
}

// reader returns a shell for the commands of a page, without data of an earlier server. It keeps Go's build cache.
func reader(t *testing.T) page.Session {
	t.Helper()
	home, temporary := t.TempDir(), t.TempDir() // Go takes no module in the directory for temporary files
	env := []string{"HOME=" + home, "TMPDIR=" + temporary, "BOWSPRIT_SECURE_PORT=" + strconv.Itoa(freeport.Port(t)),
		"PATH=" + binaries + string(filepath.ListSeparator) + os.Getenv("PATH")}
	for _, name := range []string{
		"GOCACHE", "GOMODCACHE", "GOFLAGS", "CGO_ENABLED", "GOPROXY", "GOSUMDB", "GONOSUMDB",
	} {
		value, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, name+"="+strings.TrimSpace(string(value)))
	}
	return page.Session{Dir: home, Env: env, Limit: 10 * time.Minute}
}
