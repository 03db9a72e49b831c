package apps

import (
	"bytes"
	"fmt"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// claimForm adds apiVersion and kind to the claims of a stored StatefulSet, since protobuf does not encode them. Every
// read shows them. With the form, an object read from the store equals the written one, so that a write without changes
// is recognized.
func claimForm() *catalog.Form {
	claims, kind := []byte(`"volumeClaimTemplates":[`), []byte(`"kind":"PersistentVolumeClaim"`)
	return &catalog.Form{
		Encode: func(doc []byte) ([]byte, error) { return doc, nil },
		Decode: func(raw []byte) ([]byte, error) {
			if !bytes.Contains(raw, claims) || bytes.Contains(raw, kind) {
				return raw, nil
			}
			v, err := codec.DecodeJSON(raw)
			if err != nil {
				return nil, fmt.Errorf("decode StatefulSet: %w", err)
			}
			obj, _ := v.(object.Object)
			setClaimKinds(obj)
			return codec.AppendJSON(nil, obj), nil
		},
	}
}

// setClaimKinds sets apiVersion and kind of the claims of a StatefulSet.
func setClaimKinds(obj object.Object) {
	for _, claim := range object.Objects(object.Map(obj, "spec")["volumeClaimTemplates"]) {
		claim["apiVersion"], claim["kind"] = "v1", "PersistentVolumeClaim"
	}
}
