package codec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// protobufMagic begins every protobuf body of the Kubernetes API; a runtime.Unknown follows.
var protobufMagic = []byte("k8s\x00")

// IsProtobuf tells whether a Content-Type is Kubernetes' protobuf.
func IsProtobuf(contentType string) bool {
	if contentType == Protobuf {
		return true
	}
	mediaType, _, err := mime.ParseMediaType(contentType)
	return err == nil && mediaType == Protobuf
}

// FromProtobuf returns the JSON of a protobuf body. into is a pointer to the published Go type of what the body holds
// (*corev1.ConfigMap); it is filled. Only built-in kinds have such types: typed clients send them in this form.
func FromProtobuf(data []byte, into any) ([]byte, error) {
	message, ok := into.(interface{ Unmarshal([]byte) error })
	if !ok {
		return nil, UnsupportedMediaType(JSON, YAML)
	}
	rest, ok := bytes.CutPrefix(data, protobufMagic)
	if !ok {
		return nil, apierrors.NewBadRequest("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(rest); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("cannot decode the protobuf envelope: %v", err))
	}
	if err := message.Unmarshal(envelope.Raw); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("cannot decode protobuf as %T: %v", into, err))
	}
	// The kind is in the envelope alone.
	if typed, ok := into.(runtime.Object); ok {
		typed.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(envelope.APIVersion, envelope.Kind))
	}
	doc, err := json.Marshal(into)
	if err != nil {
		return nil, fmt.Errorf("encode %T as JSON: %w", into, err)
	}
	return doc, nil
}
