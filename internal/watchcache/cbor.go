package watchcache

import (
	"bytes"
	"encoding/json"
	"fmt"

	cbor "k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
)

// selfDescribed begins what a server with the feature gate CBORServingAndStorage stores. It is read whether or not this
// server writes it: the gate may have been on before, or be on in another replica.
var selfDescribed = []byte("\xd9\xd9\xf7")

// fromCBOR returns the JSON of a stored object that is CBOR; other bytes come back as they are.
func fromCBOR(data []byte) ([]byte, error) {
	if !bytes.HasPrefix(data, selfDescribed) {
		return data, nil
	}
	var obj map[string]any
	if err := cbor.Unmarshal(data, &obj); err != nil {
		return nil, fmt.Errorf("decode CBOR: %w", err)
	}
	return json.Marshal(obj)
}
