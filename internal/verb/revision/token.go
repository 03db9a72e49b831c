// Package revision has what lists and watches say of revisions: the tokens by which a list goes on, the parameter
// resourceVersion, and the errors about both. It is functions of values.
package revision

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Token says where a paged list goes on. Its form is kube-apiserver's, so that a client
// may move between servers that share a store.
type Token struct {
	APIVersion string `json:"v"`
	// Revision is the revision of the first page, or -1 to go on at the newest one.
	Revision int64 `json:"rv"`
	// Start is the first key that may follow: the last one served and a zero byte.
	Start string `json:"start"`
}

const tokenVersion = "meta.k8s.io/v1"

// Encode returns the token as clients get it.
func (t Token) Encode() string {
	t.APIVersion = tokenVersion
	raw, err := json.Marshal(t)
	if err != nil {
		panic(err) // strings and numbers only
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

// After returns the key that the next page follows.
func (t Token) After() string { return strings.TrimSuffix(t.Start, "\x00") }

// Parse reads a token that came from a client. The error is a 400.
func Parse(text string) (Token, error) {
	bad := func(why string) (Token, error) {
		return Token{}, apierrors.NewBadRequest("invalid continue token: continue key is not valid: " + why)
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return bad(err.Error())
	}
	var t Token
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
