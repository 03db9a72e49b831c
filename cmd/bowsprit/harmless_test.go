package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/manual"
)

// theirs is a path outside of the working directory, where a user or the system keeps files, as a shell reads it.
const theirs = `["']?(~|\$\{?(HOME|KUBECONFIG|XDG_\w+)|/(etc|usr|var|home|root|opt|srv|boot|bin|lib)\b)`

// harmful lists patterns for commands that destroy files or run other projects' programs when a reader copies them.
var harmful = []struct {
	why     string
	pattern *regexp.Regexp
}{
	{"a redirection empties a file that is there", regexp.MustCompile(`(^|[^>&\d=-])[12]?>\|? ?` + theirs)},
	{"tee without --append empties a file that is there", regexp.MustCompile(`\btee (-[b-z]+ )*` + theirs)},
	{"the file is replaced", regexp.MustCompile(`\b(cp|mv|install|rsync) ([^|;&]* )?` + theirs + `[^ ]*/?(config|kubeconfig|\.\w+rc|\.\w+)["']?\s*($|[;&|#])`)},
	{"the file is replaced", regexp.MustCompile(`\b(cp|mv|install|ln) ([^|;&]* )?` + theirs + `\S*\.kube/config\b["']?\s*($|[;&|#])`)},
	{"the file is replaced", regexp.MustCompile(`\bln -\w*f\w* `)},
	{"the file is replaced", regexp.MustCompile(`\bdd [^|;&]*\bof=` + theirs)},
	{"the file is replaced", regexp.MustCompile(`\b(curl|wget) [^|;&]*(-o|-O|--output) ?` + theirs)},
	{"files of others may be there", regexp.MustCompile(`\brm (-\w+ )*-\w*[rR]\w* (-\w+ )*` + theirs)},
	{"files of others may be there", regexp.MustCompile(`\brm (-\w+ )*` + theirs + `\S*\.kube\b`)},
	{"a program runs unseen", regexp.MustCompile(`\b(curl|wget)\b[^;]*\| *(sudo )?(-\w+ )*(ba|z|da|k)?sh\b`)},
	{"a program runs unseen", regexp.MustCompile(`\b(ba|z|da|k)?sh (-c )?["']?(\$\(|<\() ?(curl|wget)\b`)},
	{"processes of others may have the name", regexp.MustCompile(`\b(pkill|killall)\b`)},
	{"the current context of all terminals changes", regexp.MustCompile(`\bkubectl config use-context\b`)},
}

// harmless lists lines that match a pattern and destroy nothing, by the beginning of their file and a part of the line.
var harmless = []struct{ file, part, why string }{}

// TestHarmful has the patterns find harmful commands, and pass over the usual commands of pages.
func TestHarmful(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"mkdir -p ~/.kube && bowsprit kubeconfig --data-dir /var/lib/bowsprit > ~/.kube/config",
		"bowsprit kubeconfig >~/.kube/config", "bowsprit kubeconfig > $HOME/.kube/config",
		`bowsprit kubeconfig > "${HOME}/.kube/config"`, `kubectl config view --raw > "$KUBECONFIG"`,
		"kubectl config view --raw 1> $KUBECONFIG", "cat > /etc/kubernetes/audit.yaml <<EOF",
		"bowsprit kubeconfig | tee ~/.kube/config", "bowsprit kubeconfig | sudo tee /etc/kubernetes/admin.conf",
		"cp admin.conf ~/.kube/config", "sudo cp -i /etc/kubernetes/admin.conf $HOME/.kube/config",
		"mv kubeconfig ~/.kube/config && kubectl get pods", "install -m 600 admin.conf ~/.kube/config",
		"ln -sf /usr/bin/bowsprit ~/bin/kubectl", "ln -s $PWD/kubeconfig ~/.kube/config", "dd if=x of=/etc/passwd",
		"curl -L https://example.com/x -o /usr/local/bin/kubectl", "rm -rf ~/.kube", "rm -r /var/lib/bowsprit",
		"rm -f -r $HOME/.local/share/bowsprit", "rm ~/.kube/config", "curl -sfL https://get.example.com | sh -",
		"curl -fsSL https://example.com/i.sh | sudo bash", "wget -qO- https://example.com | bash -s -- --yes",
		`sh -c "$(curl -fsSL https://example.com/install.sh)"`, "bash <(curl -s https://example.com)",
		"pkill bowsprit", "kubectl config use-context bowsprit", "echo x >| ~/.bashrc", "cp mine ~/.bashrc",
	} {
		if harm(line) == "" {
			t.Errorf("nothing is said about %q", line)
		}
	}
	for _, line := range []string{
		"bowsprit kubeconfig > admin.conf", "bowsprit kubeconfig --merge", "kubectl get pods > /dev/null 2>&1",
		"echo export PATH=$HOME/bin:$PATH >> ~/.profile", "cp kubeconfig remote.conf", `cp "$KUBECONFIG" mine`,
		"cp ~/.kube/config backup.conf", "curl --silent http://localhost:8080/api/ | grep kind", "rm -r ./state",
		"command -v kubectl || ln -s /usr/bin/bowsprit /usr/local/bin/kubectl", "export KUBECONFIG=$HOME/x",
		"kubectl --kubeconfig=a.conf config use-context bowsprit", "a -> /etc/kubernetes", "size >= /var",
	} {
		if why := harm(line); why != "" {
			t.Errorf("%q: %s", line, why)
		}
	}
}

// harm returns the reason why a line is harmful, or "".
func harm(line string) string {
	for _, h := range harmful {
		if h.pattern.MatchString(line) {
			return h.why
		}
	}
	return ""
}

// TestHarmless looks for harmful commands in all that a user reads and may copy: pages, help texts, files of scaffolds,
// packages and examples, and the texts that programs print.
func TestHarmless(t *testing.T) {
	t.Parallel()
	used := make([]bool, len(harmless))
	look := func(name string, from int, text string) {
		lines := strings.Split(strings.ReplaceAll(text, "\\\n", " \n"), "\n")
		for i, line := range lines {
			why := harm(line)
			if why == "" {
				continue
			}
			known := slices.IndexFunc(harmless, func(h struct{ file, part, why string }) bool {
				return strings.HasPrefix(name, h.file) && strings.Contains(line, h.part)
			})
			if known < 0 {
				t.Errorf("%s:%d: %s:\n%s", name, from+i, why, strings.TrimSpace(line))
				continue
			}
			used[known] = true
		}
	}
	look("help", 1, manual.Markdown(rootCommand()))
	look("start page", 1, startPage)
	files := 0
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		name := strings.TrimPrefix(filepath.ToSlash(path), "../../")
		switch {
		case err != nil:
			return err
		case e.IsDir() && (e.Name() == "testdata" || e.Name() == "bin" || e.Name() == "node_modules" ||
			strings.HasPrefix(e.Name(), ".") && e.Name() != ".github" && path != root):
			return fs.SkipDir
		case e.IsDir() || strings.HasPrefix(name, "tools/") || strings.HasPrefix(name, "test/"):
			return nil
		}
		switch filepath.Ext(name) {
		case ".md", ".tmpl", ".html", ".yaml", ".yml", ".sh", ".txt", ".service", ".rb":
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			look(name, 1, string(data))
		case ".go":
			if strings.HasSuffix(name, "_test.go") {
				return nil
			}
			if err := literals(path, func(line int, text string) { look(name, line, text) }); err != nil {
				return err
			}
		default:
			return nil
		}
		files++
		return nil
	})
	if err != nil || files < 500 {
		t.Errorf("%d files: %v", files, err)
	}
	for i, h := range harmless {
		if !used[i] {
			t.Errorf("%s has no %q any more", h.file, h.part)
		}
	}
}

// literals calls f with each string literal of a Go file that contains a space, because a command contains one.
func literals(file string, f func(line int, text string)) error {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		if ok && literal.Kind == token.STRING {
			if text, err := strconv.Unquote(literal.Value); err == nil && strings.Contains(text, " ") {
				f(set.Position(literal.Pos()).Line, text)
			}
		}
		return true
	})
	return nil
}
