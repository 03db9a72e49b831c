package read

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// continueToken is the position at which a paged list continues. It has kube-apiserver's format, so that clients can
// move between servers that share a store.
type continueToken struct {
	APIVersion string `json:"v"`
	// Revision is the revision of the first page, or -1 to go on at the newest one.
	Revision int64 `json:"rv"`
	// Start is the first key of the next page: the last served key and a zero byte.
	Start string `json:"start"`
}

const tokenVersion = "meta.k8s.io/v1"

// Encode returns the token in its external form.
func (t continueToken) Encode() string {
	t.APIVersion = tokenVersion
	raw, err := json.Marshal(t)
	if err != nil {
		panic(err) // strings and numbers only
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

// After returns the last key of the previous page.
func (t continueToken) After() string { return strings.TrimSuffix(t.Start, "\x00") }

// parseToken parses a client's token. The error is a 400.
func parseToken(text string) (continueToken, error) {
	bad := func(why string) (continueToken, error) {
		return continueToken{}, apierrors.NewBadRequest("invalid continue token: continue key is not valid: " + why)
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return bad(err.Error())
	}
	var t continueToken
	if err := json.Unmarshal(raw, &t); err != nil {
		return bad(err.Error())
	}
	if t.APIVersion != tokenVersion {
		return bad(fmt.Sprintf("server does not recognize this encoded version %v", t.APIVersion))
	}
	if t.Revision == 0 {
		return bad("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
	}
	if t.Start == "" {
		return bad("encoded start key empty (version meta.k8s.io/v1)")
	}
	// The key must stay inside the collection.
	if key := "/" + strings.TrimPrefix(t.Start, "/"); path.Clean(key) != key {
		return bad(t.Start)
	}
	return t, nil
}
