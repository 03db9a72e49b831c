package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// unchangedWrites returns the number of writes of TestUnchangedWrites, and its seed.
func unchangedWrites(t *testing.T) (count int, seed uint64) {
	t.Helper()
	count, seed = 2000, 1
	if text := os.Getenv("E2E_UNCHANGED_WRITES"); text != "" {
		var err error
		if count, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	if text := os.Getenv("E2E_UNCHANGED_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	return count, seed
}

// TestUnchangedWrites sends random writes three times: PUT, the patches and apply, of objects of every built-in kind
// and of a custom one, with empty lists and maps, nulls, zero values, and quantities in other notations. The last write
// must not change the object: each change would wake its controllers, which would write again. With a reference the
// test sends the same writes to kube-apiserver, and no write may change an object that it does not change there.
func TestUnchangedWrites(t *testing.T) {
	t.Parallel()
	count, seed := unchangedWrites(t)
	t.Logf("seed %d", seed)
	servers := []*writer{newWriter(t, startServer(t, "--ephemeral", "--controllers=-*",
		"--disable-admission-plugins=ServiceAccount", "--runtime-config=api/all=true",
		"--service-cluster-ip-range=10.0.0.0/24"))} // the range of the objects' addresses, kube-apiserver's default
	if reference != "" {
		servers = append(servers, newWriter(t, startReference(t, startCluster(t, 1, nil),
			"--disable-admission-plugins=ServiceAccount", "--runtime-config=api/all=true")))
	}
	subjects := unchangedSubjects(t, servers)
	definitions, names := servers[0].shapes(t)
	random := rand.New(rand.NewPCG(seed, 0))
	verdicts := map[string]int{}
	for written := 0; written < count; {
		var round []*repeatedWrite
		for _, s := range subjects {
			round = append(round, s.randomWrite(t, servers, &inventor{random,
				definitions, names[fmt.Sprint(s.manifest["apiVersion"], " ", s.kind)]}))
		}
		for i := range 3 {
			began := time.Now().Truncate(time.Second)
			for _, w := range round {
				w.send(t, servers)
			}
			written += len(round)
			if i < 2 {
				untilAfter(began.Add(time.Second)) // the next writes have another time in managedFields
			}
		}
		for _, w := range round {
			verdicts[w.judge(t)]++
			w.subject.restore(t, servers)
		}
	}
	for _, verdict := range slices.Sorted(maps.Keys(verdicts)) {
		t.Logf("%d: %s", verdicts[verdict], verdict)
	}
	if verdicts["accepted"] < len(subjects) {
		t.Errorf("the server has accepted only %d of %d kinds of writes", verdicts["accepted"], count/3)
	}
}

// untilAfter waits until the clock has passed a time.
func untilAfter(end time.Time) {
	if wait := time.Until(end); wait > 0 {
		<-time.After(wait)
	}
}

// unchangedSubject is an object on every server.
type unchangedSubject struct {
	kind, path string
	manifest   map[string]any // as it was created
}

// unchangedSubjects creates the objects of the tests of validation and of the story of all kinds. It leaves out objects
// that not all servers accept: some kinds are off, and admission refuses references to missing objects.
func unchangedSubjects(t *testing.T, servers []*writer) (out []*unchangedSubject) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "oracle-builtins", "testdata", "objects.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text = slices.Concat([]byte(unchangedSetup), text, []byte("\n---\n"), storyObjects(t))
	kinds := map[string]bool{}
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		var obj map[string]any
		if err := yaml.Unmarshal([]byte(doc), &obj); err != nil {
			t.Fatal(err)
		}
		s := &unchangedSubject{manifest: obj, kind: fmt.Sprint(obj["kind"])}
		meta := obj["metadata"].(map[string]any)
		if strings.HasPrefix(fmt.Sprint(meta["name"]), "older") {
			continue // an object of an older server, which no server accepts
		}
		delete(meta, "deletionTimestamp")
		collection, namespaced := servers[0].collection(t, obj)
		if collection == "" {
			continue
		}
		if namespaced && meta["namespace"] == nil {
			meta["namespace"] = "default"
		}
		if !namespaced {
			delete(meta, "namespace")
		}
		collection = strings.Replace(collection, "NAMESPACE", fmt.Sprint(meta["namespace"]), 1)
		s.path = collection + "/" + fmt.Sprint(meta["name"])
		accepted := true
		for _, w := range servers {
			w.await(t, collection)
			code, answer := w.do(t, http.MethodPost, collection, "application/json", obj)
			if accepted = accepted && code == http.StatusCreated; code != http.StatusCreated {
				t.Logf("%s: %v", s.path, answer["message"])
			}
		}
		if accepted && !strings.HasSuffix(s.path, "/customresourcedefinitions/lots.unchanged.example.com") {
			out = append(out, s)
			kinds[s.kind] = true
		}
	}
	if len(kinds) < 45 {
		t.Fatalf("only %d kinds: %v", len(kinds), slices.Sorted(maps.Keys(kinds)))
	}
	t.Logf("%d objects of %d kinds", len(out), len(kinds))
	return out
}

// unchangedSetup holds the namespaces of the objects, and a custom object.
const unchangedSetup = `{apiVersion: v1, kind: Namespace, metadata: {name: b}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: ns}}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 100}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lots.unchanged.example.com}
spec:
  group: unchanged.example.com
  scope: Namespaced
  names: {plural: lots, kind: Lot}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              list: {type: array, items: {type: string}}
              set: {type: array, x-kubernetes-list-type: set, items: {type: string}}
              byName: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, size: {type: integer}, more: {type: array, items: {type: string}}}}}
              map: {type: object, additionalProperties: {type: string}}
              none: {type: object, nullable: true, properties: {a: {type: string}}}
              word: {type: string, default: w}
              number: {type: integer, nullable: true, default: 3}
              half: {type: number}
              amount: {x-kubernetes-int-or-string: true}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
              flag: {type: boolean}
          status: {type: object, properties: {ready: {type: integer}}}
---
apiVersion: unchanged.example.com/v1
kind: Lot
metadata: {name: lot, labels: {a: b}}
spec: {list: [a], set: [a, b], byName: [{name: x, size: 1, more: [z]}], map: {a: b}, none: {a: b}, half: 0.5, amount: 100m, free: {a: [b], c: {}}, flag: true}
---
`

// restore puts the original fields back, as far as the servers accept that.
func (s *unchangedSubject) restore(t *testing.T, servers []*writer) {
	t.Helper()
	for _, w := range servers {
		_, live := w.do(t, http.MethodGet, s.path, "", nil)
		next := deepCopy(s.manifest)
		meta, was := next["metadata"].(map[string]any), live["metadata"].(map[string]any)
		meta["resourceVersion"] = was["resourceVersion"]
		w.do(t, http.MethodPut, s.path+"?fieldManager=restore", "application/json", next)
	}
}

// deepCopy returns a copy of decoded JSON.
func deepCopy[T any](v T) (out T) {
	data, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		panic(err) // of the test's own making
	}
	return out
}
