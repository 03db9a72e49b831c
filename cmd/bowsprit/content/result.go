package content

import (
	"errors"
	"fmt"
	"io"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/output"
)

// outcome is the change of one object.
type outcome string

const (
	created   outcome = "created"
	changed   outcome = "changed"
	unchanged outcome = "unchanged"
	failed    outcome = "failed"
	leftOut   outcome = "leftOut" // by a dry run, because it needs another object of the import
)

// applied is an object of an import, with its change.
type applied struct {
	File       string  `json:"file,omitempty"`
	Line       int     `json:"line,omitempty"`
	APIVersion string  `json:"apiVersion"`
	Kind       string  `json:"kind"`
	Namespace  string  `json:"namespace,omitempty"`
	Name       string  `json:"name"`
	Result     outcome `json:"result"`
	Error      string  `json:"error,omitempty"`
}

// importResult is the result of an import.
type importResult struct {
	DryRun    bool `json:"dryRun"` // nothing was written
	Created   int  `json:"created"`
	Changed   int  `json:"changed"`
	Unchanged int  `json:"unchanged"`
	Failed    int  `json:"failed"` // objects, and unreadable parts of files
	LeftOut   int  `json:"leftOut"`
	// Objects are in the order in which they were applied.
	Objects []applied `json:"objects"`
	// Unreadable are the problems of reading files.
	Unreadable []string `json:"unreadable,omitempty"`

	name     string
	failures []error
}

// add records the change of an object.
func (r *importResult) add(d document, result outcome, err error) {
	one := applied{
		File: d.from.File, Line: d.from.Line(""), APIVersion: d.obj.GetAPIVersion(), Kind: d.obj.GetKind(),
		Namespace: d.obj.GetNamespace(), Name: d.obj.GetName(), Result: result,
	}
	switch result {
	case created:
		r.Created++
	case changed:
		r.Changed++
	case unchanged:
		r.Unchanged++
	case leftOut:
		r.LeftOut++
	case failed:
		r.Failed++
		one.Error = err.Error()
		r.failures = append(r.failures, fmt.Errorf("%s:%d: %w", one.File, one.Line, err))
	}
	r.Objects = append(r.Objects, one)
}

// unreadable records the problems of reading files.
func (r *importResult) unreadable(problems []error) {
	for _, problem := range problems {
		r.Unreadable = append(r.Unreadable, problem.Error())
	}
	r.Failed += len(problems)
	r.failures = append(r.failures, problems...)
}

// show prints the result. It returns the failures as an error.
func (r *importResult) show(out io.Writer, form output.Form) error {
	err := form.Print(out, r, func(out io.Writer) error {
		dry := ""
		if r.DryRun {
			dry = fmt.Sprintf("; nothing was written, and %d objects of missing kinds or namespaces were left out",
				r.LeftOut)
		}
		_, err := fmt.Fprintf(out, "%s: %d created, %d changed, %d unchanged, %d failed%s.\n", r.name, r.Created, r.Changed,
			r.Unchanged, r.Failed, dry)
		return err
	})
	if err != nil {
		return err
	}
	return exit.List(errors.Join(r.failures...))
}
