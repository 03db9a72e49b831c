package rest

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bowsprit/bowsprit/internal/request"
)

// recordAnswer records a response in the audit log; into has its Go type. A Status is recorded even if the policy omits
// responses.
func recordAnswer(a request.Record, doc []byte, into any) {
	if _, ok := into.(*metav1.Status); ok {
		var status metav1.Status
		if json.Unmarshal(doc, &status) == nil {
			a.ResponseStatus(&status)
		}
		return
	}
	if a.Answers() {
		a.ResponseObject(doc)
	}
}

// recordDeleteOptions notes for the audit log the body of a deletion. a may be nil.
func recordDeleteOptions(a request.Record, o *metav1.DeleteOptions) {
	if a == nil || !a.Bodies() {
		return
	}
	if obj, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o); err == nil {
		obj["kind"], obj["apiVersion"] = "DeleteOptions", "meta.k8s.io/__internal" // as in Kubernetes
		a.RequestObject(obj)
	}
}
