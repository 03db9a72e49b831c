package rest

import (
	"encoding/json"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// writeSuccess responds to a POST to a subresource that returns no object.
func writeSuccess(w http.ResponseWriter, r *http.Request) error {
	media, err := negotiateScale(r) // only the formats of a built-in document
	if err != nil {
		return err
	}
	doc, err := successful(metav1.Status{Code: http.StatusCreated})
	if err != nil {
		return err
	}
	return writeDocument(w, r, doc, answer{code: http.StatusCreated, form: media}, &metav1.Status{})
}

// successful returns the JSON of a Status of success, with its fields in Kubernetes' order.
func successful(s metav1.Status) ([]byte, error) {
	s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	s.Status = metav1.StatusSuccess
	return json.Marshal(&s)
}
