package apply

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
)

const (
	// maxOperations is how many operations a JSON patch may have. Kube's figure for patches of users.
	maxOperations = 10000
	// maxCopied bounds what the copy operations of one patch may add, in bytes of JSON. kube-apiserver's default.
	maxCopied = 3 << 20
	// maxDepth is how deep arrays and objects of a patched object may nest, as in encoding/json.
	maxDepth = 10000
)

// JSONPatch applies a JSON patch (RFC 6902) to obj, which it changes, and returns what becomes of it: decoded JSON, an
// object unless the patch replaces the whole by an array. After an error obj is of no use.
//
// The error is a *apierrors.StatusError as kube-apiserver answers it: 400 for a patch that cannot be decoded, 413 for
// too many operations, 422 for one that cannot be applied. It is ctx's if that ends meanwhile.
func JSONPatch(ctx context.Context, obj map[string]any, patch []byte) (any, error) {
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if n := len(operations); n > maxOperations {
		text := "The allowed maximum operations in a JSON patch is %d, got %d"
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(text, maxOperations, n))
	}
	out, err := ApplyOperations(ctx, obj, operations)
	if err != nil && ctx.Err() == nil {
		const code = http.StatusUnprocessableEntity
		err = apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}
	return out, err
}

// ApplyOperations applies the operations of a decoded JSON patch to obj, which it changes, and returns what becomes of
// it, as JSONPatch does. It refuses patches that have more operations or copy more than a user's may.
//
// Results and error texts are those of the library that Kubernetes applies patches with, whose limits are package
// variables and which looks at no context. Where the library panics there is an error here, numbers are equal by value,
// and strings however they are escaped (RFC 6902, section 4.6). The error of a failed test wraps
// jsonpatch.ErrTestFailed.
func ApplyOperations(ctx context.Context, obj map[string]any, operations jsonpatch.Patch) (any, error) {
	if n := len(operations); n > maxOperations {
		return nil, fmt.Errorf("a JSON patch may have %d operations, this one has %d", maxOperations, n)
	}
	p := patching{root: obj}
	for _, op := range operations {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := p.do(op); err != nil {
			return nil, err
		}
	}
	if !within(p.root, maxDepth) {
		return nil, errTooDeep
	}
	return p.root, nil
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
