package parts

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bowsprit/bowsprit/internal/auth/pki"
	"github.com/bowsprit/bowsprit/internal/server/config"
)

// TestSigningConfig checks that Validate refuses files that cannot sign.
func TestSigningConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := pki.Open(pki.Config{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	ca := config.AuthorityFiles{CertFile: filepath.Join(dir, "ca.crt"), KeyFile: filepath.Join(dir, "ca.key")}
	for _, test := range []struct {
		name    string
		signing config.Signing
		want    string // of the error
		signers int
	}{
		{"nothing", config.Signing{}, "", 0},
		{"all signers", config.Signing{AuthorityFiles: ca}, "", 4},
		{"one signer", config.Signing{KubeletServing: ca, Duration: time.Hour}, "", 1},
		{"both", config.Signing{AuthorityFiles: ca, LegacyUnknown: ca},
			"--cluster-signing-cert-file is for all signers, and other flags name files for single ones: use one form", 4},
		{"no key", config.Signing{KubeletClient: config.AuthorityFiles{CertFile: ca.CertFile}},
			"--cluster-signing-kubelet-client-cert-file and --cluster-signing-kubelet-client-key-file: give both, or none",
			1},
		{"no file", config.Signing{AuthorityFiles: config.AuthorityFiles{CertFile: "none", KeyFile: ca.KeyFile}},
			"--cluster-signing-cert-file: open none: no such file or directory", 4},
		{"another key", config.Signing{AuthorityFiles: config.AuthorityFiles{
			CertFile: ca.CertFile, KeyFile: filepath.Join(dir, "admin.key"),
		}}, "private key does not match public key", 4},
		{"negative", config.Signing{Duration: -1}, "--cluster-signing-duration -1ns is negative", 0},
	} {
		err := config.Config{Ephemeral: true, Controllers: config.Controllers{Signing: test.signing}}.Validate()
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
		if got := authorities(&test.signing); len(got) != test.signers {
			t.Errorf("%s: %d signers, want %d", test.name, len(got), test.signers)
		}
	}
}
