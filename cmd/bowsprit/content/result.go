package content

import (
	"errors"
	"fmt"
	"io"
	"path"

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
	pruned    outcome = "pruned"
	retained  outcome = "retained" // by prune, for a reason
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
	Reason     string  `json:"reason,omitempty"` // why prune retained the object
}

// importResult is the result of an import.
type importResult struct {
	DryRun    bool `json:"dryRun"` // nothing was written
	Created   int  `json:"created"`
	Changed   int  `json:"changed"`
	Unchanged int  `json:"unchanged"`
	Failed    int  `json:"failed"` // objects, and unreadable parts of files
	LeftOut   int  `json:"leftOut"`
	Pruned    int  `json:"pruned"`
	Retained  int  `json:"retained"` // objects that prune did not delete
	// Objects are in the order in which they were applied, then pruned.
	Objects []applied `json:"objects"`
	// Unreadable are the problems of reading files.
	Unreadable []string `json:"unreadable,omitempty"`

	name     string
	failures []error
}

// add records the change of an object of a file.
func (r *importResult) add(d document, result outcome, err error) {
	r.record(applied{
		File: d.from.File, Line: d.from.Line(""), APIVersion: d.obj.GetAPIVersion(), Kind: d.obj.GetKind(),
		Namespace: d.obj.GetNamespace(), Name: d.obj.GetName(),
	}, result, err)
}

// record records the change of an object. err is the reason of failed.
func (r *importResult) record(one applied, result outcome, err error) {
	one.Result = result
	switch result {
	case created:
		r.Created++
	case changed:
		r.Changed++
	case unchanged:
		r.Unchanged++
	case leftOut:
		r.LeftOut++
	case pruned:
		r.Pruned++
	case retained:
		r.Retained++
	case failed:
		r.Failed++
		one.Error = err.Error()
		r.failures = append(r.failures, fmt.Errorf("%s: %w", one.location(), err))
	}
	r.Objects = append(r.Objects, one)
}

// location is the file and line of an object, or its kind and name if it is in no file.
func (a *applied) location() string {
	if a.File != "" {
		return fmt.Sprintf("%s:%d", a.File, a.Line)
	}
	return a.Kind + " " + path.Join(a.Namespace, a.Name)
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
	if err := form.Print(out, r, r.print); err != nil {
		return err
	}
	return exit.List(errors.Join(r.failures...))
}

// print prints the pruned and retained objects, then the numbers.
func (r *importResult) print(out io.Writer) error {
	for i := range r.Objects {
		switch one := &r.Objects[i]; one.Result {
		case pruned:
			fmt.Fprintf(out, "%s: pruned\n", one.location())
		case retained:
			fmt.Fprintf(out, "%s: retained: %s\n", one.location(), one.Reason)
		}
	}
	more := ""
	if r.Pruned+r.Retained > 0 {
		more = fmt.Sprintf(", %d pruned, %d retained", r.Pruned, r.Retained)
	}
	if r.DryRun {
		more += fmt.Sprintf("; nothing was written, and %d objects of missing kinds or namespaces were left out", r.LeftOut)
	}
	_, err := fmt.Fprintf(out, "%s: %d created, %d changed, %d unchanged, %d failed%s.\n", r.name, r.Created, r.Changed,
		r.Unchanged, r.Failed, more)
	return err
}
