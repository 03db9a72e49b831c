package secrecy

import (
	"encoding/json"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/object/sensitive"
	"github.com/bowsprit/bowsprit/internal/request"
)

// Record is the audit record of a request, masked: the audit log contains no sensitive values.
type Record struct {
	request.Record
	fields *sensitive.Fields
}

// NewRecord returns a record that masks its arguments and passes them on to r.
func NewRecord(r request.Record, f *sensitive.Fields) *Record { return &Record{r, f} }

var _ request.Record = (*Record)(nil)

// Annotate implements request.Record. It masks the patches of mutating webhooks.
func (r *Record) Annotate(key, value string) {
	if strings.HasPrefix(key, "patch.webhook.admission.k8s.io/") {
		value = r.maskNote(value)
	}
	r.Record.Annotate(key, value)
}

// maskNote masks the annotation with the patch of a webhook.
func (r *Record) maskNote(value string) string {
	v, err := codec.DecodeJSON([]byte(value))
	note, ok := v.(map[string]any)
	if err != nil || !ok {
		return sensitive.Omitted
	}
	if ops, ok := note["patch"].([]any); ok {
		note["patch"] = r.fields.MaskOperations(ops)
	} else if note["patch"] != nil {
		note["patch"] = sensitive.Omitted
	}
	return string(codec.AppendJSON(nil, note))
}

// RequestObject implements request.Record.
func (r *Record) RequestObject(obj map[string]any) { r.Record.RequestObject(r.fields.MaskObject(obj)) }

// RequestBody implements request.Record.
func (r *Record) RequestBody(doc []byte) {
	if !r.Bodies() {
		return
	}
	if !json.Valid(doc) {
		if asJSON, err := codec.FromYAML(doc); err == nil { // apply
			doc = asJSON
		}
	}
	r.Record.RequestBody(r.fields.MaskPatch(doc))
}

// unreadable replaces the error of an unreadable body, which may quote the body.
const unreadable = "the message is not recorded, because it may show sensitive data"

// ResponseStatus implements request.Record.
func (r *Record) ResponseStatus(s *metav1.Status) {
	if s.Code == http.StatusBadRequest {
		out := *s
		out.Message, out.Details = unreadable, nil
		s = &out
	}
	r.Record.ResponseStatus(s)
}

// ResponseObject implements request.Record.
func (r *Record) ResponseObject(doc []byte) {
	if !r.Answers() {
		return
	}
	r.Record.ResponseObject(r.fields.MaskAnswer(doc))
}

// Changed implements request.Record. A sensitive value that has changed is replaced by the mask.
func (r *Record) Changed(before, after map[string]any) {
	if !r.Changes() {
		return
	}
	r.Record.Changed(r.fields.MaskChange(before, after))
}
