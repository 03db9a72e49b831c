package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// TestStorageMediaType kills servers that store objects of all kinds as protobuf or as JSON, starts others on the same
// etcd that store them the other way, and has them read the same: with a reference, kube-apiserver too.
func TestStorageMediaType(t *testing.T) {
	t.Parallel()
	etcd := startCluster(t, 1, nil)
	client := etcdClient(t, etcd.members[0].client)
	data := t.TempDir()
	start := func(media string) *process {
		return startServer(t, "--data-dir="+data, "--etcd-servers="+etcd.endpoints(), "--storage-media-type="+media)
	}
	objects := storyObjects(t)
	p := start("application/vnd.kubernetes.protobuf")
	kubectl(t, p, objects, "create", "-f", "-")
	protobuf, inJSON := storedAs(t, client)
	t.Logf("%d objects are protobuf", protobuf)
	for key := range inJSON {
		if !alwaysJSON.MatchString(key) {
			t.Errorf("stored as JSON: %s", key)
		}
	}
	before := served(t, p)
	p.kill()

	p = start("application/json")
	compareServed(t, "in JSON, of protobuf", before, served(t, p))
	kubectl(t, p, nil, "create", "namespace", "two")
	kubectl(t, p, namespaced(objects), "create", "-n", "two", "-f", "-")
	if _, inJSON := storedAs(t, client); !inJSON["/registry/deployments/two/dep"] {
		t.Error("a Deployment is not JSON")
	}
	before = served(t, p)
	p.kill()

	p = start("application/vnd.bowsprit.compressed+json")
	compareServed(t, "compressed, of JSON and protobuf", before, served(t, p))
	kubectl(t, p, nil, "create", "namespace", "three")
	kubectl(t, p, namespaced(objects), "create", "-n", "three", "-f", "-")
	before = served(t, p)
	p.kill()

	p = start("application/vnd.kubernetes.protobuf")
	compareServed(t, "in protobuf, of all of them", before, served(t, p))
	kubectl(t, p, nil, "delete", "namespace", "three") // kube-apiserver does not read it
	kubectl(t, p, nil, "wait", "--for=delete", "namespace/three", "--timeout=60s")
	before = served(t, p)
	p.kill()
	if reference != "" {
		compareServed(t, "by kube-apiserver", before, served(t, startReference(t, etcd)))
	}
}

// alwaysJSON matches the keys of resources that no server stores as protobuf, and of records that are not objects.
var alwaysJSON = regexp.MustCompile(
	`^/registry/(apiextensions\.k8s\.io|apiregistration\.k8s\.io|nodeports)/`)

// storyObjects returns the objects of the story of all kinds.
func storyObjects(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "kinds.txt"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "$ cat > kinds.yaml <<EOF\n")
	objects, _, ok := strings.Cut(rest, "\nEOF\n")
	if !ok {
		t.Fatal("there are no objects in kinds.txt")
	}
	return []byte(strings.ReplaceAll(objects, "HOURS_AGO", "2026-11-01T10:00:00"))
}

// namespaced returns the objects of a stream that may be there twice, in two namespaces.
func namespaced(objects []byte) []byte {
	var kept []string
	for doc := range strings.SplitSeq(string(objects), "\n---\n") {
		for _, kind := range []string{"Deployment", "PodTemplate", "LimitRange", "ControllerRevision"} {
			if strings.Contains("\n"+doc, "\nkind: "+kind+"\n") {
				kept = append(kept, doc)
			}
		}
	}
	return []byte(strings.Join(kept, "\n---\n"))
}

// storedAs counts the values in protobuf and returns the keys of the values in JSON.
func storedAs(t *testing.T, client *clientv3.Client) (protobuf int, inJSON map[string]bool) {
	t.Helper()
	r, err := client.Get(bounded(t, commandLimit), "/registry/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	inJSON = map[string]bool{}
	for _, kv := range r.Kvs {
		if strings.HasPrefix(string(kv.Value), "k8s\x00") {
			protobuf++
		} else {
			inJSON[string(kv.Key)] = true
		}
	}
	return protobuf, inJSON
}

// served returns everything that a server can list: by path and name, each object with its revision.
func served(t *testing.T, p *process) map[string]map[string]any {
	t.Helper()
	config := p.config(t)
	found, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := found.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]map[string]any{}
	for _, list := range lists {
		base := "/apis/" + list.GroupVersion
		if !strings.Contains(list.GroupVersion, "/") {
			base = "/api/" + list.GroupVersion
		}
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") || !strings.Contains(r.Verbs.String(), "list") {
				continue
			}
			collect(t, found.RESTClient(), base+"/"+r.Name, all)
		}
	}
	return all
}

func collect(t *testing.T, client rest.Interface, path string, all map[string]map[string]any) {
	t.Helper()
	body, err := client.Get().AbsPath(path).Do(bounded(t, commandLimit)).Raw()
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	var list struct{ Items []map[string]any }
	if err := json.Unmarshal(body, &list); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for _, item := range list.Items {
		meta, _ := item["metadata"].(map[string]any)
		namespace, _ := meta["namespace"].(string)
		name, _ := meta["name"].(string)
		all[path+" "+namespace+"/"+name] = item
	}
}

// compareServed compares the objects without later writes.
func compareServed(t *testing.T, how string, before, now map[string]map[string]any) {
	t.Helper()
	revision := func(obj map[string]any) string {
		meta, _ := obj["metadata"].(map[string]any)
		text, _ := meta["resourceVersion"].(string)
		return text
	}
	compared := 0
	for key, was := range before {
		is := now[key]
		if is == nil || revision(is) != revision(was) || revision(is) == "" {
			continue
		}
		compared++
		wasText, _ := json.Marshal(was)
		isText, _ := json.Marshal(is)
		if string(wasText) != string(isText) {
			t.Errorf("read %s: %s is\n%s\nwas\n%s", how, key, isText, wasText)
		}
	}
	t.Logf("read %s: %d objects of %d compared", how, compared, len(before))
	if compared < 150 {
		t.Errorf("read %s: %d objects compared", how, compared)
	}
}
