// Package scaffold is the command "extension init", which writes the project of an extension API server.
package scaffold

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/output"
)

//go:embed project
var project embed.FS

// values are the inputs of a project's templates.
type values struct {
	Name    string // of the program, the service and so on
	Module  string
	API     string // group/version
	Kind    string
	Group   string // of API, as Version
	Version string // see Group
	Plural  string
	Require string // version of this module, "" to have go find one
	Replace string // directory that replaces it
}

// Command returns the command of a program of this version.
func Command(version string) *cobra.Command {
	var v values
	var dir string
	var form output.Form
	cmd := &cobra.Command{
		Use:   "init NAME",
		Short: "Write the project of an extension API server",
		Long: `Write the project of an extension API server to a new directory: a Go module with a kind, its validation, a test with a
complete API server in the same process, manifests, and a README with the next steps.`,
		Example: `  bowsprit extension init ship --api sea.example.com/v1
  cd ship && go mod tidy && go test ./...`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New(`name the server, as in "bowsprit extension init ship --api sea.example.com/v1"`)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			v.Name = args[0]
			if err := v.complete(version); err != nil {
				return exit.Usage(err)
			}
			if dir == "" {
				dir = v.Name
			}
			written, err := v.write(dir)
			if err != nil {
				return err
			}
			if err := show(cmd.OutOrStdout(), form, result{dir, written}); err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "\nNow:\n\n  cd %s\n  go mod tidy\n  go test ./...\n\nREADME.md describes how to run it.\n", dir)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&v.API, "api", "", "group and version that it serves (default: NAME.example.com/v1)")
	f.StringVar(&v.Kind, "kind", "", "name of its kind (default: NAME in upper camel case)")
	f.StringVar(&v.Module, "module", "", "path of the Go module (default: NAME)")
	f.StringVar(&dir, "dir", "", "directory to write, empty or new (default: NAME)")
	f.StringVar(&v.Replace, "replace", "", "directory with the source of Bowsprit, instead of a released version")
	form.Bind(f)
	return cmd
}

// result is the output of the command.
type result struct {
	Directory string   `json:"directory"`
	Files     []string `json:"files"` // below Directory
}

func show(out io.Writer, form output.Form, r result) error {
	return form.Print(out, r, func(out io.Writer) error {
		for _, file := range r.Files {
			if _, err := fmt.Fprintln(out, filepath.Join(r.Directory, file)); err != nil {
				return err
			}
		}
		return nil
	})
}

var (
	kindName   = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)
	modulePath = regexp.MustCompile(`^[A-Za-z0-9_~-][A-Za-z0-9._~-]*(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*$`)
	released   = regexp.MustCompile(`^v\d+\.\d+\.\d+$`) // go finds another one by itself
)

// complete derives missing values and validates all.
func (v *values) complete(version string) error {
	if wrong := validation.IsDNS1035Label(v.Name); len(wrong) > 0 {
		return fmt.Errorf("NAME %q: %s", v.Name, strings.Join(wrong, "; "))
	}
	if v.API == "" {
		v.API = v.Name + ".example.com/v1"
	}
	gv, err := schema.ParseGroupVersion(v.API)
	if err != nil || len(validation.IsDNS1123Subdomain(gv.Group)) > 0 || !strings.Contains(gv.Group, ".") ||
		len(validation.IsDNS1035Label(gv.Version)) > 0 {
		return fmt.Errorf("--api %q is not a group and a version such as sea.example.com/v1", v.API)
	}
	v.Group, v.Version = gv.Group, gv.Version
	if v.Kind == "" {
		for word := range strings.SplitSeq(v.Name, "-") {
			if word != "" {
				v.Kind += strings.ToUpper(word[:1]) + word[1:]
			}
		}
	}
	if !kindName.MatchString(v.Kind) {
		return fmt.Errorf("--kind %q is not a name such as Ship", v.Kind)
	}
	v.Plural = strings.ToLower(v.Kind) + "s"
	if v.Module == "" {
		v.Module = v.Name
	}
	if !modulePath.MatchString(v.Module) {
		return fmt.Errorf("--module %q is not the path of a Go module, such as example.com/ship", v.Module)
	}
	if released.MatchString(version) {
		v.Require = version
	}
	if v.Replace == "" {
		return nil
	}
	if v.Replace, err = filepath.Abs(v.Replace); err != nil {
		return fmt.Errorf("--replace: %w", err)
	}
	if _, err := os.Stat(filepath.Join(v.Replace, "extension", "server.go")); err != nil {
		return fmt.Errorf("--replace %s is not the source of Bowsprit: %w", v.Replace, err)
	}
	v.Require = "v0.0.0"
	return nil
}

// write writes the project to dir and returns the names of its files.
func (v *values) write(dir string) (written []string, err error) {
	there, err := os.ReadDir(dir)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case len(there) > 0:
		return nil, fmt.Errorf("%s is not empty: name another directory with --dir", dir)
	}
	err = fs.WalkDir(project, "project", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(project, path)
		if err != nil {
			return err
		}
		parsed, err := template.New(path).Parse(string(text))
		if err != nil {
			return err
		}
		var out bytes.Buffer
		if err := parsed.Execute(&out, v); err != nil {
			return err
		}
		name := strings.TrimSuffix(strings.TrimPrefix(path, "project/"), ".tmpl")
		if name == "gitignore" {
			name = ".gitignore"
		}
		written = append(written, name)
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		return os.WriteFile(file, out.Bytes(), 0o644)
	})
	slices.Sort(written)
	return written, err
}
