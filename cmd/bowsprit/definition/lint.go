// Package definition implements "bowsprit crd lint", which reports a server's objections to definitions without a
// server, "bowsprit crd diff", which reports breaking changes, and "bowsprit crd export", which writes definitions for
// other clusters.
package definition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/manifest"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/output"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/crd"
)

// Command returns "bowsprit crd".
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "crd",
		Short: "Check, compare and export CustomResourceDefinitions",
	}
	cmd.AddCommand(diffCommand(), exportCommand(), lintCommand())
	return cmd
}

func lintCommand() *cobra.Command {
	var form output.Form
	cmd := &cobra.Command{
		Use:   "lint (FILE | DIRECTORY | -)...",
		Short: "Report errors and warnings in definitions, without a server",
		Long: `Report the errors and warnings of a server for CustomResourceDefinitions, in Kubernetes' words: unknown fields,
non-structural schemas, invalid defaults, rules that do not compile or cost too much. A field that only Bowsprit knows
has a warning with its equivalent on other clusters.

The command reads all YAML and JSON files of a directory and skips other objects. It reports every error of every file,
with its line and path. It does not detect conflicts with other definitions of a server, such as names in use.`,
		Example: `  bowsprit crd lint config/crd/bases
  helm template ./chart | bowsprit crd lint -
  bowsprit crd lint crd.yaml -o json`,
		Args: arguments.Several("file or directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			found, err := lint(args, cmd.InOrStdin())
			if err != nil {
				return err
			}
			return report(cmd.OutOrStdout(), found, form)
		},
	}
	form.Bind(cmd.Flags())
	return cmd
}

// finding is the result for one definition, or for an unreadable part of a file, in the format of -o json.
type finding struct {
	File string `json:"file"`
	// Name is the definition's name, or "" for an unreadable part.
	Name     string `json:"name"`
	Errors   []note `json:"errors"`
	Warnings []note `json:"warnings"`
}

// note is one error or warning, with the line and the path of its field.
type note struct {
	Line int    `json:"line,omitempty"`
	Path string `json:"path,omitempty"`
	Text string `json:"text"`
}

// lint reads the definitions in files and in the files of directories.
func lint(paths []string, stdin io.Reader) (all []finding, err error) {
	set, err := manifest.Load(paths, stdin)
	if err != nil {
		return nil, err
	}
	for _, err := range set.Problems {
		var p *manifest.Problem
		if errors.As(err, &p) {
			all = append(all, finding{File: p.File, Errors: []note{{p.Line, p.Path, p.Text}}, Warnings: []note{}})
		}
	}
	for i := range set.Documents {
		if d := &set.Documents[i]; d.Object["kind"] == "CustomResourceDefinition" {
			all = append(all, judge(d))
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no CustomResourceDefinition found", strings.Join(paths, ", "))
	}
	return all, nil
}

// judgment collects the errors and warnings of a server about one definition.
type judgment struct {
	*manifest.Document
	finding
}

// note returns a text with the line of a path. Kubernetes reports errors in the schema that all versions share at the
// path of v1beta1, which a definition of v1 does not have.
func (j *judgment) note(path, text string) note {
	written := path
	if below, ok := strings.CutPrefix(path, "spec.validation."); ok {
		if _, old, _ := unstructured.NestedFieldNoCopy(j.Object, "spec", "validation"); !old {
			written = "spec.versions[0].schema." + below
		}
	}
	return note{j.Line(written), path, text}
}

func (j *judgment) refuse(path, text string) { j.Errors = append(j.Errors, j.note(path, text)) }

func (j *judgment) warn(path, text string) { j.Warnings = append(j.Warnings, j.note(path, text)) }

// judge returns a server's errors and warnings for a new definition.
func judge(d *manifest.Document) finding {
	obj := d.Object
	u := unstructured.Unstructured{Object: obj}
	j := &judgment{d, finding{File: d.File, Name: u.GetName(), Errors: []note{}, Warnings: []note{}}}
	rules := crd.Rules()
	switch u.GetAPIVersion() {
	case "apiextensions.k8s.io/v1":
	case "apiextensions.k8s.io/v1beta1":
		rules = crd.BetaRules(rules)
		j.warn("apiVersion", "apiextensions.k8s.io/v1beta1 is no longer served by Kubernetes since 1.22")
	default:
		j.refuse("apiVersion", fmt.Sprintf("%q is not apiextensions.k8s.io/v1", u.GetAPIVersion()))
		return j.finding
	}
	for _, f := range crd.OwnFields(obj) {
		j.warn(f.Path, f.Text)
	}
	unknown, mismatched := j.decode(rules.Decode)
	for _, path := range unknown {
		j.warn(path, fmt.Sprintf("unknown field %q", path))
	}
	if mismatched { // the remaining rules need a definition of the right types
		return j.finding
	}
	rules.Default(obj)
	rules.PrepareCreate(obj, catalog.Env{Now: time.Now(), Snapshot: &catalog.Snapshot{}})
	for _, problem := range validation.NameIsDNSSubdomain(j.Name, false) {
		j.refuse("metadata.name", field.Invalid(nil, j.Name, problem).ErrorBody())
	}
	for _, err := range rules.Validate(context.Background(), obj) {
		j.refuse(err.Field, err.ErrorBody())
	}
	for _, text := range rules.Warnings(obj, nil, "") {
		path, rest, found := strings.Cut(text, ": ")
		if !found || strings.ContainsRune(path, ' ') {
			path, rest = "", text
		}
		j.warn(path, rest)
	}
	return j.finding
}

// errRefused ends the command with the exit code of a failure.
var errRefused = errors.New("a server would refuse some definitions")

// errUnreadable is errRefused for files.
var errUnreadable = errors.New("some files cannot be read")

// report writes the findings.
func report(out io.Writer, all []finding, form output.Form) error {
	definitions, refused, unreadable := 0, 0, 0
	for i := range all {
		if all[i].Name != "" {
			definitions++
		}
		switch {
		case len(all[i].Errors) == 0:
		case all[i].Name == "":
			unreadable++
		default:
			refused++
		}
	}
	err := form.Print(out, all, func(out io.Writer) error {
		for i := range all {
			all[i].print(out)
		}
		_, err := fmt.Fprintf(out, "%d definitions, %d would be refused.\n", definitions, refused)
		return err
	})
	if err != nil {
		return err
	}
	if refused > 0 {
		return errRefused
	}
	if unreadable > 0 {
		return errUnreadable
	}
	return nil
}

// print writes a line for each error and warning.
func (f *finding) print(out io.Writer) {
	line := func(n note, kind string) {
		at := f.File
		if n.Line > 0 {
			at += ":" + strconv.Itoa(n.Line)
		}
		for _, part := range []string{f.Name, kind, n.Path} {
			if part != "" {
				at += ": " + part
			}
		}
		fmt.Fprintf(out, "%s: %s\n", at, n.Text)
	}
	for _, n := range f.Errors {
		line(n, "")
	}
	for _, n := range f.Warnings {
		line(n, "warning")
	}
}
