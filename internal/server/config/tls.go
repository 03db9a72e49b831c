package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bowsprit/bowsprit/internal/auth/pki"
)

// TLS configures the server's certificates and TLS.
type TLS struct {
	// CertFile and PrivateKeyFile are the serving certificate; without them the server makes its own.
	CertFile, PrivateKeyFile string
	// SNICertKeys are further serving certificates, for clients that request their names: "CERT,KEY" for the names in
	// the certificate, or "CERT,KEY:NAME,*.NAME". The server uses the first with the name.
	SNICertKeys []string
	// MinVersion is the oldest version of TLS that clients may use, named as in package crypto/tls ("VersionTLS13");
	// VersionTLS12 if empty. CipherSuites are the suites for versions before 1.3, named likewise; Go's choice if empty.
	MinVersion   string
	CipherSuites []string // see MinVersion
}

func (c *TLS) settings() []Setting {
	return []Setting{
		{Name: "tls-cert-file", Help: "serving certificate, PEM (default: a generated one)", Value: &c.CertFile},
		{Name: "tls-private-key-file", Help: "key of --tls-cert-file, PEM", Value: &c.PrivateKeyFile},
		{
			Name:  "tls-sni-cert-key",
			Help:  "serving certificate for requests to its names or to the given names: CERT,KEY[:NAME,...]",
			Value: &c.SNICertKeys, Form: Repeated,
		},
		{
			Name:  "tls-min-version",
			Help:  "oldest version of TLS that clients may use: VersionTLS10 to VersionTLS13 (default VersionTLS12)",
			Value: &c.MinVersion,
		},
		{
			Name:  "tls-cipher-suites",
			Help:  "cipher suites for TLS before 1.3, by their names in Go's crypto/tls (default: Go's choice)",
			Value: &c.CipherSuites,
		},
	}
}

func (c *TLS) validate(p *problems) {
	if (c.CertFile == "") != (c.PrivateKeyFile == "") {
		p.add("--tls-cert-file and --tls-private-key-file go together: give both or none")
	}
	for _, text := range c.SNICertKeys {
		if _, err := pki.ParseNamed(text); err != nil {
			p.add("--tls-sni-cert-key %w", err)
		}
	}
	if _, err := ParseTLS(c); err != nil {
		*p = append(*p, err)
	}
}

// tlsVersions are the names that --tls-min-version takes.
var tlsVersions = map[string]uint16{
	"VersionTLS10": tls.VersionTLS10, "VersionTLS11": tls.VersionTLS11, "VersionTLS12": tls.VersionTLS12,
	"VersionTLS13": tls.VersionTLS13,
}

// ParseTLS returns the versions and suites of a configuration in a tls.Config without other fields.
func ParseTLS(c *TLS) (*tls.Config, error) {
	out := &tls.Config{MinVersion: tls.VersionTLS12}
	var errs []error
	if c.MinVersion != "" {
		version, ok := tlsVersions[c.MinVersion]
		if !ok {
			errs = append(errs,
				fmt.Errorf(
					"--tls-min-version %q is not a version: use VersionTLS10, VersionTLS11, VersionTLS12 or VersionTLS13",
					c.MinVersion))
		}
		out.MinVersion = version
	}
	suites := slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites())
	for _, name := range c.CipherSuites {
		i := slices.IndexFunc(suites, func(s *tls.CipherSuite) bool { return s.Name == name })
		if i < 0 {
			errs = append(errs,
				fmt.Errorf("--tls-cipher-suites: %q is unknown: use names such as %s", name,
					tls.CipherSuites()[0].Name))
			continue
		}
		out.CipherSuites = append(out.CipherSuites, suites[i].ID)
	}
	if len(errs) == 0 && out.CipherSuites != nil && out.MinVersion < tls.VersionTLS13 &&
		!slices.ContainsFunc(out.CipherSuites, carriesHTTP2) {
		errs = append(errs,
			fmt.Errorf(
				"--tls-cipher-suites %s: HTTP/2 needs TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 or TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256: add one, or --tls-min-version=VersionTLS13",
				strings.Join(c.CipherSuites, ",")))
	}
	return out, errors.Join(errs...)
}

// carriesHTTP2 reports whether the suite allows HTTP/2: a server needs one of these two (RFC 9113, section 9.2.2).
func carriesHTTP2(suite uint16) bool {
	return suite == tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 || suite == tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
}
