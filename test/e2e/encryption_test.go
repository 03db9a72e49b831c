package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// encryptedWith is a configuration for secrets with a provider after the other.
func encryptedWith(providers ...string) []byte {
	return fmt.Appendf(nil, "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n"+
		"- resources: [secrets]\n  providers: [%s]\n", strings.Join(providers, ", "))
}

const (
	plain  = `{identity: {}}`
	oldKey = `{secretbox: {keys: [{name: one, secret: AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=}]}}`
	newKey = `{aesgcm: {keys: [{name: two, secret: HxwdHhscGRoXGBUWExQREg8QDQ4LDAkKBwgFBgMEAQI=}]}}`
)

// TestEncryption enables encryption on old data, rewrites it, rotates the key while the server runs, and disables
// encryption: the procedures of docs/encryption.md, by kubectl, with checks of the values in etcd.
func TestEncryption(t *testing.T) {
	t.Parallel()
	etcd := startCluster(t, 1, nil)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{etcd.members[0].client}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	stored := func(name string) string {
		r, err := client.Get(bounded(t, commandLimit), "/registry/secrets/default/"+name)
		if err != nil || len(r.Kvs) != 1 {
			t.Fatalf("%s in etcd: %v %v", name, r, err)
		}
		value, _, _ := strings.Cut(string(r.Kvs[0].Value), "\n")
		if kind, _, encrypted := strings.Cut(strings.TrimPrefix(value, "k8s:enc:"), ":v1:"); encrypted {
			return kind
		}
		return "plain"
	}
	data, file := t.TempDir(), filepath.Join(t.TempDir(), "encryption.yaml")
	start := func(flags ...string) *process {
		return startServer(t, append([]string{"--data-dir=" + data, "--etcd-servers=" + etcd.endpoints()}, flags...)...)
	}
	write := func(providers ...string) {
		if err := os.WriteFile(file+".new", encryptedWith(providers...), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	create := func(p *process, name string) {
		kubectl(t, p, nil, "create", "secret", "generic", name, "--from-literal=word=hush-"+name)
	}
	rewrite := func(p *process) {
		kubectl(t, p, kubectl(t, p, nil, "get", "secrets", "-o", "json"), "replace", "-f", "-")
	}
	check := func(p *process, step, want string, names ...string) {
		t.Helper()
		for _, name := range names {
			if got := stored(name); got != want {
				t.Errorf("%s: %s is stored %s, want %s", step, name, got, want)
			}
			got := kubectl(t, p, nil, "get", "secret", name, "-o", "go-template={{.data.word | base64decode}}")
			if string(got) != "hush-"+name {
				t.Errorf("%s: %s reads %q", step, name, got)
			}
		}
	}

	p := start()
	create(p, "before")
	check(p, "without encryption", "plain", "before")
	p.stop(t)

	write(oldKey, plain)
	p = start("--encryption-provider-config="+file, "--encryption-provider-config-automatic-reload")
	check(p, "switched on", "plain", "before")
	create(p, "after")
	check(p, "switched on", "secretbox", "after")
	rewrite(p)
	check(p, "rewritten", "secretbox", "before", "after")

	write(newKey, oldKey)
	// The server reads the file once a minute, or when the kernel reports a change: until then writes use the old key.
	ctx := bounded(t, 3*time.Minute)
	for i := 0; ; i++ {
		name := fmt.Sprint("probe-", i)
		create(p, name)
		if stored(name) == "aesgcm" {
			break
		}
		if ctx.Err() != nil {
			t.Fatal("the file was not read again")
		}
	}
	check(p, "rotated", "secretbox", "before", "after")
	kubectl(t, p, []byte(`{"apiVersion":"storagemigration.k8s.io/v1","kind":"StorageVersionMigration",
		"metadata":{"name":"rotate"},"spec":{"resource":{"group":"","resource":"secrets"}}}`), "create", "-f", "-")
	kubectl(t, p, nil, "wait", "--for=condition=Succeeded", "storageversionmigration/rotate", "--timeout=60s")
	check(p, "migrated", "aesgcm", "before", "after")
	p.stop(t)

	write(newKey)
	p = start("--encryption-provider-config=" + file)
	check(p, "without the old key", "aesgcm", "before", "after")
	p.stop(t)

	write(plain, newKey)
	p = start("--encryption-provider-config=" + file)
	rewrite(p)
	check(p, "taken back", "plain", "before", "after")
	p.stop(t)
	if log := p.stderr.String(); strings.Contains(log, "hush-") {
		t.Errorf("the log has a secret: %s", log)
	}
}
