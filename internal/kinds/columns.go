package kinds

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// Columns and cells are those of kube-apiserver's printers (pkg/printers/internalversion). Unlike those of a
// CustomResourceDefinition, the columns of a built-in kind are all there is: Name is one of them.

// columnsText holds the columns of the kinds that have printers; its head explains it.
//
//go:embed columns.txt
var columnsText string

// columnTexts are the columns by kind.
type columnTexts map[string][]catalog.Column

// loadColumns parses the embedded text, which is part of the program and so cannot be wrong.
func loadColumns() columnTexts {
	out := columnTexts{}
	kind := ""
	for line := range strings.Lines(columnsText) {
		line = strings.TrimRight(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		if line[0] != '\t' {
			kind = line
			continue
		}
		f := strings.SplitN(line[1:], "\t", 5)
		priority, err := strconv.ParseInt(f[3], 10, 32)
		if err != nil {
			panic(fmt.Errorf("columns.txt: %q: %w", line, err))
		}
		out[kind] = append(out[kind], catalog.Column{
			Name: f[0], Type: f[1], Format: f[2], Priority: int32(priority),
			Description: strings.ReplaceAll(f[4], `\n`, "\n"),
		})
	}
	return out
}

func nameColumn() catalog.Column {
	return catalog.Column{
		Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"],
	}
}

// createdColumn is the second column of kinds that have none of their own; unlike ageColumn it is an absolute time.
func createdColumn() catalog.Column {
	return catalog.Column{
		Name: "Created At", Type: "date", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
	}
}

func nameAndAge(obj catalog.Object, e catalog.Env) []any {
	return []any{catalog.Text(obj, "metadata", "name"), age(obj, e.Now)}
}

func nameAndCreation(obj catalog.Object, _ catalog.Env) []any {
	created, _ := time.Parse(time.RFC3339, catalog.Text(obj, "metadata", "creationTimestamp"))
	return []any{catalog.Text(obj, "metadata", "name"), created.UTC().Format(time.RFC3339)}
}

func age(obj catalog.Object, now time.Time) string {
	return since(catalog.Text(obj, "metadata", "creationTimestamp"), now)
}

// since returns the time between a timestamp (RFC 3339, with or without fractions) and now, as kubectl shows durations.
func since(timestamp string, now time.Time) string {
	t, err := time.Parse(time.RFC3339, timestamp)
	if err != nil || t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(t))
}
