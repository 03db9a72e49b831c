// Command flunder is the extension API server of Kubernetes' sample-apiserver, made with package extension: Flunders
// and Fischers, with validation, defaults, columns and a status.
package main

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/extension"
)

// Flunder refers to a Flunder or to a Fischer.
type Flunder struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              FlunderSpec   `json:"spec,omitzero" doc:"Object that the flunder refers to."`
	Status            FlunderStatus `json:"status,omitzero"`
}

// FlunderSpec is the desired state.
type FlunderSpec struct {
	Reference     string `json:"reference,omitempty" doc:"Name of that object." column:"Reference"`
	ReferenceType string `json:"referenceType,omitempty" schema:"enum=Flunder|Fischer" column:"Type"`
	Size          int32  `json:"size,omitempty" schema:"minimum=1,maximum=100,default=10"`
}

// FlunderStatus is the observed state.
type FlunderStatus struct {
	Phase string `json:"phase,omitempty" column:"Phase"`
}

// Fischer names disallowed flunders.
type Fischer struct {
	metav1.TypeMeta    `json:",inline"`
	metav1.ObjectMeta  `json:"metadata"`
	DisallowedFlunders []string `json:"disallowedFlunders,omitempty" schema:"maxItems=100"`
}

func kinds() []extension.Kind {
	return []extension.Kind{
		extension.Of("wardle.example.com/v1alpha1", extension.Type[Flunder]{
			ShortNames: []string{"fl"}, Default: defaultFlunder, Validate: validateFlunder,
		}),
		extension.Of("wardle.example.com/v1alpha1", extension.Type[Fischer]{
			Cluster: true, Validate: validateFischer,
		}),
	}
}

func defaultFlunder(f *Flunder) {
	if f.Spec.Reference != "" && f.Spec.ReferenceType == "" {
		f.Spec.ReferenceType = "Flunder"
	}
}

func validateFlunder(f, _ *Flunder) field.ErrorList {
	if f.Spec.Reference == f.Name {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "reference"), f.Name, "a flunder cannot refer to itself")}
	}
	return nil
}

func validateFischer(f, _ *Fischer) field.ErrorList {
	if slices.Contains(f.DisallowedFlunders, "") {
		return field.ErrorList{field.Required(field.NewPath("disallowedFlunders"), "names are not empty")}
	}
	return nil
}

func main() { extension.Main(extension.Server{Kinds: kinds()}) }
