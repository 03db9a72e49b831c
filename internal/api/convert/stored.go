package convert

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/object/quantity"
)

// Cipher encrypts stored values, depending on the resource's prefix and the key.
type Cipher interface {
	// Covers reports whether objects below a prefix may be encrypted.
	Covers(prefix string) bool
	// Instead returns the prefix that configures the encryption of objects with sensitive fields below another prefix,
	// if the configuration omits that one; "" means none.
	Instead(prefix string) string
	// Encrypt returns the bytes to store for the value of a key.
	Encrypt(ctx context.Context, prefix, key string, value []byte) ([]byte, error)
	// Stale reports whether the stored value of a key would now be encrypted differently.
	Stale(prefix, key string, stored []byte) bool
}

func jsonOfCBOR(value []byte) ([]byte, error) {
	var obj map[string]any
	if err := codec.UnmarshalCBOR(value, &obj); err != nil {
		return nil, fmt.Errorf("decode CBOR: %w", err)
	}
	return json.Marshal(obj)
}

// withoutDocuments returns the JSON of an object stored as JSON, and the documents within it, nil if the JSON suffices.
func withoutDocuments(kind *catalog.Resource, value []byte) (doc []byte, documents []string) {
	if !kind.Storage.HoldsDocuments() {
		return value, nil
	}
	if c := codec.ReadCanonical(value); c.Skip() && c.Done() {
		return value, nil
	}
	into := kind.Storage.New()
	v, err := codec.DecodeJSON(value)
	if err != nil || json.Unmarshal(value, into) != nil {
		return value, nil
	}
	if documents = codec.Verbatim(codec.Documents(into, nil)); documents == nil {
		return value, nil
	}
	return codec.AppendJSON(nil, v), documents
}

// jsonOfProtobuf decodes a built-in object stored by kube-apiserver. An unknown version has the same fields as the
// storage version.
func jsonOfProtobuf(kind *catalog.Resource, value []byte) (doc []byte, documents []string, err error) {
	envelope, err := codec.OpenEnvelope(value)
	if err != nil {
		return nil, nil, err
	}
	made := kind.Storage.New
	if gv, err := schema.ParseGroupVersion(envelope.APIVersion); err == nil {
		if version := kind.Version(gv.Version); version != nil {
			made = version.New
		}
	}
	into := made()
	if err := quantity.Message(reflect.TypeOf(into), envelope.Raw); err != nil {
		return nil, nil, err // the object is unreadable
	}
	if doc, err = codec.FromProtobuf(value, into); err != nil {
		return nil, nil, err
	}
	if documents = codec.Verbatim(codec.Documents(into, nil)); documents != nil {
		v, err := codec.DecodeJSON(doc) // it preserves them, except for whitespace
		return codec.AppendJSON(nil, v), documents, err
	}
	return doc, nil, nil
}

// StoredKind returns a function that maps a prefix in the store to its resource: a built-in one, or one that a
// definition may have, since custom groups contain a dot. ok is false for the leases and allocations of a
// kube-apiserver that shares the store.
func StoredKind(resources []*catalog.Resource) func(prefix string) (gr schema.GroupResource, ok bool) {
	known := map[string]schema.GroupResource{}
	for _, r := range resources {
		if !r.Virtual && !r.Secondary {
			known[r.Prefix] = schema.GroupResource{Group: r.Group, Resource: r.Plural}
		}
	}
	return func(prefix string) (schema.GroupResource, bool) {
		if gr, ok := known[prefix]; ok {
			return gr, true
		}
		group, plural, ok := strings.Cut(prefix, "/")
		return schema.GroupResource{Group: group, Resource: plural}, ok && strings.Contains(group, ".")
	}
}
