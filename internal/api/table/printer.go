package table

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/object/schema/cel"
)

// printer prints a version of a kind. It is immutable.
type printer struct {
	definitions []metav1.TableColumnDefinition
	header      []byte // JSON of definitions
	// columns holds the columns after the name; unused if cells is set.
	columns []column
	// decode is true if some column needs the whole decoded object.
	decode bool
	// cells returns the cells of a built-in kind.
	cells func(obj catalog.Object, e catalog.Env) []any
}

type printerKey struct{}

func printerOf(r *catalog.Resource, v *catalog.Version) *printer {
	return v.Derived(printerKey{}, func() any { return compile(r, v) }).(*printer)
}

func compile(r *catalog.Resource, v *catalog.Version) *printer {
	p := &printer{}
	if rules := r.StrategyFor(v); rules != nil && rules.Cells != nil {
		p.cells = rules.Cells
		for _, c := range v.Columns {
			p.define(c, c.Description)
		}
	} else {
		docs := metav1.ObjectMeta{}.SwaggerDoc()
		p.define(catalog.Column{Name: "Name", Type: "string", Format: "name"}, docs["name"])
		columns := v.Columns
		if len(columns) == 0 {
			columns = []catalog.Column{
				{
					Name: "Age", Type: "date", Description: docs["creationTimestamp"],
					JSONPath: ".metadata.creationTimestamp",
				},
			}
		}
		for _, c := range columns {
			col, err := newColumn(c, v)
			if err != nil {
				// The definition was not validated by this server. Kubernetes prints the columns before it.
				break
			}
			description := c.Description
			if description == "" && c.Expression != "" {
				description = "Custom resource definition column (in CEL format): " + c.Expression
			}
			if description == "" {
				description = fmt.Sprintf("Custom resource definition column (in JSONPath format): %s", c.JSONPath)
			}
			p.define(c, description)
			p.columns = append(p.columns, col)
			p.decode = p.decode || col.root == ""
		}
	}
	p.header, _ = json.Marshal(p.definitions) // strings and integers cannot fail
	return p
}

func (p *printer) define(c catalog.Column, description string) {
	p.definitions = append(p.definitions, metav1.TableColumnDefinition{
		Name: c.Name, Type: c.Type, Format: c.Format, Description: description, Priority: c.Priority,
	})
}

// appendCells appends the cells of a row, with commas between them.
func (p *printer) appendCells(dst []byte, row Row, e catalog.Env) ([]byte, error) {
	if row.Object == nil && (p.decode || p.cells != nil) {
		v, err := codec.DecodeJSON(row.JSON)
		if err != nil {
			return dst, fmt.Errorf("decode an object to print: %w", err)
		}
		obj, ok := v.(map[string]any)
		if !ok {
			return dst, fmt.Errorf("an object to print is a %T", v)
		}
		row.Object = obj
	}
	if p.cells != nil {
		for i, cell := range p.cells(row.Object, e) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = codec.AppendJSON(dst, cell)
		}
		return dst, nil
	}
	doc := document{json: row.JSON, left: newAllowance(row)}
	name, err := doc.at(namePath)
	if err != nil {
		return dst, fmt.Errorf("name of an object to print: %w", err)
	}
	if name == nil {
		name = []byte(`""`)
	}
	dst = append(dst, name...)
	for i := range p.columns {
		dst = append(dst, ',')
		dst = p.columns[i].append(dst, &doc, row.Object, e.Now)
	}
	return dst, nil
}

var namePath = []string{"metadata", "name"}

// document reads fields of an object's JSON. It remembers the last field of the object's own that it looked for,
// because columns tend to follow each other inside of status.
type document struct {
	json []byte
	name string
	top  []byte
	obj  map[string]any // top decoded, as the only field of the object; nil until needed
	left allowance
	// cells is the whole object with the remaining cost of expressions; nil until needed.
	cells *cel.Object
}

// computing returns the object for columns with expressions.
func (d *document) computing(obj map[string]any) *cel.Object {
	if d.cells == nil {
		d.cells = cel.NewObject(obj)
	}
	return d.cells
}

// at returns the JSON of the value at path, a part of the document; nil if it is missing.
func (d *document) at(path []string) ([]byte, error) {
	if err := d.seek(path[0]); err != nil {
		return nil, err
	}
	value := d.top
	for _, name := range path[1:] {
		if len(value) == 0 || value[0] != '{' {
			return nil, nil
		}
		var err error
		if value, err = codec.Field(value, name); err != nil {
			return nil, err
		}
	}
	return value, nil
}

// only returns the object with no other field than name, decoded.
func (d *document) only(name string) map[string]any {
	if err := d.seek(name); err != nil {
		return nil
	}
	if d.obj == nil {
		d.obj = map[string]any{}
		if d.top != nil {
			if v, err := codec.DecodeJSON(d.top); err == nil {
				d.obj[name] = v
			}
		}
	}
	return d.obj
}

// seek sets top and obj to the named field.
func (d *document) seek(name string) error {
	if d.name == name {
		return nil
	}
	top, err := codec.Field(d.json, name)
	if err != nil {
		return err
	}
	d.name, d.top, d.obj = name, top, nil
	return nil
}
