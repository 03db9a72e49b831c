package apps

import (
	"bytes"
	"fmt"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/object/codec"
)

// claimForm gives the claims of a stored StatefulSet their apiVersion and kind, for which protobuf has no place. Every
// read shows them; here they make what is read of a store equal to what was written, so that a write that changes
// nothing is none.
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

// setClaimKinds says of the claims of a StatefulSet what they are.
func setClaimKinds(obj object.Object) {
	for _, claim := range object.Objects(object.Map(obj, "spec")["volumeClaimTemplates"]) {
		claim["apiVersion"], claim["kind"] = "v1", "PersistentVolumeClaim"
	}
}
