package publickey_test

import (
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/bowsprit/bowsprit/internal/net/foreign/publickey"
	"github.com/bowsprit/bowsprit/internal/testing/hostile"
)

// TestLargeKeys checks requests and authorities with keys at the limit and above. A check of the largest one takes the
// library hours.
func TestLargeKeys(t *testing.T) {
	t.Parallel()
	for bits, refused := range map[int]bool{
		2048: false, publickey.MaxBits: false, publickey.MaxBits + 8: true, 12_000_000: true,
	} {
		request, err := x509.ParseCertificateRequest(hostile.Request(bits))
		if err != nil {
			t.Fatal(err)
		}
		// The signature is wrong.
		err = publickey.CheckSignature(request)
		if err == nil || strings.Contains(err.Error(), "use a key of at most") != refused {
			t.Errorf("a request with a key of %d bits: %v", bits, err)
		}
		bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hostile.Certificate(bits)})
		if pool, err := publickey.Authorities(bundle); (err != nil) != refused || (pool == nil) != refused {
			t.Errorf("an authority with a key of %d bits: %v", bits, err)
		}
	}
	if _, err := publickey.Authorities([]byte("no PEM")); err == nil {
		t.Error("a bundle without certificates is accepted")
	}
}
