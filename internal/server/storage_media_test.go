package server

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/server/config"
	"github.com/bowsprit/bowsprit/internal/testing/logtest"
)

// TestStorageMediaType starts a server on the same data with one media type after the other. Clients read the same
// objects, new values have the server's type, and an update without changes is a write if it converts the stored value
// to that type.
func TestStorageMediaType(t *testing.T) {
	t.Parallel()
	const (
		protobuf, inJSON, compressed = "k8s\x00", "{", "bow\x00"

		configMaps = "/api/v1/namespaces/default/configmaps"
		web        = "/apis/apps/v1/namespaces/default/deployments/web"
	)
	dir := t.TempDir()
	start := func(media string) *encrypting {
		return startEncrypting(t, dir, "", io.Discard, func(c *config.Config) { c.Etcd.StorageMediaType = media })
	}
	s := start("")
	s.do("POST", configMaps, `{"metadata":{"name":"a"},"data":{"a":"<&>\u2028ä"},"binaryData":{"b":"AAE="}}`, 201)
	s.do("POST", "/apis/apps/v1/namespaces/default/deployments", `{"metadata":{"name":"web"},"spec":{"selector":
		{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i",
		"resources":{"limits":{"cpu":"1500m","memory":"1024Mi"}}}]}}}}`, 201)
	s.do("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", `{"metadata":{"name":"tabs.example.com"},
		"spec":{"group":"example.com","scope":"Cluster","names":{"plural":"tabs","kind":"Tab"},"versions":[
		{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`, 201)
	s.do("POST", "/apis/example.com/v1/tabs", `{"apiVersion":"example.com/v1","kind":"Tab","metadata":{"name":"a"}}`, 201)
	for _, key := range []string{"configmaps/default/a", "deployments/default/web", "services/specs/default/kubernetes"} {
		s.holds(key, inJSON)
	}
	before := s.everything()
	s.end(t)

	s = start("application/vnd.kubernetes.protobuf")
	s.same(before)
	s.holds("configmaps/default/a", inJSON)
	if before, after := s.touch(configMaps + "/a"); before == after {
		t.Error("a write that changes nothing does not bring an object into protobuf")
	}
	s.holds("configmaps/default/a", protobuf)
	if before, after := s.touch(configMaps + "/a"); before != after {
		t.Error("a write that changes nothing, the media type included, is one")
	}
	s.merge(web+"/scale", `{"spec":{"replicas":3}}`)
	s.do("POST", "/api/v1/namespaces/default/services", `{"metadata":{"name":"svc"},"spec":{"ports":[{"port":80}]}}`, 201)
	s.do("POST", "/apis/events.k8s.io/v1/namespaces/default/events", `{"metadata":{"name":"e"},"eventTime":
		"2026-11-26T10:00:00.123456Z","action":"a","reason":"r","note":"n","type":"Normal","reportingController":"c/c",
		"reportingInstance":"i","regarding":{"kind":"Pod","namespace":"default","name":"p"}}`, 201)
	s.merge("/apis/example.com/v1/tabs/a", `{"metadata":{"labels":{"a":"b"}}}`)
	ip := s.do("GET", "/api/v1/namespaces/default/services/svc", "", 200)["spec"].(map[string]any)["clusterIP"].(string)
	for key, how := range map[string]string{
		"deployments/default/web": protobuf, "services/specs/default/svc": protobuf, "ipaddresses/" + ip: protobuf,
		"events/default/e": protobuf, "example.com/tabs/a": inJSON,
		"apiextensions.k8s.io/customresourcedefinitions/tabs.example.com": inJSON,
	} {
		s.holds(key, how)
	}
	s.do("POST", configMaps, `{"metadata":{"name":"b","finalizers":["example.com/stay"]}}`, 201)
	s.do("DELETE", configMaps+"/b", "", http.StatusOK) // its deletionTimestamp is a write
	s.holds("configmaps/default/b", protobuf)
	before = s.everything()
	s.end(t)

	s = start("application/json")
	s.same(before)
	s.holds("configmaps/default/a", protobuf)
	if before, after := s.touch(configMaps + "/a"); before == after {
		t.Error("a write that changes nothing does not bring an object back into JSON")
	}
	s.holds("configmaps/default/a", inJSON)
	s.end(t)

	s = start("application/yaml")
	s.touch(configMaps + "/a")
	s.holds("configmaps/default/a", "apiVersion: v1\n")
	s.end(t)

	s = start("application/vnd.bowsprit.compressed+json")
	s.touch(configMaps + "/a")
	s.holds("configmaps/default/a", compressed)
	s.merge(web+"/scale", `{"spec":{"replicas":4}}`)
	s.holds("deployments/default/web", compressed)
	before = s.everything()
	s.end(t)

	s = start("application/vnd.kubernetes.protobuf")
	s.same(before)
	s.holds("configmaps/default/a", compressed)
}

// TestStorageMediaTypeOfSimulation checks that a server that simulates workloads compresses stored objects, unless the
// configuration sets another type or other programs can read its etcd. The log warns of such an etcd.
func TestStorageMediaTypeOfSimulation(t *testing.T) {
	t.Parallel()
	for prefix, set := range map[string]config.Etcd{
		"bow\x00": {}, "{": {StorageMediaType: "application/json"}, "k8s\x00": {ListenClientURL: "http://127.0.0.1:0"},
	} {
		log := &logtest.Log{}
		s := startEncrypting(t, t.TempDir(), "", log, func(c *config.Config) {
			c.Workloads.Simulate, c.Etcd = map[string]string{"nodes": "1"}, set
		})
		s.holds("minions/node-0", prefix)
		s.end(t)
		warned := strings.Contains(log.String(), "the embedded etcd is open to every process of this machine")
		if open := set.ListenClientURL != ""; warned != open {
			t.Errorf("--etcd-listen-client-url=%s: the log warns: %v", set.ListenClientURL, warned)
		}
	}
}

// TestStorageMediaTypeEncrypted checks that the cipher works with every media type.
func TestStorageMediaTypeEncrypted(t *testing.T) {
	t.Parallel()
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "encryption.yaml")
	text := encryptionOf(aesgcm("one", firstKey), "  - identity: {}\n")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	start := func(media string) *encrypting {
		return startEncrypting(t, dir, file, io.Discard, func(c *config.Config) { c.Etcd.StorageMediaType = media })
	}
	s := start("application/vnd.kubernetes.protobuf")
	s.do("POST", secretsPath, secretNamed("a"), http.StatusCreated)
	s.holds("secrets/default/a", "k8s:enc:aesgcm:v1:one:")
	plain, err := s.encryption.Decrypt("secrets", "secrets/default/a", []byte(s.raw("secrets/default/a")))
	if err != nil || !strings.HasPrefix(string(plain), "k8s\x00") || !strings.Contains(string(plain), hushed) {
		t.Errorf("below the encryption is no protobuf: %q %v", plain, err)
	}
	before := s.everything()
	s.end(t)
	start("").same(before)
}

// unchanging lists collections, by path, that a starting server hardly writes.
var unchanging = []string{
	"/api/v1/configmaps", "/api/v1/namespaces", "/api/v1/services", "/api/v1/secrets", "/api/v1/events",
	"/apis/apps/v1/deployments", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/apis/example.com/v1/tabs",
	"/apis/rbac.authorization.k8s.io/v1/clusterroles", "/apis/rbac.authorization.k8s.io/v1/rolebindings",
	"/apis/scheduling.k8s.io/v1/priorityclasses", "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
	"/apis/networking.k8s.io/v1/ipaddresses", "/apis/networking.k8s.io/v1/servicecidrs",
}

// everything returns the objects of the collections that hardly change, by path, uid and revision, in their served
// form.
func (e *encrypting) everything() map[string]string {
	e.t.Helper()
	all := map[string]string{}
	for _, path := range unchanging {
		var list struct{ Items []json.RawMessage }
		code, _, body := e.ask("GET", path, "")
		if code == http.StatusNotFound {
			continue
		}
		if err := json.Unmarshal([]byte(body), &list); err != nil || code != http.StatusOK {
			e.t.Fatalf("%s: %d %v", path, code, err)
		}
		for _, item := range list.Items {
			var obj struct {
				Metadata struct{ UID, ResourceVersion string }
			}
			if err := json.Unmarshal(item, &obj); err != nil {
				e.t.Fatal(err)
			}
			all[path+" "+obj.Metadata.UID+" "+obj.Metadata.ResourceVersion] = string(item)
		}
	}
	return all
}

// same checks that every object without a new write is the same, byte for byte.
func (e *encrypting) same(before map[string]string) {
	e.t.Helper()
	compared := 0
	for key, text := range e.everything() {
		switch was, ok := before[key]; {
		case !ok:
		case was != text:
			e.t.Errorf("%s: is\n%s\nwas\n%s", key, text, was)
		default:
			compared++
		}
	}
	if compared < 60 {
		e.t.Errorf("%d objects of %d are as they were", compared, len(before))
	}
}
