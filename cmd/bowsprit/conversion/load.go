package conversion

import (
	"errors"
	"fmt"
	"io"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/manifest"
	"github.com/bowsprit/bowsprit/internal/api/crd"
	"github.com/bowsprit/bowsprit/internal/api/reshape"
	"github.com/bowsprit/bowsprit/internal/object"
)

// definition is a definition of a file, with rules.
type definition struct {
	file, name string
	object     object.Object
	def        *apiextensionsv1.CustomResourceDefinition
	plan       *reshape.Plan
	config     *reshape.Config
	err        error // the rules are invalid; plan and config are nil
}

// load reads the objects of files, and their definitions with rules. An error means that a file cannot be read, or that
// there is no such definition.
func load(paths []string, stdin io.Reader) (set *manifest.Set, found []*definition, err error) {
	if set, err = manifest.Load(paths, stdin); err != nil {
		return nil, nil, err
	}
	if err := set.Err(); err != nil {
		return nil, nil, err
	}
	for i := range set.Documents {
		d := &set.Documents[i]
		if d.Object["kind"] != "CustomResourceDefinition" {
			continue
		}
		if _, err := crd.Rules().Decode(d.Object); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", d.File, err)
		}
		if text := reshape.RulesOf(d.Object); text != "" {
			found = append(found, compile(d, text))
		}
	}
	if len(found) == 0 {
		return nil, nil, fmt.Errorf("%s: no CustomResourceDefinition with the annotation %s found",
			strings.Join(paths, ", "), reshape.Annotation)
	}
	return set, found, nil
}

// compile compiles the rules of a definition.
func compile(d *manifest.Document, text string) *definition {
	out := &definition{file: d.File, name: object.String(d.Object, "metadata", "name"), object: d.Object}
	if out.def, out.err = crd.Decode(d.Object); out.err == nil {
		out.plan, out.config, out.err = crd.Plan(text, d.Object, out.def)
	}
	return out
}

// problems returns the texts of an error about rules.
func problems(err error) []string {
	var all reshape.Problems
	if errors.As(err, &all) {
		return all
	}
	return []string{err.Error()}
}
