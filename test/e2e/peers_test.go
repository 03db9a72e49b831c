package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
)

const (
	peerJob = `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"NAME","namespace":"default"},"spec":{"template":
		{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"example.com/c"}]}}}}`
	peerDeployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"NAME","namespace":"default"},"spec":
		{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},
		"spec":{"containers":[{"name":"c","image":"example.com/c"}]}}}}`
	peerDiscovery = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
)

// TestPeersOfKubeAPIServer runs Bowsprit and a kube-apiserver on one etcd. Each lacks a group of the other, as during a
// replacement. Each forwards requests for the other's group, in the name of the user, and lists the group in discovery.
func TestPeersOfKubeAPIServer(t *testing.T) {
	if reference == "" {
		t.Skip("E2E_KUBE_APISERVER is not set")
	}
	if err := exec.CommandContext(t.Context(), "unshare", "--uts", "true").Run(); err != nil {
		t.Skipf("servers that share an etcd are told apart by host name, and this user cannot have another one: %v", err)
	}
	t.Parallel()
	ours, kube := startPeers(t)
	eventually(t, ours, "/apis/batch/v1/namespaces/default/jobs", "", isList("JobList"))
	eventually(t, kube, "/apis/apps/v1/namespaces/default/deployments", "", isList("DeploymentList"))

	for _, one := range []struct {
		by, to         *process
		object, plural string
	}{{ours, kube, peerJob, "jobs"}, {kube, ours, peerDeployment, "deployments"}} {
		object := strings.ReplaceAll(one.object, "NAME", "proxied")
		kubectl(t, one.by, []byte(object), "create", "-f", "-")
		get := []string{"get", one.plural, "proxied", "-o", "json", "--show-managed-fields"}
		if a, b := kubectl(t, one.by, nil, get...), kubectl(t, one.to, nil, get...); !bytes.Equal(a, b) {
			t.Errorf("%s by another server: %s\nby the one that serves them: %s", one.plural, a, b)
		}
		kubectl(t, one.by, nil, "label", one.plural, "proxied", "changed=yes")
		kubectl(t, one.to, nil, "wait", one.plural+"/proxied", "--for=jsonpath={.metadata.labels.changed}=yes",
			"--timeout=60s")
		checkPeerRights(t, one.by, one.plural)
	}
	checkPeerDiscovery(t, ours, kube)

	kubectl(t, ours, nil, "delete", "job", "proxied", "--wait=false")
	kube.kill()
	eventually(t, ours, "/apis/batch/v1/namespaces/default/jobs", "", func(got string) bool {
		return strings.Contains(got, "could not find the requested resource")
	})
}

// startPeers starts Bowsprit and kube-apiserver on one etcd. Each server creates its authority at its start, and only
// then does the file of --peer-ca-file include it. So Bowsprit has to reload the file.
func startPeers(t *testing.T) (ours, kube *process) {
	t.Helper()
	var none *pair
	clients, proxies := none.sign(t, "clients"), none.sign(t, "proxies")
	dir, etcd := t.TempDir(), startCluster(t, 1, nil)
	authorities := filepath.Join(t.TempDir(), "peers.crt")
	add := func(file string) {
		t.Helper()
		before, _ := os.ReadFile(authorities) // missing at first
		more, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(authorities+".new", slices.Concat(before, more), 0o600)
		}
		if err == nil {
			err = os.Rename(authorities+".new", authorities)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	add(clients.certFile)
	flags := append(frontFlags(clients, proxies, proxies.sign(t, "front")), "--peer-ca-file="+authorities)
	ours = startServer(t, slices.Concat(flags, []string{"--data-dir=" + filepath.Join(dir, "ours"),
		"--etcd-servers=" + etcd.endpoints(), "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
		"--runtime-config=batch/v1=false"})...)
	add(filepath.Join(dir, "ours", "pki", "ca.crt"))
	certs := filepath.Join(dir, "kube")
	kube = startReferenceBy(t,
		[]string{"unshare", "--uts", "sh", "-c", `hostname kube && exec "$0" "$@"`, reference}, etcd,
		slices.Concat(flags, []string{withoutAccounts, "--cert-dir=" + certs, "--runtime-config=apps/v1=false",
			"--advertise-address=127.0.0.1"})...)
	add(filepath.Join(certs, "apiserver.crt"))
	return ours, kube
}

// checkPeerRights has a user without rights send a request through by: the other server refuses it by that user's name.
func checkPeerRights(t *testing.T, by *process, plural string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(binaries, "kubectl"), "--kubeconfig="+by.kubeconfig,
		"--cache-dir="+filepath.Join(t.TempDir(), "cache"), "--as=jane", "delete", plural, "proxied")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), `User "jane" cannot delete resource "`+plural+`"`) {
		t.Errorf("delete %s as jane: %v %s", plural, err, out)
	}
}

// checkPeerDiscovery compares the merged discovery of both, and the discovery of each server's own groups.
func checkPeerDiscovery(t *testing.T, ours, kube *process) {
	t.Helper()
	has := func(versions ...string) func(string) bool {
		return func(got string) bool {
			all := groupVersions(t, got)
			return !slices.ContainsFunc(versions, func(v string) bool { return !slices.Contains(all, v) })
		}
	}
	a := eventually(t, ours, "/apis", peerDiscovery, has("apps/v1", "batch/v1"))
	b := eventually(t, kube, "/apis", peerDiscovery, has("apps/v1", "batch/v1"))
	if a, b := groupVersions(t, a), groupVersions(t, b); !slices.Equal(a, b) {
		t.Errorf("of all:\nours %v\nkube %v", a, b)
	}
	a = eventually(t, ours, "/apis", peerDiscovery+";profile=nopeer", has("apps/v1"))
	b = eventually(t, kube, "/apis", peerDiscovery+";profile=nopeer", has("batch/v1"))
	if has("batch/v1")(a) || has("apps/v1")(b) {
		t.Errorf("of each:\nours %v\nkube %v", groupVersions(t, a), groupVersions(t, b))
	}
}

// eventually repeats a request until the response is as wanted, and returns it.
func eventually(t *testing.T, p *process, path, accept string, ok func(string) bool) string {
	t.Helper()
	client, err := kubernetes.NewForConfig(p.config(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx := bounded(t, startLimit)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for ; ; <-tick.C {
		request := client.RESTClient().Get().AbsPath(path)
		if accept != "" {
			request.SetHeader("Accept", accept)
		}
		got, _ := request.DoRaw(ctx) // the body contains the error
		if ok(string(got)) {
			return string(got)
		}
		if ctx.Err() != nil {
			t.Fatalf("GET %s: %s", path, got)
		}
	}
}

func isList(kind string) func(string) bool {
	return func(got string) bool { return strings.Contains(got, `"kind":"`+kind+`"`) }
}

// groupVersions returns the versions in an aggregated document, sorted.
func groupVersions(t *testing.T, document string) (all []string) {
	t.Helper()
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Versions []struct{ Version string }
		}
	}
	if json.Unmarshal([]byte(document), &list) != nil {
		return nil // an error's
	}
	for _, group := range list.Items {
		for _, v := range group.Versions {
			all = append(all, group.Metadata.Name+"/"+v.Version)
		}
	}
	slices.Sort(all)
	return all
}
