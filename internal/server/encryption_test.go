package server

import (
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/internal/server/config"
	"github.com/bowsprit/bowsprit/internal/server/parts"
	"github.com/bowsprit/bowsprit/internal/testing/logtest"
)

// encrypting is a server with access to its store for the test.
type encrypting struct {
	coreClient
	*running
	begun   *prepared // running is nil until the start has ended
	stopped bool
}

// startEncrypting starts a server on a directory. file is an EncryptionConfiguration, or "".
func startEncrypting(t *testing.T, dir, file string, log io.Writer, more ...func(*config.Config)) *encrypting {
	t.Helper()
	c := config.Config{
		DataDir: dir, Ephemeral: true,
		Log:        slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Encryption: config.Encryption{ConfigFile: file, AutomaticReload: file != ""},
	}
	c.API.UnsafeMalformedObjectDeletion = true
	for _, set := range more {
		set(&c)
	}
	server, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	e := &encrypting{begun: prepare(server.config, parts.Of(&server.config, ""))}
	t.Cleanup(func() { e.end(t) })
	e.running, e.coreClient = start(t, server, e.begun)
	return e
}

func (e *encrypting) end(t *testing.T) {
	if e.stopped {
		return
	}
	e.stopped = true
	if err := e.begun.stop(); err != nil {
		t.Error(err)
	}
}

// raw returns the stored value.
func (e *encrypting) raw(key string) string {
	e.t.Helper()
	r, err := e.host.Store.Get(e.t.Context(), key)
	if err != nil {
		e.t.Fatal(err)
	}
	return string(r.Value)
}

// holds checks how the stored value of a key begins.
func (e *encrypting) holds(key, prefix string) {
	e.t.Helper()
	if raw := e.raw(key); !strings.HasPrefix(raw, prefix) {
		e.t.Errorf("%s: %.60q, want %q", key, raw, prefix)
	}
}

// touch writes an object unchanged, and returns its revision before and after.
func (e *encrypting) touch(path string) (before, after string) {
	e.t.Helper()
	revision := func(obj map[string]any) string { return obj["metadata"].(map[string]any)["resourceVersion"].(string) }
	before = revision(e.do("GET", path, "", http.StatusOK))
	e.do("GET", path, "", http.StatusOK)
	e.merge(path, "{}")
	return before, revision(e.do("GET", path, "", http.StatusOK))
}

// merge patches an object.
func (e *encrypting) merge(path, patch string) {
	e.t.Helper()
	code, _, body := e.ask("PATCH", path, patch, "Content-Type: application/merge-patch+json")
	if code != http.StatusOK {
		e.t.Errorf("PATCH %s: %d %s", path, code, body)
	}
}

// rotate writes the file and makes the server read it.
func (e *encrypting) rotate(file, text string) {
	e.t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		e.t.Fatal(err)
	}
	if err := e.encryption.Reload(e.t.Context(), e.reread); err != nil {
		e.t.Fatal(err)
	}
}

// Keys of 32 bytes, as a file has them.
var (
	firstKey  = base64.StdEncoding.EncodeToString([]byte("first key of thirty-two bytes ok"))
	secondKey = base64.StdEncoding.EncodeToString([]byte("second key of thirty-two bytes o"))
)

// encryptionOf is a configuration for secrets and a custom kind.
func encryptionOf(providers ...string) string {
	return "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n" +
		"- resources: [secrets, tabs.example.com]\n  providers:\n" + strings.Join(providers, "")
}

func aesgcm(name, key string) string {
	return fmt.Sprintf("  - aesgcm: {keys: [{name: %s, secret: %s}]}\n", name, key)
}

const (
	secretsPath = "/api/v1/namespaces/default/secrets"
	hushed      = "hushed-value-of-the-secret"
)

func secretNamed(name string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":%q,"finalizers":["example.com/stay"]},"data":{"k":%q}}`,
		name, base64.StdEncoding.EncodeToString([]byte(hushed)))
}

// TestEncryption enables encryption on old data, rotates the key, loses it, deletes unreadable objects, and restores
// the key. The log and the pages contain no secrets.
func TestEncryption(t *testing.T) {
	t.Parallel()
	var log logtest.Log
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "encryption.yaml")
	plain := startEncrypting(t, dir, "", &log)
	plain.do("POST", secretsPath, secretNamed("old"), http.StatusCreated)
	plain.holds("secrets/default/old", "{")
	plain.end(t)

	text := encryptionOf(aesgcm("one", firstKey), "  - identity: {}\n")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startEncrypting(t, dir, file, &log)
	s.do("POST", secretsPath, secretNamed("new"), http.StatusCreated)
	s.do("POST", "/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"open"}}`, http.StatusCreated)
	s.do("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", `{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "tabs.example.com"},
		"spec": {"group": "example.com", "scope": "Cluster", "names": {"plural": "tabs", "kind": "Tab"},
			"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}`,
		http.StatusCreated)
	s.do("POST", "/apis/example.com/v1/tabs", `{"apiVersion":"example.com/v1","kind":"Tab","metadata":{"name":"a"}}`,
		http.StatusCreated)
	s.holds("secrets/default/old", "{")
	s.holds("secrets/default/new", "k8s:enc:aesgcm:v1:one:")
	s.holds("example.com/tabs/a", "k8s:enc:aesgcm:v1:one:")
	s.holds("configmaps/default/open", "{")
	if before, after := s.touch(secretsPath + "/old"); before == after {
		t.Error("a write that changes nothing does not encrypt what was written before")
	}
	s.holds("secrets/default/old", "k8s:enc:aesgcm:v1:one:")
	if before, after := s.touch(secretsPath + "/old"); before != after {
		t.Error("a write that changes nothing, encryption included, is one")
	}

	s.rotate(file, encryptionOf(aesgcm("two", secondKey), aesgcm("one", firstKey)))
	s.do("GET", "/readyz/kms-providers", "", http.StatusOK)
	s.do("GET", "/healthz/poststarthook/start-encryption-provider-config-automatic-reload", "", http.StatusOK)
	if before, after := s.touch(secretsPath + "/new"); before == after {
		t.Error("a write that changes nothing does not rotate the key")
	}
	s.holds("secrets/default/new", "k8s:enc:aesgcm:v1:two:")
	s.lose(file)
	s.find(file)
	s.keepsQuiet(&log)
}

// lose takes the first key away: one secret and the custom object cannot be read.
func (e *encrypting) lose(file string) {
	t := e.t
	e.rotate(file, encryptionOf(aesgcm("two", secondKey)))
	text := func(obj map[string]any) string { s, _ := obj["message"].(string); return s }
	const why = "data from the storage is not transformable revision=0: no matching key was found for the provided AES " +
		"transformer"
	corrupt := func(key string) string {
		return "StorageError: corrupt object, Code: 7, Key: " + key + ", ResourceVersion: 0, AdditionalErrorMsg: " + why
	}
	one := corrupt("/secrets/default/old")
	for method, want := range map[string]string{"GET": one, "DELETE": one, "PUT": why} {
		body := ""
		if method == "PUT" {
			body = secretNamed("old")
		}
		obj := e.do(method, secretsPath+"/old", body, http.StatusInternalServerError)
		if text(obj) != "Internal error occurred: "+want || obj["reason"] != "InternalError" {
			t.Errorf("%s: %v", method, obj)
		}
	}
	for _, list := range []string{secretsPath, "/api/v1/secrets", "/api/v1/secrets?watch=1&sendInitialEvents=true" +
		"&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"} {
		obj := e.do("GET", list, "", http.StatusInternalServerError)
		details, _ := obj["details"].(map[string]any)
		if obj["reason"] != "StorageReadError" && obj["reason"] != "StoreReadError" ||
			text(obj) != "failed to read one or more secrets from the storage" ||
			!strings.Contains(fmt.Sprint(details["causes"]), corrupt("/registry/secrets/default/old")) {
			t.Errorf("%s: %v", list, obj)
		}
	}
	e.do("DELETE", secretsPath, "", http.StatusInternalServerError)
	some := e.do("GET", secretsPath+"?ignoreStoreReadError=true", "", http.StatusOK)
	if items, _ := some["items"].([]any); len(items) != 1 {
		t.Errorf("%v", some)
	}
	refused := e.do("DELETE", secretsPath+"/new", unsafeOptions, http.StatusConflict)
	if !strings.Contains(text(refused), "Key: /registry/secrets/default/new, ResourceVersion: 0, AdditionalErrorMsg: "+
		"unsafe deletion is not allowed because the object is decodable from storage") {
		t.Errorf("%v", refused)
	}
	e.do("DELETE", secretsPath+"/gone", unsafeOptions, http.StatusNotFound)
	if done := e.do("DELETE", secretsPath+"/old", unsafeDryRun, http.StatusOK); done["status"] != "Success" {
		t.Errorf("%v", done)
	}
	e.do("GET", secretsPath+"/old", "", http.StatusInternalServerError)
	e.do("DELETE", secretsPath, unsafeOptions, http.StatusUnprocessableEntity)
	if done := e.do("DELETE", secretsPath+"/old", unsafeOptions, http.StatusOK); done["status"] != "Success" {
		t.Errorf("%v", done)
	}
	e.do("GET", secretsPath+"/old", "", http.StatusNotFound)
	e.do("GET", secretsPath, "", http.StatusOK)
	e.do("GET", "/apis/example.com/v1/tabs", "", http.StatusInternalServerError)
}

// find brings the key back.
func (e *encrypting) find(file string) {
	e.rotate(file, encryptionOf(aesgcm("two", secondKey), aesgcm("one", firstKey)))
	e.do("GET", "/apis/example.com/v1/tabs", "", http.StatusOK)
	e.do("GET", "/apis/example.com/v1/tabs/a", "", http.StatusOK)
}

// keepsQuiet searches the log and the pages for secrets.
func (e *encrypting) keepsQuiet(log *logtest.Log) {
	pages := map[string]string{"the log": log.String()}
	transport, err := rest.TransportFor(e.server.RESTConfig())
	if err != nil {
		e.t.Fatal(err)
	}
	for _, path := range []string{"/metrics", "/statusz", "/debug/pprof/", "/debug/pprof/goroutine?debug=2", "/readyz?verbose"} {
		r, _ := http.NewRequestWithContext(e.t.Context(), "GET", e.server.URL()+path, nil)
		res, err := transport.RoundTrip(r)
		if err != nil {
			e.t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != http.StatusOK {
			e.t.Errorf("%s: %d %v", path, res.StatusCode, err)
		}
		pages[path] = string(body)
	}
	if !strings.Contains(pages["/metrics"], "apiserver_storage_transformation_operations_total") ||
		!strings.Contains(pages["/metrics"], "bowsprit_storage_unreadable_objects") &&
			strings.Contains(pages["/metrics"], "bowsprit_storage_unreadable_objects{") {
		e.t.Error("metrics are missing")
	}
	token := e.do("POST", "/api/v1/namespaces/default/serviceaccounts/default/token",
		`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`, http.StatusCreated)
	bearer := token["status"].(map[string]any)["token"].(string)
	pages["the log"] = log.String()
	for where, text := range pages {
		for _, secret := range []string{
			hushed, base64.StdEncoding.EncodeToString([]byte(hushed)), firstKey, secondKey, "key of thirty-two", bearer,
		} {
			if strings.Contains(text, secret) {
				e.t.Errorf("%s has %.20s", where, secret)
			}
		}
	}
}

// TestModes makes a server write all its files, and checks their permissions.
func TestModes(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("modes are of Unix")
	}
	dir := filepath.Join(t.TempDir(), "data")
	s := startEncrypting(t, dir, "", io.Discard)
	s.do("POST", secretsPath, secretNamed("a"), http.StatusCreated)
	s.end(t)
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		files++
		if mode := info.Mode().Perm(); mode&0o077 != 0 {
			t.Errorf("%s: %o", path, mode)
		}
		return nil
	})
	if err != nil || files < 8 {
		t.Errorf("%d files, %v", files, err)
	}
}

// spoil overwrites the stored value of a key with bytes that are not an object.
func (e *encrypting) spoil(key string) {
	e.t.Helper()
	r, err := e.host.Store.Get(e.t.Context(), key)
	if err != nil {
		e.t.Fatal(err)
	}
	revision, err := e.host.Store.Update(e.t.Context(), key, []byte("k8s:enc:secretbox:v1:lost:"), r.Revision)
	if err != nil {
		e.t.Fatal(err)
	}
	if err := e.host.View.WaitFor(e.t.Context(), revision); err != nil {
		e.t.Fatal(err)
	}
}

// gone waits until the view no longer has an object.
func (e *encrypting) gone(prefix, namespace, name string) {
	e.t.Helper()
	c := e.host.View.Collection(prefix)
	for {
		changed := c.Changed()
		if c.Snapshot().Get(namespace, name) == nil {
			return
		}
		select {
		case <-changed:
		case <-e.t.Context().Done():
			e.t.Fatalf("%s/%s/%s stays", prefix, namespace, name)
		}
	}
}

const unsafeDryRun = `{"kind":"DeleteOptions","apiVersion":"v1",` +
	`"ignoreStoreReadErrorWithClusterBreakingPotential":true,"dryRun":["All"]}`

const unsafeOptions = `{"kind":"DeleteOptions","apiVersion":"v1","ignoreStoreReadErrorWithClusterBreakingPotential":true}`

func ownedMap(name, owner, uid string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"ownerReferences":[
		{"apiVersion":"v1","kind":"Secret","name":%q,"uid":%q}]}}`, name, owner, uid)
}

// TestUnreadableHolds has an unreadable owner and an unreadable object in a namespace: the owner's dependents and the
// namespace remain until the unreadable objects are deleted. The server has started later, so it has no earlier state
// of them.
func TestUnreadableHolds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startEncrypting(t, dir, "", io.Discard)
	const maps = "/api/v1/namespaces/default/configmaps"
	s.do("POST", "/api/v1/namespaces", `{"metadata":{"name":"full"}}`, http.StatusCreated)
	s.do("POST", "/api/v1/namespaces/full/secrets", `{"metadata":{"name":"content"}}`, http.StatusCreated)
	owner := s.do("POST", secretsPath, `{"metadata":{"name":"owner"}}`, http.StatusCreated)
	uid := owner["metadata"].(map[string]any)["uid"].(string)
	s.do("POST", maps, ownedMap("child", "owner", uid), http.StatusCreated)
	s.spoil("secrets/default/owner")
	s.spoil("secrets/full/content")
	since := owner["metadata"].(map[string]any)["resourceVersion"].(string)
	watched := s.do("GET", secretsPath+"?watch=1&resourceVersion="+since, "", http.StatusOK)
	if message, _ := watched["object"].(map[string]any); watched["type"] != "ERROR" ||
		!strings.Contains(fmt.Sprint(message["message"]), "identity transformer tried to read encrypted data") {
		t.Errorf("a watch of an object that becomes unreadable: %v", watched)
	}
	s.end(t)

	s = startEncrypting(t, dir, "", io.Discard)
	s.do("GET", secretsPath+"/owner", "", http.StatusInternalServerError)
	s.do("GET", "/api/v1/namespaces/full/configmaps", "", http.StatusOK)
	s.do("POST", maps, ownedMap("stray", "nobody", "00000000-0000-0000-0000-000000000001"), http.StatusCreated)
	s.gone("configmaps", "default", "stray") // the collector has known the child longer, so it has checked it
	s.do("GET", maps+"/child", "", http.StatusOK)

	s.do("DELETE", "/api/v1/namespaces/full", "", http.StatusOK)
	c := s.host.View.Collection("namespaces")
	for { // until its condition reports remaining content
		changed := c.Changed()
		e := c.Snapshot().Get("", "full")
		if e == nil {
			t.Fatal("the namespace went, with an object in it")
		}
		if strings.Contains(string(e.JSON()), `"NamespaceContentRemaining"`) {
			break
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatal("nothing is said of what keeps the namespace")
		}
	}
	s.do("DELETE", "/api/v1/namespaces/full/secrets/content", unsafeOptions, http.StatusOK)
	s.gone("namespaces", "", "full")
	s.do("DELETE", secretsPath+"/owner", unsafeOptions, http.StatusOK)
	s.gone("configmaps", "default", "child")
}
