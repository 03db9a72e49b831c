// Command ship is the extension API server of docs/extension.md.
package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/extension"
)

// Ship is a kind.
type Ship struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              ShipSpec   `json:"spec"`
	Status            ShipStatus `json:"status,omitzero"`
}

// ShipSpec is the desired state of a Ship.
type ShipSpec struct {
	Captain string `json:"captain" schema:"minLength=1" column:"Captain" doc:"Who commands it."`
	Masts   int32  `json:"masts,omitempty" schema:"minimum=1,maximum=7,default=3" column:"Masts"`
}

// ShipStatus is the observed state of a Ship.
type ShipStatus struct {
	Port string `json:"port,omitempty" column:"Port"`
}

func validate(s, old *Ship) field.ErrorList {
	if old != nil && s.Spec.Masts < old.Spec.Masts {
		return field.ErrorList{field.Forbidden(field.NewPath("spec", "masts"), "masts are not taken down")}
	}
	return nil
}

func main() {
	extension.Main(extension.Server{Kinds: []extension.Kind{
		extension.Of("sea.example.com/v1", extension.Type[Ship]{Validate: validate}),
	}})
}
