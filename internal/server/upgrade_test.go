package server

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/server/config"
)

// TestUpgrade opens data directories of earlier versions (testdata/upgrade, made by its make.sh), and compares each
// object with that version's response. Newer fields may be added. Then it writes to them, and checks that the addresses
// and ports of services stay allocated.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	archives, err := filepath.Glob("testdata/upgrade/*.tar.gz")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no data of earlier versions: %v", err)
	}
	for _, file := range archives {
		name := strings.TrimSuffix(file, ".tar.gz")
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			answers, err := os.ReadFile(name + ".json")
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			unpackTar(t, file, dir)
			client, _ := runServer(t, config.Config{DataDir: dir})
			objects := map[string]map[string]any{}
			for line := range strings.Lines(string(answers)) {
				path, text, _ := strings.Cut(line, " ")
				var then map[string]any
				if err := json.Unmarshal([]byte(text), &then); err != nil {
					t.Fatalf("%s: %v", path, err)
				}
				objects[path] = then
				if lostAt := lost(then, client.do("GET", path, "", http.StatusOK), ""); lostAt != "" {
					t.Errorf("%s: %s", path, lostAt)
				}
			}
			writeAfterUpgrade(t, client, objects)
		})
	}
}

func writeAfterUpgrade(t *testing.T, client coreClient, objects map[string]map[string]any) {
	const tab, service = "/apis/example.com/v1/namespaces/shop/tabs/one", "/api/v1/namespaces/shop/services"
	if objects[tab] == nil || objects[service+"/web"] == nil {
		t.Fatalf("%d answers, without %s and %s/web", len(objects), tab, service)
	}
	objects[tab]["spec"].(map[string]any)["size"] = 8
	body, err := json.Marshal(objects[tab]) // with the resourceVersion of then
	if err != nil {
		t.Fatal(err)
	}
	changed := client.do("PUT", tab, string(body), http.StatusOK)
	if size := changed["spec"].(map[string]any)["size"]; size != 8.0 {
		t.Errorf("written 8, answered %v", size)
	}
	spec := objects[service+"/web"]["spec"].(map[string]any)
	if spec["clusterIP"] == nil { // the first versions gave services no address
		return
	}
	port := spec["ports"].([]any)[0].(map[string]any)["nodePort"]
	for _, taken := range []string{
		fmt.Sprintf(`"clusterIP": %q, "ports": [{"port": 1}]`, spec["clusterIP"]),
		fmt.Sprintf(`"type": "NodePort", "ports": [{"port": 1, "nodePort": %v}]`, port),
	} {
		client.do("POST", service, `{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "second"}, "spec": {`+
			taken+`}}`, http.StatusUnprocessableEntity)
	}
}

// lost returns the first part of an older value that a newer one lacks, or "". Maps may have grown.
func lost(older, newer any, path string) string {
	a, isMap := older.(map[string]any)
	b, stillMap := newer.(map[string]any)
	switch {
	case isMap && stillMap:
		for key, value := range a {
			if lostAt := lost(value, b[key], path+"."+key); lostAt != "" {
				return lostAt
			}
		}
		return ""
	case reflect.DeepEqual(older, newer):
		return ""
	}
	x, okX := older.([]any)
	y, okY := newer.([]any)
	if !okX || !okY || len(x) != len(y) {
		return fmt.Sprintf("%s was %v, and is %v", path, older, newer)
	}
	for i := range x {
		if lostAt := lost(x[i], y[i], fmt.Sprintf("%s[%d]", path, i)); lostAt != "" {
			return lostAt
		}
	}
	return ""
}

func TestLost(t *testing.T) {
	t.Parallel()
	parse := func(text string) (v any) {
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, c := range []struct{ older, newer, want string }{
		{`{"a":[{"b":1}]}`, `{"a":[{"b":1,"c":2}],"d":3}`, ""},
		{`{"a":[{"b":1}]}`, `{"a":[{"b":2}]}`, ".a[0].b was 1, and is 2"},
		{`{"a":1}`, `{}`, ".a was 1, and is <nil>"}, {`{"a":[1]}`, `{"a":[1,2]}`, ".a was [1], and is [1 2]"},
		{`{"a":{}}`, `{"a":1}`, ".a was map[], and is 1"},
	} {
		if got := lost(parse(c.older), parse(c.newer), ""); got != c.want {
			t.Errorf("%s, %s: %q, want %q", c.older, c.newer, got, c.want)
		}
	}
}

// unpackTar writes the folders and files of an archive of ours below dir.
func unpackTar(t *testing.T, file, dir string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(unzipped); ; {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, filepath.FromSlash(head.Name))
		if head.Typeflag == tar.TypeDir {
			if err := os.MkdirAll(to, 0o700); err != nil {
				t.Fatal(err)
			}
			continue
		}
		out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(out, r)
		if err = errors.Join(err, out.Close()); err != nil {
			t.Fatal(err)
		}
	}
}
