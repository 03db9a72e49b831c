package request

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Record collects the audit log's data about one request. Package front creates one for each request that the audit
// policy selects. It is safe for concurrent use; callers must not change values passed to it, since it may keep them.
type Record interface {
	// Annotate adds an annotation. The first value of a key wins.
	Annotate(key, value string)
	// Bodies reports whether request bodies are recorded, Answers whether responses are.
	Bodies() bool
	Answers() bool

	// Changes reports whether the policy needs calls of Changed.
	Changes() bool

	// RequestObject is called with the object that the client has sent, decoded. Its name, uid and resourceVersion are
	// recorded in any case.
	RequestObject(obj map[string]any)
	// RequestBody is called with the JSON document in a request that is not an object: a patch.
	RequestBody(doc []byte)
	// ResponseStatus is called when the response is a Status, which is always recorded.
	ResponseStatus(s *metav1.Status)
	// ResponseObject is called with a response as JSON.
	ResponseObject(doc []byte)
	// Changed is called when the request has changed its object in the store. before is nil for a new object, after for
	// a deleted one.
	Changed(before, after map[string]any)
}

// RecordOf returns the Record of the request of ctx, or nil.
func RecordOf(ctx context.Context) Record {
	if s := ScopeOf(ctx); s != nil {
		return s.Audit
	}
	return nil
}
