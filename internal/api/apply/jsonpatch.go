package apply

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/bowsprit/bowsprit/internal/request/invalid"
)

const (
	// maxOperations is how many operations a JSON patch may have. Kube's figure for patches of users.
	maxOperations = 10000
	// maxCopied bounds the bytes of JSON that the copy operations of one patch may add. It is kube-apiserver's default.
	maxCopied = 3 << 20
	// maxMoved is how many elements of lists the operations of one patch may move, because they insert or remove
	// elements before them. Moving so many takes about a second, and kube-apiserver longer.
	maxMoved = 500_000_000
	// maxDepth is the maximum nesting of arrays and objects in a patched object, as in encoding/json.
	maxDepth = 10000
)

// JSONPatch applies a JSON patch (RFC 6902) to obj in place and returns the result: decoded JSON, an object unless the
// patch replaces the root by an array. After an error obj is unusable.
//
// The error is a *apierrors.StatusError as in kube-apiserver: 400 for a patch that cannot be decoded, 413 for too many
// operations, 422 for a patch that cannot be applied or moves too many elements. If ctx ends, it is ctx's error.
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
	if errors.Is(err, errMoved) {
		return nil, invalid.New(schema.GroupKind{}, "",
			field.ErrorList{field.Invalid(field.NewPath("patch"), field.OmitValueType{}, err.Error())})
	}
	if err != nil && ctx.Err() == nil {
		const code = http.StatusUnprocessableEntity
		err = apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}
	return out, err
}

// ApplyOperations applies the operations of a decoded JSON patch to obj in place and returns the result, like
// JSONPatch. It refuses patches with more operations or larger copies than a user's patch may have.
//
// Results and error texts match the library that Kubernetes uses, which has its limits in package variables and ignores
// contexts. Where the library panics, ApplyOperations returns an error. Numbers are compared by value, and strings
// after unescaping (RFC 6902, section 4.6). The error of a failed test wraps jsonpatch.ErrTestFailed.
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

// CheckJSONPatch validates a JSON patch before it is applied, for fieldValidation Warn and Strict. It returns the
// problems of its fields (`json patch unknown field "[0].foo"`); the error is a 400 for a patch that cannot be decoded.
func CheckJSONPatch(patch []byte) (strictErrs []string, err error) {
	var operations []jsonPatchOp
	errs, err := kjson.UnmarshalStrict(patch, &operations)
	if err != nil {
		// Kubernetes' message names the Go type of its own decoder.
		text := strings.ReplaceAll(err.Error(), "apply.jsonPatchOp", "handlers.jsonPatchOp")
		return nil, apierrors.NewBadRequest("error decoding patch: " + text)
	}
	for _, err := range errs {
		strictErrs = append(strictErrs, fmt.Sprintf("json patch %v", err))
	}
	return strictErrs, nil
}
