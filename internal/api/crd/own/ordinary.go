package own

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/schema/cel/jsonpath"
	"github.com/bowsprit/bowsprit/internal/object/sensitive"
)

// Remark is a remark about a field of a definition.
type Remark struct {
	Path string
	Text string
}

// Ordinary changes a decoded and valid definition so that other clusters accept its columns and schemas and behave
// alike. It returns the losses.
func Ordinary(obj object.Object) []Remark {
	return append(ordinaryColumns(obj), ordinarySensitive(obj)...)
}

// ordinaryColumns gives columns a path in place of their expression, or removes them.
func ordinaryColumns(obj object.Object) (losses []Remark) {
	all, err := ReadColumns(ColumnsOf(obj))
	if err != nil {
		return nil // the definition is valid
	}
	for i, version := range versions(obj) {
		expressions := all[object.String(version, "name")]
		var kept []any
		for j, column := range object.Objects(version["additionalPrinterColumns"]) {
			if givePath(column, expressions) {
				kept = append(kept, column)
				continue
			}
			name := object.String(column, "name")
			delete(expressions, name)
			losses = append(losses, Remark{columnPath(i, j).String(),
				fmt.Sprintf("column %s is left out: no path has the value of its expression", name)})
		}
		object.SetOrDelete(version, "additionalPrinterColumns", kept, len(kept) > 0)
	}
	if len(losses) > 0 {
		annotate(obj, ColumnsAnnotation, all.text())
	}
	return losses
}

// givePath gives a column with an expression a path, unless it has one, and reports whether it has one now.
func givePath(column object.Object, expressions map[string]string) bool {
	source := expressions[object.String(column, "name")]
	if source == "" || object.String(column, "jsonPath") != "" {
		return true
	}
	path, ok := jsonpath.Of(source)
	if ok {
		column["jsonPath"] = path
	}
	return ok
}

// ordinarySensitive removes the marks of sensitive fields.
func ordinarySensitive(obj object.Object) (losses []Remark) {
	eachSchema(obj, func(root object.Object, at *field.Path) {
		walk(root, at, spot{root: true}, func(s object.Object, at *field.Path, _ spot) {
			marked := s[sensitive.Keyword] == true
			delete(s, sensitive.Keyword)
			if marked {
				losses = append(losses, Remark{at.String(), sensitive.Keyword + " is left out: other clusters show the field to " +
					"all readers of the object"})
			}
		})
	})
	return losses
}

// Fields returns the fields of columns and schemas of a manifest that other clusters do not know, before it is decoded.
func Fields(obj object.Object) (found []Remark) {
	for i, version := range versions(obj) {
		for j, column := range object.Objects(version["additionalPrinterColumns"]) {
			if column[ColumnKeyword] != nil {
				at := columnPath(i, j).Child(ColumnKeyword)
				found = append(found, Unknown(at, Export+"a path, if one has the value"))
			}
		}
	}
	equivalents := map[string]string{
		ImmutableKeyword: Export + "validation rules", sensitive.Keyword: "they show the field to all readers of the object",
	}
	eachSchema(obj, func(root object.Object, at *field.Path) {
		walk(root, at, spot{root: true}, func(s object.Object, at *field.Path, _ spot) {
			for _, keyword := range slices.Sorted(maps.Keys(equivalents)) {
				if s[keyword] == true {
					found = append(found, Unknown(at.Child(keyword), equivalents[keyword]))
				}
			}
		})
	})
	return found
}

// Export begins the description of an equivalent.
const Export = "crd export --ordinary writes "

// Unknown returns the remark about a field that other clusters do not know, and its equivalent.
func Unknown(at *field.Path, equivalent string) Remark {
	return Remark{at.String(), "other clusters do not know this field: " + equivalent}
}
