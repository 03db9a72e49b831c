package convert

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// Cipher encrypts what is stored, by the prefix of its resource and its key.
type Cipher interface {
	// Covers reports whether the objects below a prefix may be encrypted.
	Covers(prefix string) bool
	// Instead returns the prefix as whose objects those below another, with sensitive fields, are encrypted if nothing
	// is said of these; "" is none.
	Instead(prefix string) string
	// Encrypt returns the bytes that stand in the store for the value of a key.
	Encrypt(ctx context.Context, prefix, key string, value []byte) ([]byte, error)
	// Stale reports whether the stored value of a key would be encrypted otherwise today.
	Stale(prefix, key string, stored []byte) bool
}

func jsonOfCBOR(value []byte) ([]byte, error) {
	var obj map[string]any
	if err := codec.UnmarshalCBOR(value, &obj); err != nil {
		return nil, fmt.Errorf("decode CBOR: %w", err)
	}
	return json.Marshal(obj)
}

// withoutDocuments returns the JSON of an object that is stored as JSON, and the documents within it, nil if that says
// it.
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

// jsonOfProtobuf decodes what kube-apiserver has stored of a built-in kind. A version that is none of the kind's
// has the same fields as the one that objects are stored in.
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
	if doc, err = codec.FromProtobuf(value, into); err != nil {
		return nil, nil, err
	}
	if documents = codec.Verbatim(codec.Documents(into, nil)); documents != nil {
		v, err := codec.DecodeJSON(doc) // which has them as they are, but for whitespace
		return codec.AppendJSON(nil, v), documents, err
	}
	return doc, nil, nil
}

// StoredKind returns the function that finds the resource whose objects lie below a prefix: a built-in one, or one that
// a definition may have, since the names of their groups have a dot. It is not ok for the leases and allocations of a
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
