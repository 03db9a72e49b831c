// Package check judges objects of the built-in kinds: it says everything that is wrong with a new object or with an
// update, in Kubernetes' words.
//
// Most checks are lines of checks.txt, whose head explains them: a field is required, has a format, is one of some
// values, does not change. What depends on several fields is a function that a line names ("! name", see functions).
// Both look at decoded JSON that the kind's Go type has read and written (builtin's decode), so that values have the
// types which the API says.
//
// The text is parsed by the first object that is judged. A Checker is safe for concurrent use; nothing here changes an
// object.
//
// Source: the validation of pkg/apis/*/validation and pkg/registry/*/*/strategy.go of Kubernetes 1.36 with its default
// feature gates. test/oracle-builtins compares both.
package check

import (
	_ "embed"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

//go:embed checks.txt
var text string

// object is a decoded JSON object.
type object = map[string]any

// Checker holds the parsed checks.
type Checker struct {
	parse func() blocks
}

// New returns a Checker that has parsed nothing yet.
func New() *Checker {
	return &Checker{sync.OnceValue(func() blocks {
		b, err := parse(text)
		if err != nil {
			panic(fmt.Errorf("checks.txt: %w", err)) // a part of the program
		}
		return b
	})}
}

// Create returns what is wrong with a new object of the kind beyond its metadata.
func (c *Checker) Create(kind string, obj object) field.ErrorList {
	j := judgement{blocks: c.parse(), kind: kind, obj: obj}
	j.block(kind, obj, nil, nil)
	j.block(kind+"/create", obj, nil, nil)
	return j.errs
}

// Update returns what is wrong with a change from old to obj through a subresource, "" for the object itself.
func (c *Checker) Update(kind string, obj, old object, subresource string) field.ErrorList {
	j := judgement{blocks: c.parse(), kind: kind, obj: obj, old: old}
	if subresource != "" {
		j.block(kind+"/"+subresource, obj, old, nil)
		return j.errs
	}
	j.block(kind, obj, old, nil)
	j.block(kind+"/update", obj, old, nil)
	return j.errs
}

// judgement is the work on one object.
type judgement struct {
	blocks   blocks
	kind     string
	obj, old object // old is nil for a creation
	scope    any    // what the functions of a kind remember of this object
	errs     field.ErrorList

	// breaks are the rules that obj breaks, broke those that old did; nil until somebody asks. See excused.
	breaks, broke map[exception]bool
}

func (j *judgement) add(e *field.Error) { j.errs = append(j.errs, e) }

func (j *judgement) invalid(path *field.Path, value any, detail string) {
	j.add(field.Invalid(path, value, detail))
}

func (j *judgement) invalids(path *field.Path, value any, details []string) {
	for _, d := range details {
		j.invalid(path, value, d)
	}
}

func (j *judgement) required(path *field.Path, detail string) { j.add(field.Required(path, detail)) }

func (j *judgement) forbidden(path *field.Path, detail string) { j.add(field.Forbidden(path, detail)) }

func (j *judgement) unsupported(path *field.Path, value any, supported ...string) {
	j.add(field.NotSupported(path, value, supported))
}

func (j *judgement) duplicate(path *field.Path, value any) { j.add(field.Duplicate(path, value)) }
