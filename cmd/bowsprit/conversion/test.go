package conversion

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/manifest"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/output"
	"github.com/bowsprit/bowsprit/internal/api/reshape"
	"github.com/bowsprit/bowsprit/internal/object"
)

func testCommand() *cobra.Command {
	var form output.Form
	count := 1000
	cmd := &cobra.Command{
		Use:   "test (FILE | DIRECTORY | -)...",
		Short: "Convert the objects in files, and generated ones, there and back",
		Long: `Try the rules in the annotation ` + reshape.Annotation + ` of CustomResourceDefinitions.

The command compiles the rules, converts their examples, generated objects of each version, and all objects of the
definition's kind in the files. Each object must be valid in the other version, and return as it was. The command reads
all YAML and JSON files of a directory and skips definitions without rules.`,
		Example: `  bowsprit convert test config/crd/bases config/samples
  bowsprit convert test crd.yaml --objects 100000`,
		Args: arguments.Several("file or directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if count < 1 || count > maxObjects {
				return fmt.Errorf("--objects: %d is not between 1 and %d", count, maxObjects)
			}
			found, err := try(cmd.Context(), args, cmd.InOrStdin(), count)
			if err != nil {
				return err
			}
			return report(cmd.OutOrStdout(), found, form)
		},
	}
	cmd.Flags().IntVar(&count, "objects", count, "`number` of generated objects for each step and direction")
	form.Bind(cmd.Flags())
	return cmd
}

// maxObjects bounds --objects.
const maxObjects = 10_000_000

// result is the result for one definition, in the format of -o json.
type result struct {
	File string `json:"file"`
	Name string `json:"name"`
	// Generated and Objects count the generated objects and the objects of the files.
	Generated int      `json:"generated"`
	Objects   int      `json:"objects"`
	Problems  []string `json:"problems"`
	// Unproven lists the versions of which no object could be generated.
	Unproven []string `json:"unproven,omitempty"`
}

// try tests the definitions in files.
func try(ctx context.Context, paths []string, stdin io.Reader, count int) (all []result, err error) {
	set, found, err := load(paths, stdin)
	if err != nil {
		return nil, err
	}
	for _, d := range found {
		all = append(all, tryOne(ctx, set, d, count))
	}
	return all, ctx.Err()
}

// tryOne tests the rules of one definition.
func tryOne(ctx context.Context, set *manifest.Set, d *definition, count int) result {
	r := result{File: d.file, Name: d.name, Problems: []string{}}
	if d.err != nil {
		r.Problems = append(r.Problems, problems(d.err)...)
		return r
	}
	plan, def := d.plan, d.def
	if err := plan.Examples(d.config); err != nil {
		r.Problems = append(r.Problems, err.Error())
	}
	proof, err := plan.Prove(ctx, count)
	r.Generated, r.Unproven = proof.Objects, proof.Unproven
	if err != nil {
		r.Problems = append(r.Problems, err.Error())
	}
	for i := range set.Documents {
		obj := set.Documents[i].Object
		group, version, _ := strings.Cut(object.String(obj, "apiVersion"), "/")
		if group != def.Spec.Group || object.String(obj, "kind") != def.Spec.Names.Kind {
			continue
		}
		r.Objects++
		for _, v := range def.Spec.Versions {
			if v.Name == version {
				continue
			}
			if err := plan.Trip(obj, version, v.Name); err != nil {
				r.Problems = append(r.Problems, fmt.Sprintf("%s: %s: %v", set.Documents[i].File,
					object.String(obj, "metadata", "name"), err))
			}
		}
	}
	return r
}

// errProblems ends the command with the exit code of a failure.
var errProblems = errors.New("some objects do not convert there and back")

// report writes the results.
func report(out io.Writer, all []result, form output.Form) error {
	failed := false
	for i := range all {
		failed = failed || len(all[i].Problems) > 0
	}
	err := form.Print(out, all, func(out io.Writer) error {
		for i := range all {
			all[i].print(out)
		}
		return nil
	})
	if err == nil && failed {
		err = errProblems
	}
	return err
}

// print writes the result of one definition.
func (r *result) print(out io.Writer) {
	for _, text := range r.Problems {
		fmt.Fprintf(out, "%s: %s: %s\n", r.File, r.Name, text)
	}
	for _, name := range r.Unproven {
		fmt.Fprintf(out, "%s: %s: warning: no object of version %s could be generated\n", r.File, r.Name, name)
	}
	verdict := "all return as they were"
	if len(r.Problems) > 0 {
		verdict = fmt.Sprintf("%d problems", len(r.Problems))
	}
	fmt.Fprintf(out, "%s: %d generated objects, %d of files: %s.\n", r.Name, r.Generated, r.Objects, verdict)
}
