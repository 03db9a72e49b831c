package pki

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// TestMergeOtherServer merges into files with an entry of the same name for another server. Such a file keeps its
// bytes: a context of the user's never leads to another server than before.
func TestMergeOtherServer(t *testing.T) {
	t.Parallel()
	p, foreign := open(t, Config{}, start), open(t, Config{}, start)
	const url, remote, local = "https://127.0.0.1:6443", "https://prod.example:6443", "https://127.0.0.1:7443"
	entries := func(by *PKI, server, context, cluster, user string) string {
		config, err := clientcmd.Load(by.Kubeconfig(server))
		must(t, err)
		config.Clusters[cluster], config.AuthInfos[user] = config.Clusters["bowsprit"], config.AuthInfos["bowsprit"]
		config.Contexts[context] = config.Contexts["bowsprit"]
		maps.DeleteFunc(config.Clusters, func(name string, _ *clientcmdapi.Cluster) bool { return name != cluster })
		maps.DeleteFunc(config.AuthInfos, func(name string, _ *clientcmdapi.AuthInfo) bool { return name != user })
		maps.DeleteFunc(config.Contexts, func(name string, _ *clientcmdapi.Context) bool { return name != context })
		config.Contexts[context].Cluster, config.Contexts[context].AuthInfo = cluster, user
		config.CurrentContext = context
		text, err := clientcmd.Write(*config)
		must(t, err)
		return string(text)
	}
	for _, test := range []struct {
		name, before       string
		refused, refusedAt bool // by Merge, and at the start of a server
	}{
		{"another machine", entries(foreign, remote, "bowsprit", "bowsprit", "bowsprit"), true, true},
		{"another machine, context renamed", entries(foreign, remote, "production", "bowsprit", "bowsprit"), true, true},
		{"another server here", entries(foreign, local, "bowsprit", "bowsprit", "bowsprit"), true, false},
		{"another server here, context renamed", entries(foreign, local, "production", "bowsprit", "bowsprit"), true, true},
		{"a user here", entries(foreign, local, "alice@bowsprit", "bowsprit", "alice@bowsprit"), true, false},
		{"name of the context", entries(foreign, remote, "bowsprit", "prod", "me"), true, true},
		{"name of the user", entries(foreign, remote, "production", "prod", "bowsprit"), true, true},
		{"this server, another port", entries(p, local, "bowsprit", "bowsprit", "bowsprit"), false, false},
		{"this server, renamed", entries(p, url, "mine", "bowsprit", "bowsprit"), false, false},
		{"this URL, a new authority", entries(foreign, url, "bowsprit", "bowsprit", "bowsprit"), false, false},
		{"nothing in common", entries(foreign, remote, "production", "prod", "me"), false, false},
	} {
		for step, want := range map[string]bool{"Merge": test.refused, "MergeKubeconfig": test.refusedAt} {
			file := filepath.Join(t.TempDir(), "config")
			must(t, os.WriteFile(file, []byte(test.before), 0o600))
			var err error
			if step == "Merge" {
				_, err = Merge(file, p.Kubeconfig(url), true)
			} else {
				err = p.MergeKubeconfig(file, url)
			}
			after, readErr := os.ReadFile(file)
			must(t, readErr)
			if errors.Is(err, ErrOtherServer) != want || want == (string(after) != test.before) || !want && err != nil {
				t.Errorf("%s: %s: %v; the file is now\n%s", test.name, step, err, after)
			}
		}
	}
	for server, want := range map[string]bool{"https://localhost:1": true, "https://[::1]:1": true, url: true,
		remote: false, "https://10.0.0.1": false, "://": false} {
		if loopback(server) != want {
			t.Error(fmt.Sprint(server, " on this machine: ", !want))
		}
	}
}
