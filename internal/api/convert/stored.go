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

// jsonOfProtobuf decodes what kube-apiserver has stored of a built-in kind. A version that is none of the kind's
// has the same fields as the one that objects are stored in.
func jsonOfProtobuf(kind *catalog.Resource, value []byte) ([]byte, error) {
	envelope, err := codec.OpenEnvelope(value)
	if err != nil {
		return nil, err
	}
	made := kind.Storage.New
	if gv, err := schema.ParseGroupVersion(envelope.APIVersion); err == nil {
		if version := kind.Version(gv.Version); version != nil {
			made = version.New
		}
	}
	return codec.FromProtobuf(value, made())
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
