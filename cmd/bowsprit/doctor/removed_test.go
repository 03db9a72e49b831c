package doctor

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// oldGroup and newGroup are stored objects, in a version that this release has removed and in one that it has.
const (
	oldGroup = `{"apiVersion":"scheduling.k8s.io/v1alpha2","kind":"PodGroup","metadata":{"name":"a","namespace":"n"}}`
	newGroup = `{"apiVersion":"scheduling.k8s.io/v1beta1","kind":"PodGroup","metadata":{"name":"b","namespace":"n"}}`
)

// TestRemovedInDatabase checks the database of a stopped server.
func TestRemovedInDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, test := range []struct {
		stored map[string]string
		err    error
		state  State
		text   string
	}{
		{map[string]string{"/registry/podgroups/n/b": newGroup}, nil, OK, "no objects in versions"},
		{map[string]string{"/registry/podgroups/n/a": oldGroup, "/registry/podgroups/n/b": newGroup}, nil, Problem,
			"podgroups.scheduling.k8s.io are stored in version v1alpha2, which Kubernetes 1.37 cannot " +
				"read: n/a"},
		{map[string]string{"/registry/workloads/n/a": oldGroup, "/registry/workloads/n/c": oldGroup}, nil, Problem,
			"cannot read: n/a and 1 more"},
		{nil, errors.New("damaged"), Warning, "not checked: damaged"},
	} {
		find := func(at string, below []string, matches func([]byte) bool) (keys []string, err error) {
			if at != filepath.Join(dir, "etcd") || len(below) != 1 {
				t.Errorf("reads %s, %q", at, below)
			}
			for _, key := range []string{"a", "b", "c"} {
				key = below[0] + "n/" + key
				if value, ok := test.stored[key]; ok && matches([]byte(value)) {
					keys = append(keys, key)
				}
			}
			return keys, test.err
		}
		for _, f := range Examine(t.Context(), Patient{Settings: Settings{DataDir: dir}, Now: time.Now(), Find: find}) {
			if f.Check == "stored versions" {
				expect(t, f, test.state, test.text)
				if test.state == Problem && !strings.Contains(f.Do, ".v1alpha2.scheduling.k8s.io --all --all-namespaces") {
					t.Errorf("to do: %s", f.Do)
				}
			}
		}
	}
}

// TestRemovedInServer checks a running server: one that serves the version, and one of this release.
func TestRemovedInServer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		code  int
		list  string
		state State
		text  string
	}{
		"objects": {http.StatusOK, `{"metadata":{"remainingItemCount":2},"items":[` + oldGroup + `]}`, Problem,
			"cannot read: n/a and 2 more"},
		"none":         {http.StatusOK, `{"items":[]}`, OK, "no objects"},
		"this release": {http.StatusNotFound, `{}`, OK, "no objects"},
		"forbidden":    {http.StatusForbidden, `{}`, Warning, "403 Forbidden"},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/readyz" {
				return
			}
			w.WriteHeader(test.code)
			_, _ = w.Write([]byte(test.list))
		}))
		t.Cleanup(s.Close)
		dir := t.TempDir()
		kubeconfig := fmt.Sprintf(`{"clusters":[{"name":"x","cluster":{"server":%q}}],"current-context":"x",
			"contexts":[{"name":"x","context":{"cluster":"x"}}]}`, s.URL)
		if err := os.WriteFile(filepath.Join(dir, "kubeconfig"), []byte(kubeconfig), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Log(name)
		expect(t, examine(t, Settings{DataDir: dir}, time.Now())["stored versions"], test.state, test.text)
	}
}

// TestRemovedInEtcd checks the values of an external etcd: the objects are on the second page, or nowhere.
func TestRemovedInEtcd(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]struct {
		state State
		text  string
	}{oldGroup: {Problem, "cannot read: n/50"}, newGroup: {OK, "no objects"}} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/health" {
				_, _ = w.Write([]byte(`{"health":"true"}`))
				return
			}
			var ask struct {
				Key   []byte
				End   []byte `json:"range_end"`
				Limit int
			}
			if err := json.NewDecoder(r.Body).Decode(&ask); err != nil {
				t.Error(err)
			}
			kvs := []map[string][]byte{}
			if string(ask.End) == "/registry/podgroups0" {
				for i := range 51 {
					key, stored := fmt.Sprintf("/registry/podgroups/n/%02d", i), newGroup
					if i == 50 {
						stored = value
					}
					if key >= string(ask.Key) && len(kvs) < ask.Limit {
						kvs = append(kvs, map[string][]byte{"key": []byte(key), "value": []byte(stored)})
					}
				}
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"kvs": kvs})
		}))
		t.Cleanup(s.Close)
		found := examine(t, Settings{EtcdServers: []string{s.URL}}, time.Now())
		expect(t, found["stored versions"], want.state, want.text)
	}
}
