package kinds

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// The values that stand for nothing in a table.
const (
	none  = "<none>"
	unset = "<unset>"
)

// printed makes a Cells rule of a function on the Go type. An object that does not fit the type shows its name and age.
func printed[T any](f func(*T, catalog.Env) []any) func(catalog.Object, catalog.Env) []any {
	return func(obj catalog.Object, e catalog.Env) []any {
		typed, errs := read[T](obj)
		if errs != nil {
			return []any{catalog.Text(obj, "metadata", "name")}
		}
		return f(typed, e)
	}
}

// ago returns how long ago t was, as kubectl shows durations.
func ago(t metav1.Time, e catalog.Env) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(e.Now.Sub(t.Time))
}

// containerNames returns the names and the images of containers.
func containerNames(containers []corev1.Container) (names, images string) {
	var n, i []string
	for _, c := range containers {
		n, i = append(n, c.Name), append(i, c.Image)
	}
	return strings.Join(n, ","), strings.Join(i, ",")
}

// labelText is a map of labels as a selector.
func labelText(set map[string]string) string { return labels.FormatLabels(set) }

// firstFew joins the first few of a list and says how many more there are.
func firstFew(list []string, few int, separator string) string {
	if len(list) <= few {
		return strings.Join(list, separator)
	}
	return fmt.Sprintf("%s + %d more...", strings.Join(list[:few], separator), len(list)-few)
}

func orNone(s string) string { return orText(s, none) }

func orText(s, instead string) string {
	if s == "" {
		return instead
	}
	return s
}

func deref[T any](p *T, instead T) T {
	if p == nil {
		return instead
	}
	return *p
}

func sortedKeys[M ~map[K]V, K ~string, V any](m M) []K { return slices.Sorted(maps.Keys(m)) }
