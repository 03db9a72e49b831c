package builtin

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/bowsprit/bowsprit/internal/catalog"
)

// Columns and cells are those of kube-apiserver's printers (pkg/printers/internalversion). Unlike those of a
// CustomResourceDefinition, the columns of a built-in kind are all there is: Name is one of them.

func columns(cs ...catalog.Column) []catalog.Column { return cs }

func nameColumn() catalog.Column {
	return catalog.Column{Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]}
}

func ageColumn() catalog.Column {
	return catalog.Column{Name: "Age", Type: "string", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"]}
}

// createdColumn is the second column of kinds that have none of their own; unlike ageColumn it is an absolute time.
func createdColumn() catalog.Column {
	return catalog.Column{Name: "Created At", Type: "date", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"]}
}

func nameAndAge(obj catalog.Object, e catalog.Env) []any {
	return []any{text(obj, "metadata", "name"), age(obj, e.Now)}
}

func nameAndCreation(obj catalog.Object, _ catalog.Env) []any {
	created, _ := time.Parse(time.RFC3339, text(obj, "metadata", "creationTimestamp"))
	return []any{text(obj, "metadata", "name"), created.UTC().Format(time.RFC3339)}
}

func age(obj catalog.Object, now time.Time) string {
	return since(text(obj, "metadata", "creationTimestamp"), now)
}

// since returns the time between a timestamp (RFC 3339, with or without fractions) and now, as kubectl shows durations.
func since(timestamp string, now time.Time) string {
	t, err := time.Parse(time.RFC3339, timestamp)
	if err != nil || t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(t))
}
