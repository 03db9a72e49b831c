package pki

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// TestRemove removes the entries of one name, and leaves the others and their current context.
func TestRemove(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config")
	config := clientcmdapi.NewConfig()
	for _, name := range []string{"a", "b"} {
		config.Clusters[name] = &clientcmdapi.Cluster{Server: "https://" + name}
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: name}
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	config.CurrentContext = "a"
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ remove, current, left string }{
		{"nosuch", "a", "ab"}, {"b", "a", "a"}, {"a", "", ""},
	} {
		if err := Remove(file, step.remove); err != nil {
			t.Fatal(err)
		}
		got, err := clientcmd.LoadFromFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n := len(step.left)
		if got.CurrentContext != step.current || len(got.Contexts) != n || len(got.Clusters) != n ||
			len(got.AuthInfos) != n {
			t.Errorf("after %s: %+v", step.remove, got)
		}
		for _, name := range step.left {
			if got.Contexts[string(name)] == nil {
				t.Errorf("after %s: %c is gone", step.remove, name)
			}
		}
	}
	if err := os.WriteFile(file, []byte("no: [kubeconfig"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Remove(file, "a"); err == nil {
		t.Error("a file that is no kubeconfig was changed")
	}
}
