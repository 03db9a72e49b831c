package own

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// ColumnsAnnotation is the annotation of a definition with the expressions of its printer columns (KEP-4595), YAML or
// JSON: an object with the versions, and in each one the expressions by the names of the columns.
const ColumnsAnnotation = "bowsprit.dev/printer-columns"

// ColumnKeyword is the field of a printer column with its expression.
const ColumnKeyword = "expression"

// maxAnnotation bounds an annotation, in bytes, as Kubernetes bounds all annotations of an object.
const maxAnnotation = 256 << 10

// Columns are the expressions of columns, by the name of the version, then by the name of the column.
type Columns map[string]map[string]string

// Has reports whether a column of a version has an expression.
func (c Columns) Has(version, column string) bool { return c[version][column] != "" }

// ReadColumns reads the annotation; "" has no columns.
func ReadColumns(text string) (Columns, error) {
	if text == "" {
		return nil, nil
	}
	if len(text) > maxAnnotation {
		return nil, fmt.Errorf("the annotation has %d bytes, at most %d are allowed", len(text), maxAnnotation)
	}
	raw, err := codec.FromYAML([]byte(text))
	if err != nil {
		return nil, err
	}
	if len(raw) > 4*maxAnnotation {
		return nil, errors.New("the annotation is too large after its YAML aliases are expanded")
	}
	v, err := codec.DecodeJSON(raw)
	if err != nil {
		return nil, err
	}
	all, ok := v.(object.Object)
	if !ok {
		return nil, errors.New("must be an object with the names of versions")
	}
	out := Columns{}
	for _, version := range object.Keys(all) {
		columns, ok := all[version].(object.Object)
		if !ok {
			return nil, fmt.Errorf("%s: must be an object with the names of columns", version)
		}
		out[version] = map[string]string{}
		for _, name := range object.Keys(columns) {
			if out[version][name], ok = columns[name].(string); !ok || out[version][name] == "" {
				return nil, fmt.Errorf("%s: %s: must be an expression", version, name)
			}
		}
	}
	return out, nil
}

// text returns the annotation.
func (c Columns) text() string {
	out := object.Object{}
	for version, columns := range c {
		if len(columns) == 0 {
			continue
		}
		below := object.Object{}
		for name, expression := range columns {
			below[name] = expression
		}
		out[version] = below
	}
	if len(out) == 0 {
		return ""
	}
	return marshal(out)
}

// ColumnsOf returns the annotation of a definition, "" for none.
func ColumnsOf(obj object.Object) string {
	return object.String(obj, "metadata", "annotations", ColumnsAnnotation)
}

// TakeColumns moves expressions from the columns of a definition of v1 or v1beta1 to the annotation, replacing the
// expressions of the same columns there. Expressions that are no text, or beside a path, stay for the validation.
func TakeColumns(obj object.Object) {
	t := taking{}
	spec := object.Map(obj, "spec")
	var names []string
	for _, version := range versions(obj) {
		name := object.String(version, "name")
		names = append(names, name)
		t.list(version["additionalPrinterColumns"], name)
	}
	if name := object.String(spec, "version"); len(names) == 0 && name != "" {
		names = []string{name}
	}
	t.list(spec["additionalPrinterColumns"], names...)
	if len(t.found) == 0 {
		return
	}
	all, err := ReadColumns(ColumnsOf(obj))
	if err != nil {
		return // refused by the validation
	}
	now := Columns{}
	for version, columns := range all {
		now[version] = maps.Clone(columns)
	}
	for _, f := range t.found {
		for _, version := range f.versions {
			if now[version] == nil {
				now[version] = map[string]string{}
			}
			now[version][object.String(f.column, "name")] = object.String(f.column, ColumnKeyword)
		}
	}
	if !maps.EqualFunc(all, now, maps.Equal) && !annotate(obj, ColumnsAnnotation, now.text()) {
		return
	}
	for _, f := range t.found {
		delete(f.column, ColumnKeyword)
	}
}

// taking collects columns with expressions.
type taking struct{ found []foundColumn }

type foundColumn struct {
	column   object.Object
	versions []string
}

// list adds the columns of a list that the versions have.
func (t *taking) list(list any, versions ...string) {
	for _, column := range object.Objects(list) {
		v, set := column[ColumnKeyword]
		expression, isText := v.(string)
		switch {
		case !set:
		case v == nil || isText && expression == "":
			delete(column, ColumnKeyword)
		case isText && object.String(column, "jsonPath") == "" && object.String(column, "JSONPath") == "":
			t.found = append(t.found, foundColumn{column, versions})
		}
	}
}

// DropColumns removes the expressions of columns that an update of a definition removes.
func DropColumns(obj, old object.Object) {
	all, err := ReadColumns(ColumnsOf(obj))
	if err != nil || len(all) == 0 {
		return
	}
	was, err := ReadColumns(ColumnsOf(old))
	if err != nil {
		return
	}
	dropped := false
	for version, columns := range all {
		maps.DeleteFunc(columns, func(name, expression string) bool {
			gone := was[version][name] == expression && len(columnsNamed(obj, version, name)) == 0
			dropped = dropped || gone
			return gone
		})
	}
	if dropped {
		annotate(obj, ColumnsAnnotation, all.text())
	}
}

// slot is a column of a definition.
type slot struct {
	version, column int
	object          object.Object
}

func columnPath(version, column int) *field.Path {
	return field.NewPath("spec", "versions").Index(version).Child("additionalPrinterColumns").Index(column)
}

// columnsNamed returns the columns with a name in a version.
func columnsNamed(obj object.Object, version, name string) (found []slot) {
	for i, v := range versions(obj) {
		if object.String(v, "name") != version {
			continue
		}
		for j, column := range object.Objects(v["additionalPrinterColumns"]) {
			if object.String(column, "name") == name {
				found = append(found, slot{i, j, column})
			}
		}
	}
	return found
}

// sortedVersions returns the versions in the annotation.
func (c Columns) sortedVersions() []string { return slices.Sorted(maps.Keys(c)) }
