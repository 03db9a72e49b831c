package bowsprit

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/internal/auth/pki"
)

// TestSigningConfig checks that Validate refuses files that cannot sign.
func TestSigningConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := pki.Open(pki.Config{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	ca := AuthorityFiles{CertFile: filepath.Join(dir, "ca.crt"), KeyFile: filepath.Join(dir, "ca.key")}
	for _, test := range []struct {
		name    string
		signing SigningConfig
		want    string // of the error
		signers int
	}{
		{"nothing", SigningConfig{}, "", 0},
		{"all signers", SigningConfig{AuthorityFiles: ca}, "", 4},
		{"one signer", SigningConfig{KubeletServing: ca, Duration: time.Hour}, "", 1},
		{"both", SigningConfig{AuthorityFiles: ca, LegacyUnknown: ca},
			"--cluster-signing-cert-file is for all signers, and there are files for single ones: give one of them", 4},
		{"no key", SigningConfig{KubeletClient: AuthorityFiles{CertFile: ca.CertFile}},
			"--cluster-signing-kubelet-client-cert-file and --cluster-signing-kubelet-client-key-file: give both, or none",
			1},
		{"no file", SigningConfig{AuthorityFiles: AuthorityFiles{CertFile: "none", KeyFile: ca.KeyFile}},
			"--cluster-signing-cert-file: open none: no such file or directory", 4},
		{"another key", SigningConfig{AuthorityFiles: AuthorityFiles{
			CertFile: ca.CertFile, KeyFile: filepath.Join(dir, "admin.key"),
		}}, "private key does not match public key", 4},
		{"negative", SigningConfig{Duration: -1}, "--cluster-signing-duration -1ns is negative", 0},
	} {
		err := Config{Ephemeral: true, Controllers: ControllersConfig{Signing: test.signing}}.Validate()
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
		if got := authorities(&test.signing); len(got) != test.signers {
			t.Errorf("%s: %d signers, want %d", test.name, len(got), test.signers)
		}
	}
}
