package pki

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// ErrNoAuthority: a directory contains no authority.
var ErrNoAuthority = errors.New("there is no certificate authority")

// Person is the user of a kubeconfig.
type Person struct {
	User     string   // the common name of the certificate; not empty
	Groups   []string // its organizations
	Duration time.Duration
	Server   string // URL of the server for the person; "" means the administrator's URL
}

// Context returns the name of the context and the user in the kubeconfig of a person.
func (p Person) Context() string { return p.User + "@" + ContextName }

// Personal is the kubeconfig of a person.
type Personal struct {
	Kubeconfig []byte
	Expires    time.Time
	// Mismatch is true if the certificate that the server shows is not for the host of Person.Server.
	Mismatch bool
}

// PersonalKubeconfig returns admin, the administrator's kubeconfig, with a new client certificate for the person in
// place of the administrator's. The authority is the one that a server keeps in dir; the server may be running. Nothing
// is written.
//
// An error wraps ErrNoAuthority if dir has none. A certificate that would outlive the authority is an error.
func PersonalKubeconfig(dir string, admin []byte, p Person, now time.Time) (*Personal, error) {
	leaf, err := issuePerson(dir, p, now)
	if err != nil {
		return nil, err
	}
	return personal(dir, admin, p, leaf)
}

// ErrNoOwnClients is the error for a client certificate that the server would not accept.
var ErrNoOwnClients = errors.New("the server accepts no client certificates of its own authority")

// UserKubeconfig returns a kubeconfig with a new client certificate for the person, for the server at the given URL.
func (p *PKI) UserKubeconfig(server string, person Person) ([]byte, error) {
	if p.config.NoOwnClients {
		return nil, ErrNoOwnClients
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	leaf, err := issueTo(person, p.mu.authority, "of this server", p.config.Now())
	if err != nil {
		return nil, err
	}
	person.Server = ""
	made, err := personal("", p.kubeconfigLocked(server), person, leaf)
	if err != nil {
		return nil, err
	}
	return made.Kubeconfig, nil
}

// ShareAuthority writes the authority of a PKI in memory into a directory, where PersonalKubeconfig finds it while the
// server runs. The files need not survive a crash.
func (p *PKI) ShareAuthority(dir string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(
		os.MkdirAll(dir, 0o700),
		os.WriteFile(filepath.Join(dir, "ca.key"), p.mu.authority.keyPEM, 0o600),
		os.WriteFile(filepath.Join(dir, "ca.crt"), p.mu.authority.certPEM, 0o600),
	)
}

// personal returns admin with the certificate of a person in place of the administrator's.
func personal(dir string, admin []byte, p Person, leaf *pair) (*Personal, error) {
	config, err := clientcmd.Load(admin)
	if err != nil {
		return nil, err
	}
	cluster := config.Clusters[ContextName]
	if cluster == nil {
		return nil, fmt.Errorf("the administrator's kubeconfig has no cluster %s", ContextName)
	}
	out := &Personal{Expires: leaf.cert.NotAfter}
	if p.Server != "" {
		cluster.Server = p.Server
		out.Mismatch = !redirect(cluster, dir)
	}
	name := p.Context()
	config.AuthInfos = map[string]*clientcmdapi.AuthInfo{
		name: {ClientCertificateData: leaf.certPEM, ClientKeyData: leaf.keyPEM},
	}
	config.Contexts = map[string]*clientcmdapi.Context{name: {Cluster: ContextName, AuthInfo: name}}
	config.CurrentContext = name
	out.Kubeconfig, err = clientcmd.Write(*config)
	return out, err
}

// CheckName returns an error for a name of a user or group that is empty or has unprintable characters: in a log or a
// terminal it would look like another name.
func CheckName(name string) error {
	switch {
	case name == "":
		return errors.New("the name of a user or group is empty")
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("the name %+q has characters that cannot be printed", name)
	}
	return nil
}

func issuePerson(dir string, p Person, now time.Time) (*pair, error) {
	if err := p.checkNames(); err != nil {
		return nil, err
	}
	authority, err := loadAuthority(filepath.Join(dir, "ca"))
	if err != nil {
		return nil, err
	}
	if authority == nil || authority.cert == nil {
		return nil, fmt.Errorf("%w in %s", ErrNoAuthority, dir)
	}
	return issueTo(p, authority, filepath.Join(dir, "ca.crt"), now)
}

func (p Person) checkNames() error {
	for _, name := range append([]string{p.User}, p.Groups...) {
		if err := CheckName(name); err != nil {
			return err
		}
	}
	return nil
}

// issueTo issues the certificate of a person. label is the authority in an error.
func issueTo(p Person, authority *pair, label string, now time.Time) (*pair, error) {
	if err := p.checkNames(); err != nil {
		return nil, err
	}
	expires := now.Add(p.Duration)
	if end := authority.cert.NotAfter; expires.After(end) {
		return nil, fmt.Errorf("the authority %s ends at %s, before the certificate would", label,
			end.UTC().Format(time.RFC3339))
	}
	return issueLeaf(&x509.Certificate{
		Subject:     pkix.Name{CommonName: p.User, Organization: p.Groups},
		NotAfter:    expires,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, authority, now)
}

// redirect sets the expected name in the server's certificate after the URL of the cluster has changed. It returns
// false if the certificate does not have that name. Clients trust the own authority, or a supplied serving certificate,
// which then comes first.
func redirect(cluster *clientcmdapi.Cluster, dir string) bool {
	u, err := url.Parse(cluster.Server)
	block, _ := pem.Decode(cluster.CertificateAuthorityData)
	if err != nil || block == nil {
		return false
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return false
	}
	if cert.IsCA {
		serving, err := loadPair(filepath.Join(dir, "apiserver"))
		return err == nil && serving.covers([]string{u.Hostname()})
	}
	if cert.VerifyHostname(u.Hostname()) == nil {
		cluster.TLSServerName = ""
		return true
	}
	return cluster.TLSServerName != ""
}
