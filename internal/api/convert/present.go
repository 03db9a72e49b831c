package convert

import (
	"errors"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

var errNotAnObject = errors.New("the stored value is not a JSON object")

// DecodeStored decodes the JSON of an object. The caller owns the result.
func DecodeStored(raw []byte) (object.Object, error) {
	v, err := codec.DecodeJSON(raw)
	if err != nil {
		return nil, err
	}
	obj, ok := v.(object.Object)
	if !ok {
		return nil, errNotAnObject
	}
	return obj, nil
}

// PresentBytes converts stored bytes to a version. Bytes stored under the current definition in the same version are
// returned as the same slice, mostly without decoding.
func PresentBytes(res *catalog.Resource, ver *catalog.Version, stored []byte) ([]byte, error) {
	if Settled(res, ver, stored) {
		return stored, nil
	}
	obj, err := PresentStored(res, ver, stored)
	if err != nil {
		return nil, err
	}
	if out := codec.AppendJSON(nil, obj); string(out) != string(stored) {
		return out, nil
	}
	return stored, nil
}

// PresentStored decodes stored bytes and converts the object to a version. The caller owns the result.
func PresentStored(res *catalog.Resource, ver *catalog.Version, stored []byte) (object.Object, error) {
	obj, err := DecodeStored(stored)
	if err != nil {
		return nil, err
	}
	return obj, Present(res, ver, obj)
}
