package rest

import (
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/verb"
	"github.com/bowsprit/bowsprit/internal/verb/decode"
)

// servePatch is a PATCH of an object, or of a subresource that shows it.
func (s *Server) servePatch(w http.ResponseWriter, r *http.Request, c *verb.Call) error {
	media, patch, options, err := readPatch(r, c, accepts(r, c))
	if err != nil {
		return err
	}
	do := s.verbs.Patch
	if patch.IsApply() {
		do = s.verbs.Apply
	}
	res, err := do(r.Context(), c, patch, options)
	if err != nil {
		return err
	}
	return s.writeObject(w, r, c, res, answer{code: codeOf(res), form: media})
}

// readPatch reads the parts that all types of patches have in common.
func readPatch(
	r *http.Request, c *verb.Call, accept func() (form, error),
) (form, decode.Patch, metav1.PatchOptions, error) {
	contentType, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	patchType := types.PatchType(contentType)
	in, err := readRequest(r, nil, func() (form, error) {
		media, err := accept()
		if err != nil {
			return media, err
		}
		if accepted := patchTypes(r, c); !slices.Contains(accepted, contentType) {
			return media, unknownPatchType(c, accepted)
		}
		if c.Name == "" {
			return media, nameless(c)
		}
		return media, nil
	}, func(r *http.Request) (*metav1.PatchOptions, error) { return patchOptions(r, patchType) })
	patch := decode.Patch{Type: patchType, Data: in.body.Data}
	if err == nil {
		err = patch.Check()
	}
	if err == nil && c.Audit != nil {
		c.Audit.RequestBody(patch.Data)
	}
	return in.media, patch, in.options, err
}

// unknownPatchType is the 415 for an unsupported patch type. For built-in kinds it is the error that client-go derives
// from kube-apiserver's bare status code.
func unknownPatchType(c *verb.Call, accepted []string) error {
	if c.Resource.Custom() {
		return codec.UnsupportedMediaType(accepted...)
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType,
		Reason: metav1.StatusReasonUnsupportedMediaType, Message: "415: Unsupported Media Type",
		Details: &metav1.StatusDetails{},
	}}
}

// patchTypes returns the content types that a PATCH of the call's kind accepts. A strategic merge needs a Go type, so
// only built-in kinds accept it.
func patchTypes(r *http.Request, c *verb.Call) []string {
	accepted := []string{string(types.JSONPatchType), string(types.MergePatchType)}
	if c.Version.New != nil {
		accepted = append(accepted, string(types.StrategicMergePatchType))
	}
	accepted = append(accepted, string(types.ApplyYAMLPatchType))
	if codec.IsCBOR(r.Context(), codec.CBOR) {
		accepted = append(accepted, string(types.ApplyCBORPatchType))
	}
	return accepted
}
