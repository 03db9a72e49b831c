package encrypt

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	kms "k8s.io/apiserver/pkg/storage/value/encrypt/envelope/testing/v2"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/bowsprit/bowsprit/internal/testing/logtest"
)

// Keys of 32 bytes.
const (
	keyA = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	keyB = "Hx4dHBsaGRgXFhUUExIREA8ODQwLCgkIBwYFBAMCAQA="
)

func provider(kind, name, key string) string {
	return fmt.Sprintf("  - %s: {keys: [{name: %s, secret: %s}]}\n", kind, name, key)
}

const identity = "  - identity: {}\n"

// configuration is a file about resources ("secrets, '*.apps'") with providers.
func configuration(resources string, providers ...string) string {
	return "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [" + resources +
		"]\n  providers:\n" + strings.Join(providers, "")
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// kind maps a few prefixes to resources, as the server does.
func kind(prefix string) (schema.GroupResource, bool) {
	switch prefix {
	case "secrets", "configmaps":
		return schema.GroupResource{Resource: prefix}, true
	case "deployments":
		return schema.GroupResource{Group: "apps", Resource: prefix}, true
	case "masterleases":
		return schema.GroupResource{}, false
	}
	group, plural, ok := strings.Cut(prefix, "/")
	return schema.GroupResource{Group: group, Resource: plural}, ok
}

func open(t *testing.T, text string) *Encryption {
	t.Helper()
	file := filepath.Join(t.TempDir(), "encryption.yaml")
	write(t, file, text)
	e, err := Open(Config{
		File: file, Reload: true, Server: "s", Kind: kind, Log: slog.New(slog.DiscardHandler),
		Path: func(key string) string { return "/registry/" + key },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// TestProviders writes with each provider and reads with others.
func TestProviders(t *testing.T) {
	t.Parallel()
	plain := []byte(`{"kind":"Secret"}`)
	const key = "secrets/ns/a"
	box, cbc, gcm := provider("secretbox", "k1", keyA), provider("aescbc", "k1", keyA), provider("aesgcm", "k1", keyA)
	for name, c := range map[string]struct{ write, prefix, read, fails string }{
		"identity":  {identity, `{"kind"`, identity, ""},
		"secretbox": {box, "k8s:enc:secretbox:v1:k1:", box, ""},
		"aescbc":    {cbc, "k8s:enc:aescbc:v1:k1:", cbc, ""},
		"aesgcm":    {gcm, "k8s:enc:aesgcm:v1:k1:", gcm, ""},
		"wrong key": {gcm, "k8s:enc:", provider("aesgcm", "k1", keyB), "message authentication failed"},
		"no such key": {
			gcm, "k8s:enc:", provider("aesgcm", "k2", keyA), "no matching key was found for the provided AES transformer",
		},
		"another provider":    {gcm, "k8s:enc:", box, "no matching prefix found"},
		"identity reads none": {gcm, "k8s:enc:", identity, "no matching prefix found"},
	} {
		writer, reader := open(t, configuration("secrets", c.write)), open(t, configuration("secrets", c.read))
		stored, err := writer.Encrypt(t.Context(), "secrets", key, plain)
		if err != nil || !strings.HasPrefix(string(stored), c.prefix) {
			t.Errorf("%s: %v, %.40q", name, err, stored)
			continue
		}
		got, err := reader.Decrypt("secrets", key, bytes.Clone(stored))
		switch {
		case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
			t.Errorf("%s: %v, want %q", name, err, c.fails)
		case c.fails == "" && (err != nil || string(got) != string(plain)):
			t.Errorf("%s: %v, %q", name, err, got)
		}
		if reader.Stale("secrets", key, stored) {
			t.Errorf("%s: stale", name)
		}
		if name == "aesgcm" || name == "secretbox" {
			_, err := reader.Decrypt("secrets", "secrets/ns/b", stored)
			// secretbox does not authenticate more than the value, as in Kubernetes
			if moved := err != nil; moved != (name == "aesgcm") {
				t.Errorf("%s: moved key: %v", name, err)
			}
		}
	}
}

// TestNamed tests resources that the file names by a wildcard, and others.
func TestNamed(t *testing.T) {
	t.Parallel()
	all := open(t, configuration("'*.*'", provider("secretbox", "k", keyA)))
	some := open(t, configuration("'*.', '*.apps', tabs.example.com", provider("secretbox", "k", keyA), identity))
	for prefix, want := range map[string][2]bool{
		"secrets": {true, true}, "configmaps": {true, true}, "deployments": {true, true},
		"example.com/tabs": {true, true}, "example.com/pens": {true, false}, "masterleases": {false, false},
	} {
		for range 2 { // also from the cache
			if got := [2]bool{all.Covers(prefix), some.Covers(prefix)}; got != want {
				t.Errorf("%s: %v, want %v", prefix, got, want)
			}
		}
	}
	stored, err := some.Encrypt(t.Context(), "example.com/pens", "example.com/pens/a", []byte("{}"))
	if err != nil || string(stored) != "{}" {
		t.Errorf("%v %s", err, stored)
	}
	secret, _ := some.Encrypt(t.Context(), "example.com/tabs", "example.com/tabs/a", []byte("{}"))
	if _, err := some.Decrypt("example.com/pens", "example.com/tabs/a", secret); err != errNotNamed {
		t.Errorf("a value that should not be encrypted: %v", err)
	}
	if _, err := None("", "", secret); err != errNotNamed {
		t.Errorf("no encryption at all: %v", err)
	}
}

// TestReload rotates a key, then writes invalid files.
func TestReload(t *testing.T) {
	t.Parallel()
	e := open(t, configuration("secrets", provider("aescbc", "a", keyA)))
	old, err := e.Encrypt(t.Context(), "secrets", "secrets/x", []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	var concerned []string
	changed := func(_ context.Context, of func(string) bool) {
		concerned = nil
		for _, prefix := range []string{"secrets", "configmaps", "deployments"} {
			if of(prefix) {
				concerned = append(concerned, prefix)
			}
		}
	}
	if err := e.Reload(t.Context(), changed); err != nil || concerned != nil || e.Stale("secrets", "secrets/x", old) {
		t.Errorf("nothing has changed: %v, %v", err, concerned)
	}
	write(t, e.config.File,
		configuration("secrets, configmaps", provider("aescbc", "b", keyB), provider("aescbc", "a", keyA)))
	if err := e.Reload(t.Context(), changed); err != nil || fmt.Sprint(concerned) != "[secrets configmaps]" {
		t.Errorf("%v, %v", err, concerned)
	}
	if plain, err := e.Decrypt("secrets", "secrets/x", old); err != nil || string(plain) != "{}" {
		t.Errorf("%v, %s", err, plain)
	}
	if !e.Stale("secrets", "secrets/x", old) {
		t.Error("what the old key has encrypted is not stale")
	}
	for _, bad := range []string{
		"", "kind: Pod", configuration("secrets", provider("aescbc", "b", "c2hvcnQ=")), configuration("'*'", identity),
	} {
		write(t, e.config.File, bad)
		if err := e.Reload(t.Context(), changed); err == nil || strings.Contains(err.Error(), "c2hvcnQ=") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if !e.Stale("secrets", "secrets/x", old) {
		t.Error("a file that was refused is in force")
	}
}

// TestReloadInstead rotates the key of secrets, which also encrypts objects with sensitive fields that the file does
// not name: they must be read again, too.
func TestReloadInstead(t *testing.T) {
	t.Parallel()
	e := open(t, configuration("secrets", provider("aescbc", "a", keyA)))
	e.config.Instead = func(prefix string) string {
		if strings.Contains(prefix, "/") {
			return "secrets"
		}
		return ""
	}
	old, err := e.Encrypt(t.Context(), "secrets", "example.com/tabs/x", []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	concerned := map[string]bool{}
	changed := func(_ context.Context, of func(string) bool) {
		for _, prefix := range []string{"secrets", "example.com/tabs", "configmaps"} {
			concerned[prefix] = of(prefix)
		}
	}
	want := map[string]bool{"secrets": true, "example.com/tabs": true, "configmaps": false}
	for _, test := range []struct {
		text     string
		readable bool
	}{
		{configuration("secrets", provider("aescbc", "b", keyB), provider("aescbc", "a", keyA)), true},
		{configuration("secrets", provider("aescbc", "b", keyB)), false},
		{configuration("secrets", provider("aescbc", "b", keyB), provider("aescbc", "a", keyA), identity), true},
	} {
		write(t, e.config.File, test.text)
		if err := e.Reload(t.Context(), changed); err != nil || !maps.Equal(concerned, want) {
			t.Errorf("%v, %v", err, concerned)
		}
		_, err := e.Decrypt("example.com/tabs", "example.com/tabs/x", old)
		if (err == nil) != test.readable || test.readable && !e.Stale("example.com/tabs", "example.com/tabs/x", old) {
			t.Errorf("%v; a value of the old key is stale: %v", err, e.Stale("example.com/tabs", "example.com/tabs/x", old))
		}
	}
}

// TestPlugin encrypts by a KMS plugin that fails and recovers.
func TestPlugin(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "kms") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	plugin := kms.NewBase64Plugin(t, socket)
	text := configuration("secrets", fmt.Sprintf(
		"  - kms: {apiVersion: v2, name: box, timeout: 1s, endpoint: 'unix://%s'}\n", socket), identity)
	e := open(t, text)
	checks := e.Checks()
	if len(checks) != 1 || checks[0].Name != "kms-providers" || checks[0].Run(t.Context()) != nil {
		t.Fatalf("%+v", checks)
	}
	stored, err := e.Encrypt(t.Context(), "secrets", "secrets/x", []byte("{}"))
	if err != nil || !strings.HasPrefix(string(stored), "k8s:enc:kms:v2:box:") {
		t.Fatalf("%v, %.40q", err, stored)
	}
	if plain, err := e.Decrypt("secrets", "secrets/x", stored); err != nil || string(plain) != "{}" {
		t.Errorf("%v, %s", err, plain)
	}
	// Another server knows the plugin, but not the values of the first one; then the plugin fails.
	late := open(t, text)
	plugin.CleanUp()
	for range 50 {
		if _, err := late.Decrypt("secrets", "secrets/x", stored); err == nil {
			t.Fatal("decrypted without the plugin")
		}
	}
	if _, ok := late.outages.Load("k8s:enc:kms:v2:box:"); !ok || late.out("k8s:enc:kms:v2:box:") == nil {
		t.Error("each value waits for the plugin")
	}
	gone := open(t, text)
	if gone.Checks()[0].Run(t.Context()) == nil {
		t.Error("healthy without the plugin")
	}
	if _, err := gone.Decrypt("secrets", "secrets/x", stored); err == nil {
		t.Error("decrypted by a server that has never met the plugin")
	}
	if _, err := gone.Encrypt(t.Context(), "secrets", "secrets/x", []byte("{}")); err == nil {
		t.Error("encrypted without the plugin")
	}
	kms.NewBase64Plugin(t, socket)
	late.outages.Clear()
	if plain, err := late.Decrypt("secrets", "secrets/x", stored); err != nil || string(plain) != "{}" {
		t.Errorf("the plugin is back: %v, %s", err, plain)
	}
}

// TestMetrics has the library's metrics by their beginnings.
func TestMetrics(t *testing.T) {
	t.Parallel()
	e := open(t, configuration("secrets", provider("secretbox", "measured", keyA)))
	stored, _ := e.Encrypt(t.Context(), "secrets", "secrets/x", []byte("{}"))
	if _, err := e.Decrypt("secrets", "secrets/x", stored); err != nil {
		t.Fatal(err)
	}
	all, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, family := range all {
		if slices.ContainsFunc(LibraryMetrics(),
			func(begin string) bool { return strings.HasPrefix(family.GetName(), begin) }) {
			fmt.Fprintln(&text, family)
		}
	}
	for _, want := range []string{
		"apiserver_storage_transformation_operations_total", "apiserver_storage_transformation_duration_seconds",
		"apiserver_encryption_config_controller_last_config_info", `"k8s:enc:secretbox:v1:"`, `"secrets"`,
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(text.String(), keyA) {
		t.Error("a key is in the metrics")
	}
}

// TestOpenFails tests invalid files, and checks that errors contain no keys.
func TestOpenFails(t *testing.T) {
	t.Parallel()
	var log logtest.Log
	for _, text := range []string{
		"", configuration("secrets"), configuration("secrets", provider("aescbc", "k", keyA+"x")),
		configuration("secrets", "  - kms: {apiVersion: v1, name: old, endpoint: 'unix:///none'}\n"),
		// an element with two providers, which the library prints in full
		configuration("secrets", provider("aescbc", "k", keyA),
			strings.Replace(provider("aesgcm", "k", keyA), "-", " ", 1)),
	} {
		file := filepath.Join(t.TempDir(), "encryption.yaml")
		write(t, file, text)
		_, err := Open(Config{File: file, Kind: kind, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err == nil || !strings.HasPrefix(err.Error(), "--encryption-provider-config: ") ||
			strings.Contains(err.Error()+log.String(), keyA) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestPluginOf(t *testing.T) {
	t.Parallel()
	for stored, want := range map[string]string{
		"k8s:enc:kms:v2:a:b:c": "k8s:enc:kms:v2:a:", "k8s:enc:kms:v1:": "", "k8s:enc:kms:": "", "{}": "",
		"k8s:enc:aescbc:v1:k:x": "",
	} {
		if got := pluginOf([]byte(stored)); got != want {
			t.Errorf("%q: %q", stored, got)
		}
	}
}

// FuzzDecrypt decrypts arbitrary stored values: each is an error or equals the written value.
func FuzzDecrypt(f *testing.F) {
	for _, seed := range []string{
		"", "{}", "k8s:enc:", "k8s:enc:aescbc:v1:k:", "k8s:enc:aescbc:v1:k:0123456789abcdef0123456789abcdef",
		"k8s:enc:aesgcm:v1:k:0123456789ab", "k8s:enc:secretbox:v1:k:012345678901234567890123",
	} {
		f.Add([]byte(seed))
	}
	file := filepath.Join(f.TempDir(), "encryption.yaml")
	text := configuration("secrets", provider("aescbc", "k", keyA), provider("aesgcm", "k", keyA),
		provider("secretbox", "k", keyA), identity)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		f.Fatal(err)
	}
	e, err := Open(Config{
		File: file, Kind: kind, Log: slog.New(slog.DiscardHandler), Path: func(key string) string { return key },
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(e.Close)
	f.Fuzz(func(t *testing.T, stored []byte) {
		plain, err := e.Decrypt("secrets", "secrets/x", bytes.Clone(stored))
		if err == nil && !bytes.HasPrefix(stored, encrypted) && !bytes.Equal(plain, stored) {
			t.Errorf("%q became %q", stored, plain)
		}
		again, err := e.Encrypt(t.Context(), "secrets", "secrets/x", stored)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := e.Decrypt("secrets", "secrets/x", again); err != nil || !bytes.Equal(back, stored) {
			t.Errorf("%q came back as %q: %v", stored, back, err)
		}
	})
}
