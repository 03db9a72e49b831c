package journeys

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Replacements for the steps of pages about Go: the published module becomes this checkout, with its checksums.
const (
	getModule = "```console\n$ go get github.com/bowsprit/bowsprit\n```"
	getHere   = "```sh\nmkdir operator && cd operator && mv ../tutorial_test.go . && go mod init operator 2> mod.log\n" +
		"cp /src/go.sum . && sed 's/^module .*/module operator/' /src/go.mod > go.mod\n" +
		"go mod edit -require=github.com/bowsprit/bowsprit@v0.0.0 -replace=github.com/bowsprit/bowsprit=/src\n```"
	goTest     = "```console\n$ go test ./...\n```"
	goTestHere = "```sh\ngo mod tidy 2> tidy.log\ngo test ./...\n```\n```text\nok operator\n```"
)

// journeys begin with the installation of the package on Debian, from docs/packages.md, and continue with a page.
var journeys = []struct {
	to, page   string
	from, till string // the first and the last heading to follow; "" for the whole page
	service    bool   // uses the server that the package starts
	goTool     bool   // needs Go
	words      []string
	limit      time.Duration // limit for the time; 0 for none
}{
	{
		to: "a served CronTab", page: "first-steps.md", from: "## A kind of your own\n", till: "## Stop, and go on\n",
		service: true, limit: 2 * time.Minute,
	},
	{to: "a CronTab of a server that one starts oneself", page: "first-steps.md"},
	{
		to: "an operator's test", page: "tutorials/test-an-operator.md", goTool: true,
		words: []string{getModule, getHere, goTest, goTestHere},
	},
	{to: "two users with roles", page: "tutorials/users.md"},
	{
		to: "an extension API server", page: "tutorials/extension-server.md", goTool: true,
		words: []string{"--api sea.example.com/v1\ncd", "--api sea.example.com/v1 --replace /src\ncd"},
	},
	{to: "a converted version", page: "tutorials/versions.md", goTool: true},
	{to: "three replicas", page: "tutorials/replicas.md"},
}

// TestJourneys follows each journey. It measures the time from the first command to the last.
func TestJourneys(t *testing.T) {
	for _, j := range journeys {
		t.Run(strings.ReplaceAll(j.to, " ", "-"), func(t *testing.T) {
			s := newSystem(t, j.goTool)
			text := read(t, j.page)
			if j.from != "" {
				text = between(t, text, j.from, j.till)
			}
			for i := 0; i < len(j.words); i += 2 {
				if !strings.Contains(text, j.words[i]) {
					t.Fatalf("%s has no %q", j.page, j.words[i])
				}
				text = strings.ReplaceAll(text, j.words[i], j.words[i+1])
			}
			install := between(t, read(t, "packages.md"), "## As a service\n", "## As a container\n")
			if !j.service { // the page starts its own server at the service's port
				install += "\n```sh\nkill $(pidof bowsprit); unset KUBECONFIG; rm -r ~/.kube\n```\n"
			}
			file := filepath.Join(t.TempDir(), filepath.Base(j.page))
			if err := os.WriteFile(file, []byte(install+"\n"+text), 0o600); err != nil {
				t.Fatal(err)
			}
			session, began := s.session(t), time.Now()
			session.Run(t, file, nil)
			took := time.Since(began)
			fmt.Printf("journeys: %-50s docs/%-35s %5.1f s\n", j.to, j.page, took.Seconds())
			if j.limit > 0 && took > j.limit {
				t.Errorf("it took %s, more than %s", took, j.limit)
			}
		})
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// between returns the text between two lines of a page.
func between(t *testing.T, text, from, till string) string {
	t.Helper()
	_, text, found := strings.Cut(text, "\n"+from)
	text, _, ends := strings.Cut(text, "\n"+till)
	if !found || !ends {
		t.Fatalf("no headings %q and %q in this order", from, till)
	}
	return text + "\n"
}
