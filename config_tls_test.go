package bowsprit_test

import (
	"crypto/tls"
	"testing"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/testserver"
)

func TestTLSVersion(t *testing.T) {
	const suite = tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
	suites := testserver.Start(t,
		func(c *bowsprit.Config) { c.TLS.CipherSuites = []string{tls.CipherSuiteName(suite)} })
	newest := testserver.Start(t, func(c *bowsprit.Config) { c.TLS.MinVersion = "VersionTLS13" })
	old := &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}
	dial := func(s *testserver.Server) (*tls.Conn, error) { return tls.Dial("tcp", s.URL()[len("https://"):], old) }

	conn, err := dial(suites)
	if err != nil {
		t.Fatal(err)
	}
	if state := conn.ConnectionState(); state.CipherSuite != suite {
		t.Errorf("suite %s", tls.CipherSuiteName(state.CipherSuite))
	}
	conn.Close()
	old.CipherSuites = []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384}
	if conn, err := dial(suites); err == nil {
		conn.Close()
		t.Error("a suite that is not among those of the server")
	}
	old.CipherSuites = nil
	if conn, err := dial(newest); err == nil {
		conn.Close()
		t.Error("TLS 1.2 with a server that wants 1.3")
	}
}
