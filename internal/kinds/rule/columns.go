package rule

import (
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// Columns and cells equal the output of kube-apiserver's printers (pkg/printers/internalversion). Unlike the columns of
// a CustomResourceDefinition, the columns of a built-in kind are complete, and include Name.

// parseColumns parses lines of name, type, format, priority and description, separated by tabs.
func parseColumns(lines []string) ([]catalog.Column, error) {
	out := make([]catalog.Column, 0, len(lines))
	for _, l := range lines {
		f := strings.SplitN(l, "\t", 5)
		if len(f) != 5 {
			return nil, fmt.Errorf("%q has %d fields, not 5", l, len(f))
		}
		priority, err := strconv.ParseInt(f[3], 10, 32)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", l, err)
		}
		out = append(out, catalog.Column{
			Name: f[0], Type: f[1], Format: f[2], Priority: int32(priority),
			Description: strings.ReplaceAll(f[4], `\n`, "\n"),
		})
	}
	return out, nil
}

// NameColumn is the first column of nearly all kinds.
func NameColumn() catalog.Column {
	return catalog.Column{
		Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"],
	}
}

// CreatedColumn is the second column of kinds without columns of their own; unlike the age it is an absolute time.
func CreatedColumn() catalog.Column {
	return catalog.Column{
		Name: "Created At", Type: "date", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
	}
}
