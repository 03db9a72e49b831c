package own

import (
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/schema"
	"github.com/bowsprit/bowsprit/internal/object/schema/cel"
	"github.com/bowsprit/bowsprit/internal/object/schema/format"
	"github.com/bowsprit/bowsprit/internal/object/sensitive"
)

// CheckColumns returns the errors in the expressions of columns of a definition, which is valid otherwise: def is obj
// decoded, and old the stored definition, nil for a new one. hidden are the fields that no table may show.
func CheckColumns(
	obj, old object.Object, def *apiextensionsv1.CustomResourceDefinition, hidden *sensitive.Fields,
) (errs field.ErrorList) {
	path := annotationsPath.Key(ColumnsAnnotation)
	all, err := ReadColumns(ColumnsOf(obj))
	if err != nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	stored, _ := ReadColumns(ColumnsOf(old)) // a stored definition was valid
	k := columnsCheck{def: def, hidden: hidden, patterns: new(format.Patterns), roots: map[int]*schema.Node{}}
	for _, version := range all.sortedVersions() {
		for _, name := range slices.Sorted(maps.Keys(all[version])) {
			expression := all[version][name]
			found := columnsNamed(obj, version, name)
			if len(found) != 1 {
				errs = append(errs, field.Invalid(path, field.OmitValueType{}, fmt.Sprintf(
					"version %s has %d columns with the name %q, and needs one", version, len(found), name)))
				continue
			}
			if err := k.column(found[0], expression, stored[version][name] == expression); err != nil {
				at := columnPath(found[0].version, found[0].column).Child(ColumnKeyword)
				errs = append(errs, field.Invalid(at, expression, err.Error()))
			}
		}
	}
	return errs
}

// CheckColumnFields returns the errors in expressions that TakeColumns has left.
func CheckColumnFields(obj object.Object) (errs field.ErrorList) {
	for i, version := range versions(obj) {
		for j, column := range object.Objects(version["additionalPrinterColumns"]) {
			v, set := column[ColumnKeyword]
			if !set {
				continue
			}
			at := columnPath(i, j).Child(ColumnKeyword)
			if _, ok := v.(string); ok {
				errs = append(errs, field.Forbidden(at, "must not be set with jsonPath: to give other clusters a path, write "+
					"the expression in the annotation "+ColumnsAnnotation))
			} else {
				errs = append(errs, field.Invalid(at, v, "must be a CEL expression"))
			}
		}
	}
	return errs
}

// columnsCheck checks the expressions of one definition.
type columnsCheck struct {
	def      *apiextensionsv1.CustomResourceDefinition
	hidden   *sensitive.Fields
	patterns *format.Patterns
	roots    map[int]*schema.Node // of the compiled versions
}

func (k *columnsCheck) column(at slot, expression string, stored bool) error {
	root, err := k.root(at.version)
	if err != nil {
		return err
	}
	o := cel.ColumnCheck{Type: object.String(at.object, "type"), Stored: stored, Patterns: k.patterns}
	if k.hidden != nil {
		o.Hidden = func(path []string) bool { return k.hidden.At(path...) != nil }
	}
	return cel.CheckColumn(root, expression, o)
}

// root returns the schema of a version.
func (k *columnsCheck) root(i int) (*schema.Node, error) {
	if root := k.roots[i]; root != nil {
		return root, nil
	}
	var props *apiextensionsv1.JSONSchemaProps
	if v := k.def.Spec.Versions[i].Schema; v != nil {
		props = v.OpenAPIV3Schema
	}
	compiled, err := schema.Compile(props, schema.Options{})
	if err != nil {
		return nil, err
	}
	k.roots[i] = compiled.Root()
	return k.roots[i], nil
}

// ColumnWarnings returns warnings about columns that an update gives a path, which has no effect.
func ColumnWarnings(obj, old object.Object) (out []string) {
	all, err := ReadColumns(ColumnsOf(obj))
	if err != nil || old == nil {
		return nil
	}
	for _, version := range all.sortedVersions() {
		for _, name := range slices.Sorted(maps.Keys(all[version])) {
			now, was := columnsNamed(obj, version, name), columnsNamed(old, version, name)
			if len(now) == 1 && len(was) == 1 && pathOf(now[0]) != "" && pathOf(was[0]) == "" {
				out = append(out, fmt.Sprintf("column %s of version %s shows its expression in the annotation %s: remove it "+
					"there to use the path", name, version, ColumnsAnnotation))
			}
		}
	}
	return out
}

func pathOf(p slot) string { return object.String(p.object, "jsonPath") }
