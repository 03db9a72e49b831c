package apply

import (
	"fmt"
	"net/http"
	"strings"
	"sync"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
)

const (
	// maxOperations is how many operations a JSON patch may have.
	maxOperations = 10000
	// maxCopied bounds what the copy operations of one patch may add, in bytes. kube-apiserver's default.
	maxCopied = 3 << 20
)

// limitCopies tells the library, whose limit is a package variable.
var limitCopies = sync.OnceFunc(func() { jsonpatch.AccumulatedCopySizeLimit = maxCopied })

// JSONPatch applies a JSON patch (RFC 6902) to the JSON document doc. The error is a *apierrors.StatusError as
// kube-apiserver answers it: 400 for a patch that cannot be decoded, 413 for too many operations, 422 for one that
// cannot be applied.
func JSONPatch(doc, patch []byte) ([]byte, error) {
	limitCopies()
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if len(operations) > maxOperations {
		return nil,
			apierrors.NewRequestEntityTooLargeError(
				fmt.Sprintf("The allowed maximum operations in a JSON patch is %d, got %d", maxOperations,
					len(operations)))
	}
	out, err := operations.Apply(doc)
	if err != nil {
		return nil,
			apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "",
				err.Error(), 0, false)
	}
	return out, nil
}

// jsonPatchOp is one operation of a JSON patch, for strict decoding.
type jsonPatchOp struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	From  string `json:"from"`
	Value any    `json:"value"`
}

// CheckJSONPatch looks at a JSON patch as fieldValidation Warn and Strict do, before it is applied. It returns what is
// wrong with its fields (`json patch unknown field "[0].foo"`); the error is a 400 for a patch that cannot be decoded.
func CheckJSONPatch(patch []byte) (strictErrs []string, err error) {
	var operations []jsonPatchOp
	errs, err := kjson.UnmarshalStrict(patch, &operations)
	if err != nil {
		// Kube's message names the Go type of its own decoder.
		text := strings.ReplaceAll(err.Error(), "apply.jsonPatchOp", "handlers.jsonPatchOp")
		return nil, apierrors.NewBadRequest("error decoding patch: " + text)
	}
	for _, err := range errs {
		strictErrs = append(strictErrs, fmt.Sprintf("json patch %v", err))
	}
	return strictErrs, nil
}
