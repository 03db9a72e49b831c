package audit

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	auditapi "k8s.io/apiserver/pkg/apis/audit"

	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// appendEvent appends an event as JSON of audit.k8s.io/v1, byte for byte like Kubernetes' encoder.
func appendEvent(dst []byte, e *auditapi.Event, of extras) ([]byte, error) {
	dst = appendField(appendHead(dst, e), "stage", e.Stage)
	dst = appendWhere(appendImpersonated(appendTarget(dst, e, of), e), e)
	return appendOutcome(dst, e, of)
}

// appendReceived appends the event RequestReceived; e is a later event of the request with more fields. It returns the
// positions of the request's description, for appendLater.
func appendReceived(dst []byte, e *auditapi.Event, of extras) ([]byte, sharedParts) {
	var at sharedParts
	at.head[0] = len(dst)
	dst = appendHead(dst, e)
	at.head[1] = len(dst)
	dst = appendField(dst, "stage", auditapi.StageRequestReceived)
	at.request[0] = len(dst)
	dst = appendTarget(dst, e, of)
	at.request[1] = len(dst)
	dst = appendWhere(dst, e)
	at.source[0], at.source[1] = at.request[1], len(dst)
	dst = appendTime(dst, "requestReceivedTimestamp", e.RequestReceivedTimestamp)
	return closeObject(appendTime(dst, "stageTimestamp", e.RequestReceivedTimestamp)), at
}

// sharedParts holds the positions (from and to) of the parts that are the same in all events of a request.
type sharedParts struct{ head, request, source [2]int }

// appendLater is appendEvent after appendReceived.
func appendLater(dst []byte, at sharedParts, e *auditapi.Event, of extras) ([]byte, error) {
	dst = append(dst, dst[at.head[0]:at.head[1]]...)
	dst = appendField(dst, "stage", e.Stage)
	dst = append(dst, dst[at.request[0]:at.request[1]]...)
	dst = appendImpersonated(dst, e)
	dst = append(dst, dst[at.source[0]:at.source[1]]...)
	return appendOutcome(dst, e, of)
}

func appendHead(dst []byte, e *auditapi.Event) []byte {
	dst = append(dst, `{"kind":"Event","apiVersion":"audit.k8s.io/v1"`...)
	dst = appendField(dst, "level", e.Level)
	return appendField(dst, "auditID", e.AuditID)
}

// appendTarget appends the request's target and its user.
func appendTarget(dst []byte, e *auditapi.Event, of extras) []byte {
	dst = appendField(dst, "requestURI", e.RequestURI)
	dst = appendField(dst, "verb", e.Verb)
	if of.user != nil {
		return append(append(dst, `,"user":`...), of.user...)
	}
	return appendUser(appendName(dst, "user"), &e.User)
}

func appendImpersonated(dst []byte, e *auditapi.Event) []byte {
	if e.ImpersonatedUser != nil {
		dst = appendUser(appendName(dst, "impersonatedUser"), e.ImpersonatedUser)
	}
	if m := e.AuthenticationMetadata; m != nil {
		dst = openObject(dst, "authenticationMetadata")
		dst = closeObject(appendOptional(dst, "impersonationConstraint", m.ImpersonationConstraint))
	}
	return dst
}

// appendWhere appends the source of the request and its object.
func appendWhere(dst []byte, e *auditapi.Event) []byte {
	dst = appendStrings(dst, "sourceIPs", e.SourceIPs)
	dst = appendOptional(dst, "userAgent", e.UserAgent)
	return appendObjectRef(dst, e.ObjectRef)
}

// appendOutcome appends the result and the end of the event.
func appendOutcome(dst []byte, e *auditapi.Event, of extras) ([]byte, error) {
	dst, err := appendStatus(dst, e.ResponseStatus, of.code)
	if err != nil {
		return nil, err
	}
	if dst, err = appendDocument(dst, "requestObject", e.RequestObject); err != nil {
		return nil, err
	}
	if dst, err = appendDocument(dst, "responseObject", e.ResponseObject); err != nil {
		return nil, err
	}
	dst = appendTime(dst, "requestReceivedTimestamp", e.RequestReceivedTimestamp)
	dst = appendTime(dst, "stageTimestamp", e.StageTimestamp)
	for key, value := range e.Annotations {
		of.annotations.add(key, value)
	}
	return append(appendAnnotations(dst, of.annotations), '}'), nil
}

// appendName begins a field of an object, with a comma unless it is the first.
func appendName(dst []byte, name string) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(dst, '"')
	return append(append(dst, name...), `":`...)
}

func appendField[T ~string](dst []byte, name string, value T) []byte {
	return codec.AppendString(appendName(dst, name), string(value))
}

func appendOptional[T ~string](dst []byte, name string, value T) []byte {
	if value == "" {
		return dst
	}
	return appendField(dst, name, value)
}

func openObject(dst []byte, name string) []byte { return append(appendName(dst, name), '{') }

func closeObject(dst []byte) []byte { return append(dst, '}') }

func appendStrings(dst []byte, name string, values []string) []byte {
	if len(values) == 0 {
		return dst
	}
	return appendList(appendName(dst, name), values)
}

func appendList(dst []byte, values []string) []byte {
	if values == nil {
		return append(dst, "null"...)
	}
	dst = append(dst, '[')
	for i, v := range values {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = codec.AppendString(dst, v)
	}
	return append(dst, ']')
}

func appendAnnotations(dst []byte, all annotations) []byte {
	if len(all) == 0 {
		return dst
	}
	dst = openObject(dst, "annotations")
	for i, a := range all {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(codec.AppendString(dst, a.key), ':')
		dst = codec.AppendString(dst, a.value)
	}
	return closeObject(dst)
}

// sortedKeys appends the keys of a small map to room.
func sortedKeys[V any](room []string, m map[string]V) []string {
	for key := range m {
		room = append(room, key)
	}
	slices.Sort(room)
	return room
}

func appendUser(dst []byte, u *authenticationv1.UserInfo) []byte {
	dst = append(dst, '{')
	dst = appendOptional(dst, "username", u.Username)
	dst = appendOptional(dst, "uid", u.UID)
	dst = appendStrings(dst, "groups", u.Groups)
	if len(u.Extra) > 0 {
		var room [8]string
		dst = openObject(dst, "extra")
		for i, key := range sortedKeys(room[:0], u.Extra) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendList(append(codec.AppendString(dst, key), ':'), u.Extra[key])
		}
		dst = closeObject(dst)
	}
	return closeObject(dst)
}

func appendObjectRef(dst []byte, r *auditapi.ObjectReference) []byte {
	if r == nil {
		return dst
	}
	dst = openObject(dst, "objectRef")
	dst = appendOptional(dst, "resource", r.Resource)
	dst = appendOptional(dst, "namespace", r.Namespace)
	dst = appendOptional(dst, "name", r.Name)
	dst = appendOptional(dst, "uid", r.UID)
	dst = appendOptional(dst, "apiGroup", r.APIGroup)
	dst = appendOptional(dst, "apiVersion", r.APIVersion)
	dst = appendOptional(dst, "resourceVersion", r.ResourceVersion)
	return closeObject(appendOptional(dst, "subresource", r.Subresource))
}

func appendStatus(dst []byte, s *metav1.Status, code int32) ([]byte, error) {
	if s == nil && code == 0 {
		return dst, nil
	}
	dst = openObject(dst, "responseStatus")
	dst = closeObject(openObject(dst, "metadata")) // an event never has metadata
	if s != nil {
		dst = appendOptional(dst, "status", s.Status)
		dst = appendOptional(dst, "message", s.Message)
		dst = appendOptional(dst, "reason", s.Reason)
		if s.Details != nil {
			details, err := json.Marshal(s.Details)
			if err != nil {
				return nil, err
			}
			dst = append(appendName(dst, "details"), details...)
		}
		code = s.Code
	}
	if code != 0 {
		dst = strconv.AppendInt(appendName(dst, "code"), int64(code), 10)
	}
	return closeObject(dst), nil
}

// appendDocument appends a client's document, compacted and with the usual escapes.
func appendDocument(dst []byte, name string, doc *runtime.Unknown) ([]byte, error) {
	if doc == nil {
		return dst, nil
	}
	raw, err := json.Marshal(json.RawMessage(doc.Raw))
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", name, err)
	}
	return append(appendName(dst, name), raw...), nil
}

func appendTime(dst []byte, name string, t metav1.MicroTime) []byte {
	dst = appendName(dst, name)
	if t.IsZero() {
		return append(dst, "null"...)
	}
	dst = append(dst, '"')
	dst = appendMicroTime(dst, t.UTC())
	return append(dst, '"')
}

// appendMicroTime appends a UTC time in the format metav1.RFC3339Micro. It takes a third of the time of AppendFormat;
// each event has two times.
func appendMicroTime(dst []byte, t time.Time) []byte {
	year, month, day := t.Date()
	if year < 0 || year > 9999 {
		return t.AppendFormat(dst, metav1.RFC3339Micro)
	}
	hour, minute, second := t.Clock()
	dst = append(appendDigits(dst, year, 4), '-')
	dst = append(appendDigits(dst, int(month), 2), '-')
	dst = append(appendDigits(dst, day, 2), 'T')
	dst = append(appendDigits(dst, hour, 2), ':')
	dst = append(appendDigits(dst, minute, 2), ':')
	dst = append(appendDigits(dst, second, 2), '.')
	return append(appendDigits(dst, t.Nanosecond()/1000, 6), 'Z')
}

// appendDigits appends n with leading zeros. n has at most the given number of digits.
func appendDigits(dst []byte, n, digits int) []byte {
	dst = append(dst, "000000"[:digits]...)
	for i := len(dst) - 1; n > 0; i-- {
		dst[i] = byte('0' + n%10)
		n /= 10
	}
	return dst
}
