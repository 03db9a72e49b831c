package rule

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
)

// The cell values for missing values.
const (
	None  = "<none>"
	Unset = "<unset>"
)

// Printed makes a Cells rule from a function on the Go type. An object that does not fit the type shows its name and
// age.
func Printed[T any](f func(*T, catalog.Env) []any) func(object.Object, catalog.Env) []any {
	return func(obj object.Object, e catalog.Env) []any {
		typed, errs := Read[T](obj)
		if errs != nil {
			return []any{object.String(obj, "metadata", "name")}
		}
		return f(typed, e)
	}
}

// Ago returns how long ago t was, as kubectl shows durations.
func Ago(t metav1.Time, e catalog.Env) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(e.Now.Sub(t.Time))
}

// LabelText is a map of labels as a selector.
func LabelText(set map[string]string) string { return labels.FormatLabels(set) }

// FirstFew joins the first few of a list, with the number of the others.
func FirstFew(list []string, few int, separator string) string {
	if len(list) <= few {
		return strings.Join(list, separator)
	}
	return fmt.Sprintf("%s + %d more...", strings.Join(list[:few], separator), len(list)-few)
}

// OrNone returns s, or <none> if it is "".
func OrNone(s string) string { return OrText(s, None) }

// OrText returns s, or instead if it is "".
func OrText(s, instead string) string {
	if s == "" {
		return instead
	}
	return s
}

// Deref returns the value of p, or instead if it is nil.
func Deref[T any](p *T, instead T) T {
	if p == nil {
		return instead
	}
	return *p
}

// Distinct returns the distinct non-empty strings, sorted.
func Distinct(list []string) []string {
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(s string) bool { return s == "" })
}

// Lower returns s in lower case.
func Lower(s string) string { return strings.ToLower(s) }

// NameAndAge is the Cells of kinds with no other columns.
func NameAndAge(obj object.Object, e catalog.Env) []any {
	return []any{object.String(obj, "metadata", "name"), Age(obj, e.Now)}
}

// NameAndCreation is the Cells of kinds that have no columns in Kubernetes.
func NameAndCreation(obj object.Object, _ catalog.Env) []any {
	created, _ := time.Parse(time.RFC3339, object.String(obj, "metadata", "creationTimestamp"))
	return []any{object.String(obj, "metadata", "name"), created.UTC().Format(time.RFC3339)}
}

// Age returns the cell with the age of an object.
func Age(obj object.Object, now time.Time) string {
	return Since(object.String(obj, "metadata", "creationTimestamp"), now)
}

// Since returns the time between a timestamp (RFC 3339, with or without fractions) and now, as kubectl shows durations.
func Since(timestamp string, now time.Time) string {
	t, err := time.Parse(time.RFC3339, timestamp)
	if err != nil || t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(t))
}
