// Package quantity parses, compares and adds quantities from a client's text.
//
// The package stands below decoding. resource.ParseQuantity bounds neither the exponent nor the number of digits, so
// that a text of 13 characters ("1e-1000000000") occupies a processor for hours. This package measures a text before it
// reaches the library. Parse replaces resource.ParseQuantity; Object and Message measure every quantity within a body
// of a built-in kind before its Go type is decoded; Cmp, Add and Sub replace the methods of resource.Quantity, which
// write out all digits.
//
// The limits lie where kube-apiserver needs about a second for a request with one such quantity
// (BenchmarkLibraryAtTheLimits). All functions are pure and safe for concurrent use.
package quantity

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// MaxExponent is the largest magnitude of a decimal exponent. The library needs 0.6 s to parse 1e-3000000, and 0.4 s
// to compare 1e3000000.
const MaxExponent = 3_000_000

// maxWork is the most work that the quantities of one object may cause together, in nanoseconds for parsing and
// printing each once. A request of kube-apiserver prints a quantity about ten times.
const maxWork = 60_000_000

// detail is the text of the errors about quantities beyond the limits.
var detail = fmt.Sprintf("is too large or too precise: write the quantity with fewer digits, "+
	"and with an exponent between -%d and %d", MaxExponent, MaxExponent)

// ErrTooLarge says that a quantity is beyond the limits.
var ErrTooLarge = errors.New(detail)

// Parse returns the quantity that text stands for, as resource.ParseQuantity does, or ErrTooLarge.
func Parse(text string) (resource.Quantity, error) {
	t := scan(text)
	if t.tooLarge() {
		return resource.Quantity{}, ErrTooLarge
	}
	if strings.TrimSpace(text) != text { // white space is the library's to refuse
		return resource.ParseQuantity(text)
	}
	return resource.ParseQuantity(t.short())
}

// Check returns ErrTooLarge for a quantity that Parse refuses, or one with an exponent above most. A text that is
// no quantity passes.
func Check(text string, most int) error {
	if t := scan(text); t.tooLarge() || t.exponent > int64(most) {
		return ErrTooLarge
	}
	return nil
}

// A Refusal is the error about a quantity within a body.
type Refusal struct{ Field *field.Error }

// Error returns the text of the field's error.
func (r *Refusal) Error() string { return r.Field.Error() }

// Refused returns the answer to an object of a kind if err is a *Refusal, a 422, or else nil.
func Refused(err error, kind schema.GroupKind, name string) error {
	if refusal := (*Refusal)(nil); errors.As(err, &refusal) {
		return apierrors.NewInvalid(kind, name, field.ErrorList{refusal.Field})
	}
	return nil
}

// meter adds up the work that the quantities of one body cause.
type meter struct{ work int64 }

// take measures a quantity and returns a short text of the same value, or a Refusal at path.
func (m *meter) take(text string, path func() *field.Path) (string, error) {
	t := scan(text)
	if t.plain {
		return text, nil
	}
	if m.work += t.work(); t.tooLarge() || m.work > maxWork {
		return "", &Refusal{field.Invalid(path(), shown(text), detail)}
	}
	return t.short(), nil
}

// shown returns a text of a length that fits into an error.
func shown(text string) string {
	const most = 64
	if len(text) <= most {
		return text
	}
	return text[:most] + "..."
}

// Plain reports whether every JSON string or number of a document is a quantity of at most a thousand digits, or none.
// It is for documents that are decoded as a Go type without Object.
func Plain(doc []byte) bool {
	for start := 0; start < len(doc); start++ {
		if c := doc[start]; c < '0' || c > '9' {
			continue
		}
		end := start
		for end < len(doc) && strings.IndexByte("0123456789.+-eEinumkKMGTP", doc[end]) >= 0 {
			end++
		}
		whole := end == len(doc) || strings.IndexByte("\" \t\r\n,]}\\", doc[end]) >= 0
		if t := scan(string(doc[start:end])); whole &&
			(t.digits > writable || t.exponent > writable || t.exponent < -writable) {
			return false
		}
		start = end
	}
	return true
}
