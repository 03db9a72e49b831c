package convert

import (
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/api/catalog"
)

// TestStoredVersion reads the apiVersion of values in all encodings, and in the orders of keys of both servers.
func TestStoredVersion(t *testing.T) {
	t.Parallel()
	r := storedKinds()["built-in"]
	for _, media := range MediaTypes() {
		s := NewStoring([]*catalog.Resource{r}, StoringOptions{Media: media})
		value, _ := s.Encode(r, []byte(storedMap))
		if got := StoredVersion(value); got != "v1" {
			t.Errorf("%s: %q", media, got)
		}
	}
	for value, want := range map[string]string{
		`{"apiVersion":"a/v1","kind":"X"}`:                            "a/v1",
		`{"kind":"X","apiVersion":"a/v1","metadata":{}}` + "\n":       "a/v1",
		`{ "metadata": {"apiVersion": "b/v2"}, "apiVersion": "a/v1"}`: "a/v1",
		`{"kind":"X","spec":{"apiVersion":"b/v2"}}`:                   "",
		`{"apiVersion":"a\/v1"}`:                                      "a/v1",
		"aa: b\napiVersion: a/v1\nkind: X\n":                          "a/v1",
		"k8s:enc:aescbc:v1:key1:...":                                  "",
		"k8s\x00\xff":                                                 "",
		"{":                                                           "",
		"":                                                            "",
	} {
		if got := StoredVersion([]byte(value)); got != want {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
}

// TestUnreadableVersions decodes objects of a version that this release does not have, in all encodings: it would
// misread protobuf, whose numbers of fields differ between versions.
func TestUnreadableVersions(t *testing.T) {
	t.Parallel()
	r := storedKinds()["built-in"]
	removed := strings.Replace(storedMap, `"v1"`, `"v0"`, 1)
	readable := func(apiVersion string) bool { return apiVersion != "v0" }
	for _, media := range MediaTypes() {
		writer := NewStoring([]*catalog.Resource{r}, StoringOptions{Media: media})
		value, _ := writer.Encode(r, []byte(removed))
		reader := NewStoring([]*catalog.Resource{r}, StoringOptions{Readable: readable})
		_, err := reader.Decode(r.Prefix, value)
		const want = `no kind "ConfigMap" is registered for version "v0": this release does not have the version`
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", media, err)
		}
		value, _ = writer.Encode(r, []byte(storedMap))
		if _, err := reader.Decode(r.Prefix, value); err != nil {
			t.Errorf("%s: %v", media, err)
		}
	}
}
