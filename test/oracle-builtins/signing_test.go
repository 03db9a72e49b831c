package oraclebuiltins

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	cryptorand "crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/apis/certificates"
	"k8s.io/kubernetes/pkg/controller/certificates/authority"

	"github.com/bowsprit/bowsprit/internal/auth/pki"
	"github.com/bowsprit/bowsprit/internal/feature/certificates/signing"
)

// signs is an authority that both sides share.
type signs struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	own  pki.Authority
}

func newAuthority(t *testing.T, end time.Time) *signs {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), cryptorand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: end.Add(-1e6 * time.Hour),
		NotAfter: end, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(cryptorand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := &signs{key: key, own: pki.Authority{
		CertFile: filepath.Join(dir, "ca.crt"), KeyFile: filepath.Join(dir, "ca.key"),
	}}
	if s.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		s.own.CertFile: {Type: "CERTIFICATE", Bytes: der}, s.own.KeyFile: {Type: "EC PRIVATE KEY", Bytes: keyDER},
	} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestSigning compares the requirements of Kubernetes' signers for requests, and their certificates, with ours, for
// random requests, durations and authorities.
func TestSigning(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 6))
	now := time.Now().UTC().Truncate(time.Second)
	key, err := ecdsa.GenerateKey(elliptic.P256(), cryptorand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	authorities := []*signs{
		newAuthority(t, now.Add(1e5*time.Hour)), newAuthority(t, now.Add(time.Hour)), newAuthority(t, now),
		newAuthority(t, now.Add(-time.Minute)), newAuthority(t, now.Add(-time.Hour)),
	}
	signed, refused := 0, 0
	for range 600 {
		der := randomRequest(t, rng, key)
		req, err := x509.ParseCertificateRequest(der)
		if err != nil {
			t.Fatal(err)
		}
		usages := randomUsages(rng)
		compareDemands(t, req, usages)
		by := authorities[rng.IntN(len(authorities))]
		durations := []time.Duration{
			time.Hour, 10 * time.Minute, 8 * time.Hour, 8*time.Hour - 1e9, 300 * time.Hour,
		}[rng.IntN(5)]
		seconds := int32(durations / time.Second)
		theirs := authority.CertificateAuthority{Certificate: by.cert, PrivateKey: by.key}
		want, wantErr := theirs.Sign(der, authority.PermissiveSigningPolicy{
			TTL: durations, Usages: usages, Backdate: 5 * time.Minute, Short: 8 * time.Hour,
			Now: func() time.Time { return now },
		})
		got, err := by.own.SignRequest(req, func(end time.Time) (*x509.Certificate, error) {
			return signing.Template(req, &certificatesv1.CertificateSigningRequestSpec{
				Usages: usages, ExpirationSeconds: &seconds,
			}, signing.Validity{Now: now, Longest: 365 * 24 * time.Hour, End: end})
		})
		if fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("usages %q for %s: %v, want %v", usages, durations, err, wantErr)
		}
		if wantErr != nil {
			refused++
			continue
		}
		signed++
		block, _ := pem.Decode(got)
		if a, b := certificateFields(t, block.Bytes), certificateFields(t, want); !reflect.DeepEqual(a, b) {
			t.Fatalf("\n got %+v\nwant %+v", a, b)
		}
	}
	if signed < 100 || refused < 100 {
		t.Errorf("%d signed, %d refused: too few of one", signed, refused)
	}
}

// compareDemands checks that both sides agree whether the signers of kubelets' certificates sign.
func compareDemands(t *testing.T, r *x509.CertificateRequest, usages []certificatesv1.KeyUsage) {
	t.Helper()
	set := sets.NewString()
	for _, u := range usages {
		set.Insert(string(u))
	}
	for name, check := range map[string]func(*x509.CertificateRequest, sets.String) error{
		certificatesv1.KubeAPIServerClientKubeletSignerName: certificates.ValidateKubeletClientCSR,
		certificatesv1.KubeletServingSignerName:             certificates.ValidateKubeletServingCSR,
	} {
		want := check(r, set)
		if _, err := signing.Check(name, r, usages); fmt.Sprint(err) != fmt.Sprint(want) {
			t.Fatalf("%s of %+v for %q: %v, want %v", name, r.Subject, usages, err, want)
		}
	}
}

// certificateFields returns the compared fields: all but the serial number and the signature.
func certificateFields(t *testing.T, der []byte) map[string]any {
	t.Helper()
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]any{
		"subject": c.Subject.String(), "issuer": c.Issuer.String(), "from": c.NotBefore, "to": c.NotAfter,
		"usage": c.KeyUsage, "extended": c.ExtKeyUsage, "unknown": c.UnknownExtKeyUsage, "ca": c.IsCA,
		"constraints": c.BasicConstraintsValid, "dns": c.DNSNames, "ips": fmt.Sprint(c.IPAddresses),
		"emails": c.EmailAddresses, "uris": fmt.Sprint(c.URIs), "key": c.PublicKey, "extensions": c.Extensions,
		"authority": c.AuthorityKeyId,
	}
}

func randomRequest(t *testing.T, rng *rand.Rand, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	some := func() bool { return rng.IntN(5) == 0 }
	r := &x509.CertificateRequest{Subject: pkix.Name{
		CommonName:   oneOf(rng, "system:node:a", "system:node:", "alice", ""),
		Organization: [][]string{{"system:nodes"}, {"system:nodes"}, {"system:nodes", "b"}, nil}[rng.IntN(4)],
	}}
	if some() {
		r.DNSNames = []string{"a.example"}
	}
	if some() {
		r.IPAddresses = []net.IP{net.IPv4(192, 0, 2, 1)}
	}
	if some() {
		r.EmailAddresses = []string{"a@example.com"}
	}
	if some() {
		r.URIs = []*url.URL{{Scheme: "https", Host: "a.example"}}
	}
	if some() {
		r.ExtraExtensions = []pkix.Extension{{Id: []int{1, 2, 3}, Value: []byte{5, 0}}}
	}
	der, err := x509.CreateCertificateRequest(cryptorand.Reader, r, key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func randomUsages(rng *rand.Rand) []certificatesv1.KeyUsage {
	common := []certificatesv1.KeyUsage{"digital signature", "key encipherment", "client auth", "server auth"}
	all := append(common, "any", "cert sign", "s/mime", "email protection", "signing", "ocsp signing", "nonsense")
	if rng.IntN(3) > 0 {
		all = common
	}
	var out []certificatesv1.KeyUsage
	for _, i := range rng.Perm(len(all))[:rng.IntN(4)] {
		out = append(out, all[i])
	}
	return out
}
