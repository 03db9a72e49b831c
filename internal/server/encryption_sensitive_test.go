package server

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/bowsprit/bowsprit/internal/testing/counter"
	"github.com/bowsprit/bowsprit/internal/testing/logtest"
)

// TestSensitiveIsEncrypted uses a definition that the encryption configuration does not name. Its objects are encrypted
// like secrets because it has a sensitive field, stay readable after a restart, and stay readable when the field is no
// longer sensitive.
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

// TestSensitiveWhileKeysRotate writes and reads objects with a sensitive field while the file of keys changes: the
// first key, both, the second first, the second alone, and another provider. Each read shows the written value, clients
// without the permission never see it, and neither etcd nor the log contains it.
func TestSensitiveWhileKeysRotate(t *testing.T) {
	t.Parallel()
	var log logtest.Log
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "encryption.yaml")
	both := func(first, firstKey, second, secondKey string) string {
		return fmt.Sprintf("  - aesgcm: {keys: [{name: %s, secret: %s}, {name: %s, secret: %s}]}\n", first, firstKey, second,
			secondKey)
	}
	if err := os.WriteFile(file, []byte(encryptionOf(aesgcm("one", firstKey))), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startEncrypting(t, dir, file, &log)
	s.do("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", `{"apiVersion": "apiextensions.k8s.io/v1",
		"kind": "CustomResourceDefinition", "metadata": {"name": "keys.example.org"}, "spec": {"group": "example.org",
		"scope": "Cluster", "names": {"plural": "keys", "kind": "Key"}, "versions": [{"name": "v1", "served": true,
		"storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"n": {"type": "integer"},
		"key": {"type": "string", "x-kubernetes-sensitive-data": true}}}}}]}}`, http.StatusCreated)

	const writers, path = 4, "/apis/example.org/v1/keys"
	stop := make(chan struct{})
	var done [writers]counter.Counter
	working, end := context.WithCancel(t.Context()) // until a writer ends
	defer end()
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			defer end()
			name, value := fmt.Sprint("w", w), fmt.Sprint(hushed, "-of-", w)
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if n == 0 {
					code, _, body := s.ask("POST", path,
						fmt.Sprintf(`{"apiVersion":"example.org/v1","kind":"Key","metadata":{"name":%q},"key":%q}`, name, value))
					if code != http.StatusCreated {
						t.Errorf("create: %d %s", code, body)
						return
					}
				}
				code, _, body := s.ask("PATCH", path+"/"+name, fmt.Sprintf(`{"n":%d}`, n),
					"Content-Type: application/merge-patch+json")
				if code != http.StatusOK || !strings.Contains(string(body), value) {
					t.Errorf("patch: %d %s", code, body)
					return
				}
				if code, _, body = s.ask("GET", path+"/"+name, ""); code != http.StatusOK ||
					!strings.Contains(string(body), value) ||
					!strings.Contains(string(body), fmt.Sprintf(`"n":%d`, n)) {
					t.Errorf("get: %d %s", code, body)
					return
				}
				code, _, body = s.ask("GET", path+"/"+name, "", "Impersonate-User: joe", "Impersonate-Group: readers")
				if code == http.StatusOK || strings.Contains(string(body), hushed) {
					t.Errorf("a stranger: %d %s", code, body)
					return
				}
				done[w].Add()
			}
		})
	}
	for round := range 3 {
		for _, step := range []struct{ providers, first string }{
			{both("one", firstKey, "two", secondKey), "k8s:enc:aesgcm:v1:one:"},
			{both("two", secondKey, "one", firstKey), "k8s:enc:aesgcm:v1:two:"},
			{aesgcm("two", secondKey), "k8s:enc:aesgcm:v1:two:"},
			{both("one", firstKey, "two", secondKey), "k8s:enc:aesgcm:v1:one:"},
			{aesgcm("one", firstKey), "k8s:enc:aesgcm:v1:one:"},
		} {
			s.rotate(file, encryptionOf(step.providers))
			for w := range writers { // each has used the new keys, so the others may go
				if done[w].WaitMore(working, 2) != nil {
					break
				}
			}
			if t.Failed() {
				close(stop)
				all.Wait()
				return
			}
			for w := range writers {
				key := fmt.Sprint("example.org/keys/w", w)
				if raw := s.raw(key); !strings.HasPrefix(raw, step.first) || strings.Contains(raw, hushed) {
					t.Errorf("round %d: %.60q, want %s", round, raw, step.first)
				}
			}
		}
	}
	close(stop)
	all.Wait()
	if strings.Contains(log.String(), hushed) {
		t.Error("the log shows a value")
	}
}

func revisionOf(obj map[string]any) string {
	return obj["metadata"].(map[string]any)["resourceVersion"].(string)
}
