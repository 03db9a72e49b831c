package rule

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/object"
)

// Validation is the validation of one object.
type Validation struct {
	blocks   blocks
	done     <-chan struct{} // of the request's context; nil if it never ends
	left     int             // number of values until the next check of done
	kind     string
	Obj, Old object.Object // old is nil for a creation
	// Subresource is the subresource of an update, "" for the object itself.
	Subresource string
	Scope       any // state of a kind's functions for this object
	Errs        field.ErrorList

	// allowed are the rules that every object may break. See Allow.
	allowed []Exception
	// lacked are the disabled features. See Without.
	lacked []string
	// breaks are the rules that obj violates, broke the ones that old violated; nil until a rule asks. See Excused.
	breaks, broke map[Exception]bool
	// oldValues caches the results of OldValues by path.
	oldValues map[string]sets.Set[string]
}

// lookEvery is the number of values between two checks of the context: so few that even the most expensive function
// takes no noticeable time for all of them.
const lookEvery = 64

// over reports whether the request has ended, so that the rest need not be validated: the result will not be used.
func (val *Validation) over() bool {
	if val.left--; val.left > 0 {
		return false
	}
	select {
	case <-val.done:
		return true // and at the next value too
	default:
		val.left = lookEvery
		return false
	}
}

// Ended is over for functions that take long themselves: it looks at the context each time.
func (val *Validation) Ended() bool {
	select {
	case <-val.done:
		return true
	default:
		return false
	}
}

// mostErrors is how many errors a validation keeps: more than an answer lists (invalid.Most).
const mostErrors = 50_000

// Add adds an error.
func (val *Validation) Add(e *field.Error) {
	if !val.Full() {
		val.Errs = append(val.Errs, e)
	}
}

// Declared adds the error of a declarative rule of Kubernetes, whose path is the path in the client's version of the
// object (Kind.OlderError).
func (val *Validation) Declared(e *field.Error) { val.Add(e.MarkBeta()) }

// OnlyDeclared keeps the errors of declarative rules among the errors that check adds. Kubernetes evaluates these rules
// also where an earlier error ends the other rules.
func (val *Validation) OnlyDeclared(check func()) {
	before := len(val.Errs)
	check()
	val.Errs = slices.DeleteFunc(val.Errs, func(e *field.Error) bool {
		before--
		return before < 0 && !e.IsBeta()
	})
}

// Full reports whether the validation ignores further errors.
func (val *Validation) Full() bool { return len(val.Errs) >= mostErrors }

// Repeat adds an error n times.
func (val *Validation) Repeat(e *field.Error, n int) {
	for i := 0; i < n && !val.Full(); i++ {
		val.Add(e)
	}
}

// Invalid adds the error that a value is wrong.
func (val *Validation) Invalid(path *field.Path, value any, detail string) {
	val.Add(field.Invalid(path, value, detail))
}

// Sealed adds the error that a field has changed. Kubernetes' declarative rules do not show its value.
func (val *Validation) Sealed(path *field.Path) { val.Invalid(path, nil, "field is immutable") }

// Invalids adds an error about a value for each of the details.
func (val *Validation) Invalids(path *field.Path, value any, details []string) {
	for _, d := range details {
		val.Invalid(path, value, d)
	}
}

// Required adds the error that a field is missing.
func (val *Validation) Required(path *field.Path, detail string) {
	val.Add(field.Required(path, detail))
}

// Forbidden adds the error that a field is forbidden.
func (val *Validation) Forbidden(path *field.Path, detail string) {
	val.Add(field.Forbidden(path, detail))
}

// Unsupported adds the error that a value is not supported.
func (val *Validation) Unsupported(path *field.Path, value any, supported ...string) {
	val.Add(field.NotSupported(path, value, supported))
}

// Duplicate adds the error that a value is a duplicate.
func (val *Validation) Duplicate(path *field.Path, value any) { val.Add(field.Duplicate(path, value)) }
