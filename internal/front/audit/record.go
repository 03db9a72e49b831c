package audit

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	auditapi "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/request"
)

// Record collects the audit data of one request.
type Record struct {
	auditor           *Auditor
	longRunning       bool
	omit              []auditapi.Stage
	omitManagedFields bool
	// patch is true if the event gets a JSON patch of the change, and no objects.
	patch   bool
	library *library // annotations of Kubernetes' libraries; may be nil

	mu struct {
		sync.Mutex
		begun bool // the response has a status
	}
	// mu guards event and extras. The event itself has annotations only for backends that need them there.
	event auditapi.Event
	extras
	list   links    // guarded by logBackend.mu
	known  bool     // writeDeferred may be about to check whether it is deferred
	memory struct { // for the parts of event and annotations that nearly every request has
		ref         auditapi.ObjectReference
		annotations [3]annotation
	}
}

var _ request.Record = (*Record)(nil)

// RequestReceived records the arrival of the request. It returns false if a backend in mode blocking-strict failed: the
// caller must then refuse the request.
func (r *Record) RequestReceived() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if log := r.auditor.log; log != nil && r.mayHold() && log.hold(r) {
		r.deferred = true
		r.auditor.metrics.events.Inc()
		return true
	}
	return r.stageLocked(auditapi.StageRequestReceived, r.event.RequestReceivedTimestamp.Time)
}

// ResponseStarted records the status code when the response begins.
func (r *Record) ResponseStarted(code int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.begun {
		return
	}
	r.mu.begun = true
	r.code = int32(code)
	if r.event.ResponseStatus != nil {
		r.event.ResponseStatus.Code = r.code
	}
	if r.longRunning {
		r.stageLocked(auditapi.StageResponseStarted, r.auditor.now())
	}
}

// ResponseComplete records that the request has ended at the time now.
func (r *Record) ResponseComplete(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.event.ResponseStatus == nil && r.code == 0 { // no handler has begun a response; net/http sends an empty one
		r.event.ResponseStatus = &metav1.Status{
			Code: http.StatusOK, Status: metav1.StatusSuccess, Message: "Connection closed early",
		}
		if r.longRunning {
			r.stageLocked(auditapi.StageResponseStarted, now)
		}
	}
	r.stageLocked(auditapi.StageResponseComplete, now)
}

// Panicked records that the handler of the request has panicked.
func (r *Record) Panicked(cause any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.event.ResponseStatus = &metav1.Status{
		Code: http.StatusInternalServerError, Status: metav1.StatusFailure,
		Reason: metav1.StatusReasonInternalError, Message: fmt.Sprintf("APIServer panic'd: %v", cause),
	}
	r.stageLocked(auditapi.StagePanic, r.auditor.now())
}

// AnswerOnly records the start of the response: the only stage of requests refused before their user is known.
func (r *Record) AnswerOnly() { r.longRunning = true }

// Impersonated records the impersonated user. constraint is the verb by which constrained impersonation allowed it, or
// "".
func (r *Record) Impersonated(u user.Info, constraint string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	info := userInfo(u)
	r.event.ImpersonatedUser = &info
	if constraint != "" {
		r.event.AuthenticationMetadata = &auditapi.AuthenticationMetadata{ImpersonationConstraint: constraint}
	}
}

// Decided records the authorizer's decision and reason. decision is "" if the authorizer failed.
func (r *Record) Decided(decision, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if decision != "" {
		r.annotateLocked("authorization.k8s.io/decision", decision)
	}
	r.annotateLocked("authorization.k8s.io/reason", reason)
}

// Annotate implements request.Record.
func (r *Record) Annotate(key, value string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.annotateLocked(key, value)
}

func (r *Record) annotateLocked(key, value string) {
	r.annotations.add(key, value)
}

// Bodies implements request.Record.
func (r *Record) Bodies() bool { return r.event.Level.GreaterOrEqual(auditapi.LevelRequest) }

// Answers implements request.Record.
func (r *Record) Answers() bool {
	return !r.patch && r.event.Level.GreaterOrEqual(auditapi.LevelRequestResponse)
}

// Changes implements request.Record.
func (r *Record) Changes() bool { return r.patch }

// RequestObject implements request.Record.
func (r *Record) RequestObject(obj map[string]any) {
	var raw []byte
	if r.Bodies() && !r.patch {
		raw = codec.AppendJSON(nil, r.recorded(obj))
	}
	meta, _ := obj["metadata"].(map[string]any)
	r.mu.Lock()
	defer r.mu.Unlock()
	if ref := r.event.ObjectRef; ref != nil {
		set(&ref.Namespace, meta, "namespace")
		set(&ref.Name, meta, "name")
		set(&ref.UID, meta, "uid")
		set(&ref.ResourceVersion, meta, "resourceVersion")
	}
	if raw != nil {
		r.event.RequestObject = document(raw)
	}
}

// set fills in a field that the URL omits.
func set[T ~string](field *T, meta map[string]any, name string) {
	if *field == "" {
		*field = T(object.String(meta, name))
	}
}

// RequestBody implements request.Record.
func (r *Record) RequestBody(body []byte) {
	if !r.Bodies() || r.patch {
		return
	}
	if !json.Valid(body) { // kube-apiserver loses such events
		if doc, err := codec.FromYAML(body); err == nil { // apply
			body = doc
		} else {
			body = codec.AppendString(nil, string(body))
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.event.RequestObject = document(body)
}

// ResponseStatus implements request.Record.
func (r *Record) ResponseStatus(s *metav1.Status) {
	var raw []byte
	if r.Answers() {
		if doc, err := codec.EncodeStatus(s, codec.Media{Type: codec.JSON}); err == nil {
			raw = doc
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.event.ResponseStatus = &metav1.Status{
		Status: s.Status, Message: s.Message, Reason: s.Reason, Details: s.Details, Code: s.Code,
	}
	if raw != nil {
		r.event.ResponseObject = document(raw)
	}
}

// ResponseObject implements request.Record.
func (r *Record) ResponseObject(doc []byte) {
	if !r.Answers() {
		return
	}
	if r.omitManagedFields {
		doc = withoutManagedFields(doc)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.event.ResponseObject = document(doc)
}

// Changed implements request.Record.
func (r *Record) Changed(before, after map[string]any) {
	if !r.patch || r.event.Verb == "deletecollection" { // that verb changes many objects
		return
	}
	steps := diff(r.recorded(before), r.recorded(after))
	raw, err := encodePatch(steps)
	if err != nil {
		return // unreachable: the patch always encodes
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.event.ResponseObject = document(raw)
	r.annotateLocked(PatchAnnotation, changesPatch)
	ref := r.event.ObjectRef
	stored := after
	if stored == nil {
		stored = before
	}
	if meta, ok := stored["metadata"].(map[string]any); ok && ref != nil {
		set(&ref.Name, meta, "name")
		set(&ref.UID, meta, "uid")
	}
}

// PatchAnnotation marks events with a JSON patch of the change in responseObject.
const PatchAnnotation = "audit.bowsprit.io/response-object"

// recorded returns an object without its managedFields, if the policy omits them. It does not change obj.
func (r *Record) recorded(obj map[string]any) map[string]any {
	meta, ok := obj["metadata"].(map[string]any)
	if !r.omitManagedFields || !ok || meta["managedFields"] == nil {
		return obj
	}
	out := make(map[string]any, len(obj))
	for key, v := range obj {
		out[key] = v
	}
	short := make(map[string]any, len(meta))
	for key, v := range meta {
		if key != "managedFields" {
			short[key] = v
		}
	}
	out["metadata"] = short
	return out
}

// stageLocked records that the request came to a stage at a time, and reports whether that was recorded or was not to
// be.
func (r *Record) stageLocked(stage auditapi.Stage, at time.Time) bool {
	if omits(r.omit, stage) {
		return true
	}
	if r.deferred && !r.auditor.log.dropDeferred(r) {
		r.known = true
	}
	r.event.Stage, r.event.StageTimestamp = stage, metav1.NewMicroTime(at)
	for key, value := range r.library.annotations() {
		r.annotateLocked(key, value)
	}
	ok := r.auditor.deliver(r)
	r.deferred = false // recorded together with this event
	return ok
}

// Clear prepares the Record of a completed request for reuse, and reports whether that is possible. It is not if the
// log still refers to it, or if backends keep events.
func (r *Record) Clear() bool {
	if r.auditor == nil {
		return true // never used
	}
	if r.auditor.log == nil || r.known || r.deferred {
		return false
	}
	*r = Record{}
	return true
}

func document(raw []byte) *runtime.Unknown {
	return &runtime.Unknown{Raw: raw, ContentType: runtime.ContentTypeJSON}
}
