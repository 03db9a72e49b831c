package verb

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// toStorage encodes an object of the call's version as the store keeps it: in the storage version, without a revision.
func (en *encoder) toStorage(ctx context.Context, c *Call, obj object.Object) (codec.Stored, error) {
	out, err := en.convert.Convert(ctx, c.Resource, c.Version, c.storage(), obj)
	if err != nil {
		return codec.Stored{}, err
	}
	return codec.EncodeStored(out), nil
}

// encoder makes the bytes that stand in the store.
type encoder struct {
	*Reader
	cbor bool // custom objects are CBOR
}

// persisted returns the bytes that go into the store for an object's JSON.
func (en *encoder) persisted(c *Call, stored codec.Stored) []byte {
	var out []byte
	var err error
	switch {
	case c.Resource.Form != nil:
		out, err = c.Resource.Form.Encode(stored.JSON)
	case en.cbor && c.Resource.Custom():
		out, err = codec.ToCBOR(stored.JSON)
	default:
		return stored.JSON
	}
	if err != nil {
		return stored.JSON // which is read as well
	}
	return out
}

// StoredReader returns the function that makes JSON of what lies in the store under a resource's prefix: of what
// persisted has written, whatever the settings were then, and of what kube-apiserver stores: CBOR and protobuf. JSON
// comes back as it is. resources are those whose objects may be in another form than JSON and CBOR.
func StoredReader(resources []*catalog.Resource) func(prefix string, value []byte) ([]byte, error) {
	kinds := map[string]*catalog.Resource{}
	for _, r := range resources {
		if !r.Virtual && !r.Secondary {
			kinds[r.Prefix] = r
		}
	}
	return func(prefix string, value []byte) ([]byte, error) {
		kind := kinds[prefix]
		var err error
		switch {
		case codec.TaggedCBOR(value):
			value, err = jsonOfCBOR(value)
		case kind != nil && codec.InEnvelope(value):
			value, err = jsonOfProtobuf(kind, value)
		}
		if err == nil && kind != nil && kind.Form != nil {
			value, err = kind.Form.Decode(bytes.TrimSpace(value))
		}
		return value, err
	}
}

func jsonOfCBOR(value []byte) ([]byte, error) {
	var obj map[string]any
	if err := codec.UnmarshalCBOR(value, &obj); err != nil {
		return nil, fmt.Errorf("decode CBOR: %w", err)
	}
	return json.Marshal(obj)
}

// jsonOfProtobuf decodes what kube-apiserver has stored of a built-in kind. A version that is not served has the same
// fields as the one that objects are stored in, or Form knows better.
func jsonOfProtobuf(kind *catalog.Resource, value []byte) ([]byte, error) {
	envelope, err := codec.OpenEnvelope(value)
	if err != nil {
		return nil, err
	}
	version := kind.Storage
	if gv, err := schema.ParseGroupVersion(envelope.APIVersion); err == nil && kind.Version(gv.Version) != nil {
		version = kind.Version(gv.Version)
	}
	return codec.FromProtobuf(value, version.New())
}
