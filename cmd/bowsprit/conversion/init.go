package conversion

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/manifest"
	"github.com/bowsprit/bowsprit/internal/api/crd"
	"github.com/bowsprit/bowsprit/internal/api/reshape"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/object/schema"
)

func initCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "init OLD[:VERSION] NEW[:VERSION]",
		Short: "Propose conversion rules from the difference of two schemas",
		Long: `Compare a version of the definition in the file OLD with one in the file NEW, and print a step with rules for the
annotation ` + reshape.Annotation + `. Both may be one file.

Without VERSION the old version is the storage version of OLD, and the new one the latest other version of NEW. The
command relates fields by their names and shapes, which do not show their meaning: check each rule. It tries the rules
on generated objects. Comments name the fields whose values are kept in the stash, and differences that need a rule of
your own; with such a difference the command fails.`,
		Example: `  bowsprit convert init crd.yaml:v1 crd.yaml:v2
  bowsprit convert init old/crd.yaml new/crd.yaml`,
		Args: arguments.Two("an old and a new file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return propose(cmd.Context(), cmd.OutOrStdout(), args[0], args[1])
		},
	}
}

// versioned is a version of a definition in a file.
type versioned struct {
	name   string
	schema *schema.Schema
}

// errOpen ends the command with the exit code of a failure.
var errOpen = errors.New("some differences need a rule of your own")

// propose prints the proposal for two versions.
func propose(ctx context.Context, out io.Writer, older, newer string) error {
	from, err := findVersion(older, "")
	if err != nil {
		return err
	}
	to, err := findVersion(newer, from.name)
	if err != nil {
		return err
	}
	if from.name == to.name {
		return fmt.Errorf("%s and %s are the same version, %s: rules convert between two versions of one definition", older,
			newer, to.name)
	}
	names := [2]string{from.name, to.name}
	p, err := reshape.Propose(ctx, names, [2]*schema.Schema{from.schema, to.schema})
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, proposalText(p, names)); err != nil {
		return err
	}
	if len(p.Open) > 0 {
		return errOpen
	}
	return nil
}

// proposalText returns a proposal as YAML with comments.
func proposalText(p *reshape.Proposal, names [2]string) string {
	var out strings.Builder
	out.WriteString("# A proposal from names and shapes: check each rule. The rules belong to the annotation\n# " +
		reshape.Annotation + " of the definition.\nsteps:\n- from: " + names[0] + "\n  to: " + names[1] + "\n")
	if len(p.Rules) > 0 {
		out.WriteString("  rules:\n")
	}
	for _, r := range p.Rules {
		fmt.Fprintf(&out, "  - %s # %s\n", codec.AppendJSON(nil, r.Rule), r.Why)
	}
	for _, text := range p.Alone {
		out.WriteString("# Kept in the stash: " + text + ".\n")
	}
	for _, text := range p.Open {
		out.WriteString("# Open: " + strings.ReplaceAll(text, "\n", " ") + ".\n")
	}
	return out.String()
}

// findVersion returns the version that an argument names; not is the name of a version that is not meant.
func findVersion(arg, not string) (*versioned, error) {
	file, name := arg, ""
	if i := strings.LastIndexByte(arg, ':'); i > 0 && !strings.ContainsAny(arg[i:], `/\`) {
		file, name = arg[:i], arg[i+1:]
	}
	set, err := manifest.Load([]string{file}, nil)
	if err != nil {
		return nil, err
	}
	if err := set.Err(); err != nil {
		return nil, err
	}
	var found *manifest.Document
	for i := range set.Documents {
		if d := &set.Documents[i]; d.Object["kind"] == "CustomResourceDefinition" {
			if found != nil {
				return nil, fmt.Errorf("%s has several definitions: name a file with one", file)
			}
			found = d
		}
	}
	if found == nil {
		return nil, fmt.Errorf("%s: no CustomResourceDefinition found", file)
	}
	if _, err := crd.Rules().Decode(found.Object); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	def, err := crd.Decode(found.Object)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if name == "" {
		name = chosen(def, not)
	}
	schemas, err := crd.Schemas(found.Object, def)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if schemas[name] == nil {
		return nil, fmt.Errorf("%s has no version %s with a schema", file, name)
	}
	return &versioned{name, schemas[name]}, nil
}

// chosen returns the storage version of a definition, or its latest version besides not.
func chosen(def *apiextensionsv1.CustomResourceDefinition, not string) string {
	var names []string
	for _, v := range def.Spec.Versions {
		if not == "" && v.Storage {
			return v.Name
		}
		if v.Name != not {
			names = append(names, v.Name)
		}
	}
	if len(names) == 0 {
		return not
	}
	return slices.MaxFunc(names, version.CompareKubeAwareVersionStrings)
}
