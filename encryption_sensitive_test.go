package bowsprit

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/testing/logtest"
)

// TestSensitiveIsEncrypted says nothing of a definition in the encryption configuration: its objects are encrypted as
// secrets are because it makes a field sensitive, are read after a restart, and stay readable when it no longer does.
func TestSensitiveIsEncrypted(t *testing.T) {
	t.Parallel()
	const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	definition := func(marks string) string {
		return `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "keys.example.org"},
		"spec": {"group": "example.org", "scope": "Cluster", "names": {"plural": "keys", "kind": "Key"}, "versions": [{"name": "v1",
			"served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
				"key": {"type": "string", "x-kubernetes-sensitive-data": ` + marks + `}}}}}]}}`
	}
	key := func(name string) string {
		return `{"apiVersion":"example.org/v1","kind":"Key","metadata":{"name":"` + name + `"},"key":"` + hushed + `"}`
	}
	var log logtest.Log
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "encryption.yaml")
	plain := startEncrypting(t, dir, "", &log)
	plain.do("POST", definitions, definition("true"), http.StatusCreated)
	plain.do("POST", "/apis/example.org/v1/keys", key("old"), http.StatusCreated)
	plain.holds("example.org/keys/old", "{")
	plain.end(t)

	text := encryptionOf(aesgcm("one", firstKey), "  - identity: {}\n")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startEncrypting(t, dir, file, &log)
	s.do("POST", "/apis/example.org/v1/keys", key("new"), http.StatusCreated)
	s.holds("example.org/keys/new", "k8s:enc:aesgcm:v1:one:")
	if before, after := s.touch("/apis/example.org/v1/keys/old"); before == after {
		t.Error("a write that changes nothing does not encrypt what was written before")
	}
	s.holds("example.org/keys/old", "k8s:enc:aesgcm:v1:one:")
	s.end(t)

	s = startEncrypting(t, dir, file, &log)
	for _, name := range []string{"old", "new"} {
		if obj := s.do("GET", "/apis/example.org/v1/keys/"+name, "", http.StatusOK); obj["key"] != hushed {
			t.Errorf("%s is read as %v", name, obj)
		}
	}
	update := strings.Replace(definition("false"), `"name": "keys.example.org"`,
		`"name": "keys.example.org", "resourceVersion": "`+revisionOf(s.do("GET", definitions+"/keys.example.org", "", 200))+`"`, 1)
	s.do("PUT", definitions+"/keys.example.org", update, http.StatusOK)
	s.do("POST", "/apis/example.org/v1/keys", key("bare"), http.StatusCreated)
	s.do("GET", "/apis/example.org/v1/keys/new", "", http.StatusOK)
	if strings.Contains(log.String(), hushed) {
		t.Error("the log shows a value")
	}
}

func revisionOf(obj map[string]any) string {
	return obj["metadata"].(map[string]any)["resourceVersion"].(string)
}
