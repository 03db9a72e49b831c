package bowsprit

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// tlsVersions are the names that --tls-min-version takes.
var tlsVersions = map[string]uint16{
	"VersionTLS10": tls.VersionTLS10, "VersionTLS11": tls.VersionTLS11, "VersionTLS12": tls.VersionTLS12,
	"VersionTLS13": tls.VersionTLS13,
}

// parseTLS returns what a configuration says of versions and suites, in a tls.Config that has nothing else.
func parseTLS(c Config) (*tls.Config, error) {
	out := &tls.Config{MinVersion: tls.VersionTLS12}
	var errs []error
	if c.TLSMinVersion != "" {
		version, ok := tlsVersions[c.TLSMinVersion]
		if !ok {
			errs = append(errs,
				fmt.Errorf(
					"--tls-min-version %q is no version: use VersionTLS10, VersionTLS11, VersionTLS12 or VersionTLS13",
					c.TLSMinVersion))
		}
		out.MinVersion = version
	}
	suites := slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites())
	for _, name := range c.TLSCipherSuites {
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
				strings.Join(c.TLSCipherSuites, ",")))
	}
	return out, errors.Join(errs...)
}

// carriesHTTP2 tells of the suites of which a server for HTTP/2 has one (RFC 9113, section 9.2.2).
func carriesHTTP2(suite uint16) bool {
	return suite == tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 || suite == tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
}
