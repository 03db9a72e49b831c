package request

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Record is what the audit log is to say about one request. Package front makes one for each request that the audit
// policy wants recorded. It is safe for concurrent use; what it is given is not changed and may be kept.
type Record interface {
	// Annotate adds an annotation. The first value of a key stays.
	Annotate(key, value string)
	// Bodies reports whether what clients send is recorded, Answers whether what they get is.
	Bodies() bool
	Answers() bool

	// Changes reports whether Changed is to be called.
	Changes() bool

	// RequestObject is called with the object that the client has sent, decoded. Its name, uid and resourceVersion are
	// recorded in any case.
	RequestObject(obj map[string]any)
	// RequestBody is called with a JSON document that the client has sent and that is no object: a patch.
	RequestBody(doc []byte)
	// ResponseStatus is called when the answer is a Status. What it says is recorded in any case.
	ResponseStatus(s *metav1.Status)
	// ResponseObject is called with an answer as JSON.
	ResponseObject(doc []byte)
	// Changed is called when the request has changed its object in the store: before is nil for a new one, after for
	// one that is gone.
	Changed(before, after map[string]any)
}

// RecordOf returns what is recorded of the request whose context it is, nil if nothing is.
func RecordOf(ctx context.Context) Record {
	if s := ScopeOf(ctx); s != nil {
		return s.Audit
	}
	return nil
}
