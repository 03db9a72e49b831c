package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"fmt"
	"math/big"
	"net"
	"slices"
	"strings"
	"time"
)

const (
	authorityLife = 10 * 365 * 24 * time.Hour
	leafLife      = 365 * 24 * time.Hour
	// backdate lets clients with a slow clock use a new certificate.
	backdate = time.Hour
)

// issueAuthority returns a new authority, or a renewed one with the key and name of old.
func issueAuthority(old *pair, now time.Time) (*pair, error) {
	var key *ecdsa.PrivateKey
	if old != nil {
		key = old.key
	} else {
		var err error
		if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return nil, err
		}
	}
	// The name depends on the key: a client with certificates of several servers selects the right one by its issuer.
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(public)
	return issue(&x509.Certificate{
		Subject:               pkix.Name{CommonName: "bowsprit-ca-" + hex.EncodeToString(digest[:6])},
		NotAfter:              now.Add(authorityLife),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
	}, key, nil, now)
}

func issueServing(authority *pair, hosts []string, now time.Time) (*pair, error) {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		NotAfter:    now.Add(leafLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return issueLeaf(template, authority, now)
}

func issueAdmin(authority *pair, now time.Time) (*pair, error) {
	return issueLeaf(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "kubernetes-admin", Organization: []string{"system:masters"}},
		NotAfter:    now.Add(leafLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, authority, now)
}

func issueLeaf(template *x509.Certificate, authority *pair, now time.Time) (*pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return issue(template, key, authority, now)
}

// issue signs template for key with authority, or with key itself if authority is nil.
func issue(template *x509.Certificate, key *ecdsa.PrivateKey, authority *pair, now time.Time) (*pair, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial.Add(serial, big.NewInt(1))
	template.NotBefore = now.Add(-backdate)
	parent, signer := template, key
	if authority != nil {
		parent, signer = authority.cert, authority.key
		if template.NotAfter.After(parent.NotAfter) {
			template.NotAfter = parent.NotAfter
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return nil, fmt.Errorf("issue certificate %s: %w", template.Subject.CommonName, err)
	}
	return newPair(der, key)
}

// servingHosts returns the names for the serving certificate: the fixed ones and extra.
func servingHosts(extra []string) []string {
	hosts := []string{
		"localhost", "127.0.0.1", "::1",
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
	}
	for _, host := range extra {
		host = strings.Trim(host, "[]")
		if ip := net.ParseIP(host); ip != nil {
			if ip.IsUnspecified() {
				continue
			}
			host = ip.String()
		}
		if host != "" && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}
