// Package vessels is a table of client tests for the kinds of an extension. The same table runs against kinds in a
// server's own process, behind Bowsprit and behind kube-apiserver.
package vessels

import (
	"context"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bowsprit/bowsprit/extension"
)

// Group of the kinds.
const Group = "extension.example.com"

// Vessel is a namespaced kind, defined by a Go type.
type Vessel struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              VesselSpec   `json:"spec"`
	Status            VesselStatus `json:"status,omitzero"`
}

// VesselSpec is the desired state of a Vessel.
type VesselSpec struct {
	Captain string   `json:"captain" schema:"minLength=1" column:"Captain" doc:"Who commands it."`
	Kind    string   `json:"kind,omitempty" schema:"enum=Sloop|Ketch|Barge,default=Sloop" column:"Rig"`
	Masts   int32    `json:"masts,omitempty" schema:"minimum=0,maximum=7"`
	Length  *float64 `json:"length,omitempty"`
	Crew    []Sailor `json:"crew,omitempty" schema:"listType=map,listMapKey=name"`
}

// Sailor is a member of the crew.
type Sailor struct {
	Name string `json:"name"`
	Rank string `json:"rank,omitempty"`
}

// VesselStatus is the observed state of a Vessel.
type VesselStatus struct {
	Port string `json:"port,omitempty" column:"Port"`
}

// harbours is a cluster-scoped kind, defined by a manifest.
const harbours = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: harbours.extension.example.com}
spec:
  group: extension.example.com
  scope: Cluster
  names: {plural: harbours, kind: Harbour}
  versions:
  - name: v1
    served: true
    storage: true
    selectableFields: [{jsonPath: .spec.country}]
    subresources: {scale: {specReplicasPath: .spec.berths, statusReplicasPath: .status.berths}, status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              country: {type: string, default: NZ}
              berths: {type: integer, maximum: 100}
            x-kubernetes-validations: [{rule: "!has(self.berths) || self.berths != 13", message: no thirteen}]
          status: {type: object, properties: {berths: {type: integer}}}
`

// Kinds returns the kinds under test.
func Kinds() []extension.Kind {
	vessels := extension.Of(Group+"/v1", extension.Type[Vessel]{
		ShortNames: []string{"ves"}, Default: rig, Validate: validate,
	})
	vessels.Paths = map[string]extension.Path{"hail": {Methods: []string{http.MethodPost}, Serve: hail}}
	return []extension.Kind{vessels, {Manifest: harbours}}
}

// rig sets the number of masts of a vessel.
func rig(v *Vessel) {
	if v.Spec.Masts == 0 {
		v.Spec.Masts = map[string]int32{"Sloop": 1, "Ketch": 2}[v.Spec.Kind]
	}
}

func validate(v, old *Vessel) field.ErrorList {
	path := field.NewPath("spec", "captain")
	switch {
	case v.Spec.Captain == "Ahab":
		return field.ErrorList{field.Forbidden(path, "not again")}
	case old != nil && old.Spec.Captain == "Hook" && v.Spec.Captain != "Hook":
		return field.ErrorList{field.Invalid(path, v.Spec.Captain, "Hook stays")}
	}
	return nil
}

// hail responds with the captain's name.
func hail(_ context.Context, obj *unstructured.Unstructured, w http.ResponseWriter, _ *http.Request) error {
	captain, _, _ := unstructured.NestedString(obj.Object, "spec", "captain")
	if captain == "Silent" {
		return apierrors.NewBadRequest("no answer")
	}
	_, err := fmt.Fprintf(w, "captain %s of the %s", captain, obj.GetName())
	return err
}
