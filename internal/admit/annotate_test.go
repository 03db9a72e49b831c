package admit

import (
	"maps"
	"testing"

	"github.com/bowsprit/bowsprit/internal/request"
)

// recorder is an audit record that keeps annotations.
type recorder struct {
	request.Record
	bodies      bool
	annotations map[string]string
}

func (r *recorder) Annotate(key, value string) { r.annotations[key] = value }

func (r *recorder) Bodies() bool { return r.bodies }

// TestAnnotateRequest checks that values with object content reach the audit log only if it records request bodies.
func TestAnnotateRequest(t *testing.T) {
	t.Parallel()
	for _, bodies := range []bool{false, true} {
		r := &recorder{bodies: bodies, annotations: map[string]string{}}
		a := &Attributes{Request: Request{Audit: r}}
		a.Annotate("who", "webhook")
		a.AnnotateRequest("patch", "s3cret")
		want := map[string]string{"who": "webhook"}
		if bodies {
			want["patch"] = "s3cret"
		}
		if !maps.Equal(r.annotations, want) {
			t.Errorf("bodies recorded: %v: annotations %v, want %v", bodies, r.annotations, want)
		}
	}
}
