package rule

import (
	"bytes"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// StoredAs returns the form of a kind that kube-apiserver stores in an older version than it prefers, so that its
// predecessor can read it. All fields are the same in both.
func StoredAs(group, version, older string) *catalog.Form {
	newer, old := []byte(`"`+group+"/"+version+`"`), []byte(`"`+group+"/"+older+`"`)
	rename := func(from, to []byte) func([]byte) ([]byte, error) {
		return func(raw []byte) ([]byte, error) {
			// Here and in kube-apiserver only apiVersion and kind precede metadata.
			head, rest, ok := bytes.Cut(raw, []byte(`"metadata"`))
			if at := bytes.Index(head, from); ok && at >= 0 {
				return bytes.Join([][]byte{head[:at], to, head[at+len(from):], []byte(`"metadata"`), rest}, nil), nil
			}
			return raw, nil
		}
	}
	return &catalog.Form{Version: older, Encode: rename(newer, old), Decode: rename(old, newer)}
}
