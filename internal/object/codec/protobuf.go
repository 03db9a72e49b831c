package codec

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// protobufMagic begins every protobuf document of the Kubernetes API. A runtime.Unknown follows with apiVersion, kind
// and the message; messages themselves contain neither.
const protobufMagic = "k8s\x00"

// Tags of hand-written fields: the field's number and wire type 2, length-delimited.
const (
	field1, field2, field3, field4 = 1<<3 | 2, 2<<3 | 2, 3<<3 | 2, 4<<3 | 2
)

// errNoMessage: a Go type has no protobuf form.
var errNoMessage = errors.New("the type has no protobuf form")

// kinded is a Go type with a kind.
type kinded interface{ GetObjectKind() schema.ObjectKind }

// FromProtobuf returns the JSON of a protobuf body, with sorted fields. into is a pointer to the published Go type of
// the body (*corev1.ConfigMap); it is filled. Only built-in kinds have such types, and typed clients use this form.
func FromProtobuf(data []byte, into any) ([]byte, error) {
	message, ok := into.(interface{ Unmarshal([]byte) error })
	if !ok {
		return nil, UnsupportedMediaType(JSON, YAML)
	}
	envelope, err := OpenEnvelope(data)
	if err != nil {
		return nil, err
	}
	if err := message.Unmarshal(envelope.Raw); err != nil {
		return nil, err
	}
	// The kind is in the envelope alone.
	if typed, ok := into.(kinded); ok {
		typed.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(envelope.APIVersion, envelope.Kind))
	}
	replaceUnreadableFields(into)
	doc, err := appendTyped(make([]byte, 0, 2*len(data)), into)
	if err != nil {
		return nil, fmt.Errorf("cannot decode protobuf as %T: %w", into, err) // invalid JSON inside
	}
	return doc, nil
}

// unreadableFields is JSON, but no set of fields.
const unreadableFields = `{"v:":{}}`

// replaceUnreadableFields replaces fields in managedFields that are not JSON, which no other media type can carry. The
// server ignores managedFields with such an entry, like Kubernetes.
func replaceUnreadableFields(obj any) {
	meta, ok := obj.(metav1.Object)
	if !ok {
		return
	}
	for _, entry := range meta.GetManagedFields() {
		if entry.FieldsV1 != nil && !json.Valid(entry.FieldsV1.GetRawBytes()) {
			entry.FieldsV1.SetRawBytes([]byte(unreadableFields))
		}
	}
}

// ReadProtobuf is FromProtobuf for the body of a request for kind want; into has that kind. Its errors are for the
// client. For a body of another kind, which the caller refuses, the result may contain only the kind.
func ReadProtobuf(data []byte, into any, want schema.GroupVersionKind) ([]byte, error) {
	b := body{original: data, want: want}
	envelope, err := OpenEnvelope(data)
	if err != nil {
		return nil, b.unrecognized(err)
	}
	doc, err := FromProtobuf(data, into)
	if err == nil || apierrors.IsUnsupportedMediaType(err) {
		return doc, err
	}
	got := b.defaulted(schema.FromAPIVersionAndKind(envelope.APIVersion, envelope.Kind))
	if got != want {
		apiVersion, kind := got.ToAPIVersionAndKind()
		return AppendJSON(nil, map[string]any{"apiVersion": apiVersion, "kind": kind}), nil
	}
	return nil, unhandled(got, err, want)
}

// InEnvelope reports whether data is a protobuf document.
func InEnvelope(data []byte) bool { return bytes.HasPrefix(data, []byte(protobufMagic)) }

// OpenEnvelope returns the envelope of a protobuf document, including the message. It shares data's memory.
func OpenEnvelope(data []byte) (envelope runtime.Unknown, err error) {
	rest, ok := bytes.CutPrefix(data, []byte(protobufMagic))
	switch {
	case len(data) == 0:
		return envelope, errors.New("empty data")
	case !ok:
		return envelope, errors.New(
			"provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
	case len(rest) == 0:
		return envelope, errors.New("empty body")
	}
	err = envelope.Unmarshal(rest)
	return envelope, err
}

// Message returns the protobuf message of a JSON document, without the envelope. into is a pointer to a new value of
// the document's Go type. texts are the documents within it, if they are kept (see Verbatim).
func Message(doc []byte, into any, texts ...string) ([]byte, error) {
	message, ok := into.(interface{ Marshal() ([]byte, error) })
	if !ok {
		return nil, fmt.Errorf("%T: %w", into, errNoMessage)
	}
	if err := json.Unmarshal(doc, into); err != nil {
		return nil, fmt.Errorf("decode as %T: %w", into, err)
	}
	SetDocuments(into, texts)
	return message.Marshal()
}

// ToProtobuf returns the protobuf document of a JSON document; into and texts are as in Message.
func ToProtobuf(doc []byte, into any, texts ...string) ([]byte, error) {
	message, err := Message(doc, into, texts...)
	if err != nil {
		return nil, err
	}
	typed, ok := into.(kinded)
	if !ok {
		return nil, fmt.Errorf("%T: %w", into, errNoMessage)
	}
	apiVersion, kind := typed.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	return Enclose(apiVersion, kind, message), nil
}

// Envelope returns the bytes before and after a message that is written in pieces. size is the message's length in
// bytes.
func Envelope(apiVersion, kind string, size int) (before, after []byte) {
	meta := make([]byte, 0, len(apiVersion)+len(kind)+8)
	meta = appendField(meta, field1, apiVersion)
	meta = appendField(meta, field2, kind)
	before = make([]byte, 0, len(meta)+24)
	before = append(before, protobufMagic...)
	before = appendField(before, field1, meta)
	before = append(before, field2)
	before = binary.AppendUvarint(before, uint64(size))
	// contentEncoding and contentType, which Kubernetes writes even if they are empty
	return before, []byte{field3, 0, field4, 0}
}

// Enclose returns the document of a message.
func Enclose(apiVersion, kind string, message []byte) []byte {
	before, after := Envelope(apiVersion, kind, len(message))
	out := make([]byte, 0, len(before)+len(message)+len(after))
	return append(append(append(out, before...), message...), after...)
}

// FieldHead appends the start of a message's field: the tag of field number n, and the length.
func FieldHead(dst []byte, n byte, size int) []byte {
	return binary.AppendUvarint(append(dst, n<<3|2), uint64(size))
}

func appendField[T string | []byte](dst []byte, tag byte, content T) []byte {
	dst = binary.AppendUvarint(append(dst, tag), uint64(len(content)))
	return append(dst, content...)
}

// WatchFrame returns the frame of one watch event in m's form. object is a document in that form: JSON, CBOR with its
// tag, or protobuf in its envelope.
func WatchFrame(m Media, event string, object []byte) []byte {
	frame := AppendWatchHead(make([]byte, 0, len(object)+len(event)+32), m, event, len(object))
	return append(append(frame, object...), WatchTail(m)...)
}

// AppendWatchHead appends the bytes before an object of size bytes in the frame of a watch event.
func AppendWatchHead(dst []byte, m Media, event string, size int) []byte {
	switch m.Type {
	case Protobuf:
		// A metav1.WatchEvent without envelope; its object is a RawExtension. The total length comes first, in 4 bytes.
		var raw [binary.MaxVarintLen64 + 1]byte
		inner := FieldHead(raw[:0], 1, size)
		start := len(dst)
		dst = append(dst, 0, 0, 0, 0)
		dst = appendField(dst, field1, event)
		dst = FieldHead(dst, 2, len(inner)+size)
		dst = append(dst, inner...)
		binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-4+size))
		return dst
	case CBOR:
		dst = append(dst, cborTag...)
		dst = AppendCBORMapHead(dst, 2)
		dst = appendCBORString(dst, "type")
		dst = appendCBORString(dst, event)
		return appendCBORString(dst, "object")
	}
	dst = append(dst, `{"type":"`...)
	dst = append(dst, event...)
	return append(dst, `","object":`...)
}

// WatchTail returns the bytes after the object in the frame of a watch event.
func WatchTail(m Media) string {
	if m.Type == Protobuf || m.Type == CBOR {
		return ""
	}
	return "}\n"
}
