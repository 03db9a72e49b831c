// Package definition implements "bowsprit crd lint", which reports a server's objections to definitions without a
// server.
package definition

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/files"
	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/api/crd"
)

// Command returns "bowsprit crd".
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "crd",
		Short: "Check CustomResourceDefinitions in files",
	}
	cmd.AddCommand(lintCommand())
	return cmd
}

func lintCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "lint (FILE | DIRECTORY | -)...",
		Short: "Report errors and warnings in definitions, without a server",
		Long: `Report the errors and warnings of a server for CustomResourceDefinitions, in Kubernetes' words: unknown fields,
non-structural schemas, invalid defaults, rules that do not compile or cost too much.

The command reads all YAML and JSON files of a directory and skips other objects. It does not detect conflicts with
other definitions of a server, such as names in use.`,
		Example: `  bowsprit crd lint config/crd/bases
  helm template ./chart | bowsprit crd lint -
  bowsprit crd lint crd.yaml -o json`,
		Args: arguments.Several("file or directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := arguments.TextOrJSON(output); err != nil {
				return err
			}
			found, err := lint(args, cmd.InOrStdin())
			if err != nil {
				return err
			}
			return report(cmd.OutOrStdout(), found, output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return cmd
}

// finding is the result for one definition, in the format of -o json.
type finding struct {
	File     string   `json:"file"`
	Name     string   `json:"name"`
	Errors   []string `json:"errors"`
	Warnings []string `json:"warnings"`
}

// extensions are the extensions of files to read from directories.
var extensions = []string{".yaml", ".yml", ".json"}

// lint reads the definitions in files and in the files of directories.
func lint(paths []string, stdin io.Reader) (all []finding, err error) {
	for _, path := range paths {
		if path == "-" {
			found, err := lintFile("stdin", stdin)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
			continue
		}
		err := filepath.WalkDir(path, func(name string, e fs.DirEntry, err error) error {
			named := name == path // with any extension
			if err != nil || e.IsDir() || !named && !slices.Contains(extensions, filepath.Ext(name)) {
				return err
			}
			open := files.Open
			if named { // such as a pipe of the shell
				open = os.Open
			}
			file, err := open(name)
			if err != nil {
				return err
			}
			defer file.Close()
			found, err := lintFile(name, file)
			all = append(all, found...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no CustomResourceDefinition found", strings.Join(paths, ", "))
	}
	return all, nil
}

func lintFile(name string, in io.Reader) (all []finding, err error) {
	decoder := yaml.NewYAMLOrJSONDecoder(files.Limit(in), 4096)
	for {
		var raw json.RawMessage
		switch err := decoder.Decode(&raw); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		definitions, err := definitionsIn(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, obj := range definitions {
			f := judge(obj)
			f.File = name
			all = append(all, f)
		}
	}
}

// definitionsIn returns the definitions in a document. It splits lists.
func definitionsIn(raw json.RawMessage) (all []map[string]any, err error) {
	var obj unstructured.Unstructured
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &obj.Object); err != nil {
		return nil, fmt.Errorf("is not an object: %w", err)
	}
	items, isList := obj.Object["items"].([]any)
	if !isList || !strings.HasSuffix(obj.GetKind(), "List") {
		items = []any{obj.Object}
	}
	for _, item := range items {
		if one, _ := item.(map[string]any); one["kind"] == "CustomResourceDefinition" {
			all = append(all, one)
		}
	}
	return all, nil
}

// judge returns a server's errors and warnings for a new definition.
func judge(obj map[string]any) (f finding) {
	u := unstructured.Unstructured{Object: obj}
	f.Name, f.Errors, f.Warnings = u.GetName(), []string{}, []string{}
	rules := crd.Rules()
	switch u.GetAPIVersion() {
	case "apiextensions.k8s.io/v1":
	case "apiextensions.k8s.io/v1beta1":
		rules = crd.BetaRules(rules)
		f.Warnings = append(f.Warnings, "apiextensions.k8s.io/v1beta1 is no longer served by Kubernetes since 1.22")
	default:
		f.Errors = append(f.Errors, fmt.Sprintf("apiVersion: %q is not apiextensions.k8s.io/v1", u.GetAPIVersion()))
		return f
	}
	unknown, err := rules.Decode(obj)
	if err != nil {
		f.Errors = append(f.Errors, err.Error())
		return f
	}
	for _, path := range unknown {
		f.Warnings = append(f.Warnings, fmt.Sprintf("unknown field %q", path))
	}
	rules.Default(obj)
	rules.PrepareCreate(obj, catalog.Env{Now: time.Now(), Snapshot: &catalog.Snapshot{}})
	errs := field.ErrorList{}
	for _, problem := range validation.NameIsDNSSubdomain(f.Name, false) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), f.Name, problem))
	}
	for _, err := range append(errs, rules.Validate(context.Background(), obj)...) {
		f.Errors = append(f.Errors, err.Error())
	}
	f.Warnings = append(f.Warnings, rules.Warnings(obj, nil, "")...)
	return f
}

// errRefused ends the command with the exit code of a failure.
var errRefused = errors.New("a server would refuse some definitions")

// report writes the findings.
func report(out io.Writer, all []finding, form string) error {
	refused := 0
	for _, f := range all {
		if len(f.Errors) > 0 {
			refused++
		}
	}
	if form == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(all); err != nil {
			return err
		}
	} else {
		for _, f := range all {
			for _, text := range f.Errors {
				fmt.Fprintf(out, "%s: %s: %s\n", f.File, f.Name, text)
			}
			for _, text := range f.Warnings {
				fmt.Fprintf(out, "%s: %s: warning: %s\n", f.File, f.Name, text)
			}
		}
		fmt.Fprintf(out, "%d definitions, %d would be refused.\n", len(all), refused)
	}
	if refused > 0 {
		return errRefused
	}
	return nil
}
