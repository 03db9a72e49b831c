package table

import (
	"encoding/json"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// Scale returns the Table of the scale of an object of kind r. row.JSON is the Scale, not the object.
func Scale(r *catalog.Resource, row Row, o Options) ([]byte, error) {
	return newWriter(scalePrinter(r.Custom()), o).single(row)
}

// scalePrinter returns the columns of kube-apiserver for scales: from its printers for built-in kinds, from a
// definition's columns for custom ones. The cells are the same.
func scalePrinter(custom bool) *printer {
	docs := metav1.ObjectMeta{}.SwaggerDoc()
	name := catalog.Column{Name: "Name", Type: "string"}
	desired := catalog.Column{
		Name: "Desired", Type: "integer", JSONPath: ".spec.replicas",
		Description: autoscalingv1.ScaleSpec{}.SwaggerDoc()["replicas"],
	}
	available := catalog.Column{
		Name: "Available", Type: "integer", JSONPath: ".status.replicas",
		Description: autoscalingv1.ScaleStatus{}.SwaggerDoc()["replicas"],
	}
	age := catalog.Column{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"}
	shown := "string"
	if custom {
		name.Format, shown = "name", age.Type
		desired.Description, available.Description = "Number of desired replicas", "Number of actual replicas"
	}
	p := &printer{}
	p.define(name, docs["name"])
	for _, c := range []catalog.Column{desired, available, age} {
		col, _ := newColumn(c, nil) // constant paths always parse
		p.columns = append(p.columns, col)
	}
	p.define(desired, desired.Description)
	p.define(available, available.Description)
	age.Type = shown
	p.define(age, docs["creationTimestamp"])
	p.header, _ = json.Marshal(p.definitions) // strings and integers cannot fail
	return p
}
