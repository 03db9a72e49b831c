package pki

import (
	"crypto/tls"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
)

// Named is a supplied serving certificate for clients that request certain names (SNI, RFC 6066).
type Named struct {
	CertFile, KeyFile string
	// Names may begin with "*."; if empty, the names in the certificate apply.
	Names []string
}

// ParseNamed parses a value of kube-apiserver's flag --tls-sni-cert-key: "cert,key" or "cert,key:name,*.other".
func ParseNamed(text string) (Named, error) {
	files, names, found := strings.Cut(text, ":")
	var n Named
	if found {
		for name := range strings.SplitSeq(names, ",") {
			if name = strings.TrimSpace(name); name == "" || strings.Contains(name, ":") {
				return n, fmt.Errorf("%q has an unusable name: write CERT,KEY:NAME,NAME", text)
			}
			n.Names = append(n.Names, name)
		}
	}
	cert, key, ok := strings.Cut(files, ",")
	n.CertFile, n.KeyFile = strings.TrimSpace(cert), strings.TrimSpace(key)
	if !ok || n.CertFile == "" || n.KeyFile == "" || strings.Contains(key, ",") {
		return n, fmt.Errorf("%q is not a certificate and a key: write CERT,KEY or CERT,KEY:NAME,NAME", text)
	}
	return n, nil
}

// named is a serving certificate for names.
type named struct {
	supplied *supplied
	names    []string
}

// hosts returns the names that the certificate is served for, in lower case.
func (n *named) hosts() []string {
	names := n.names
	if len(names) == 0 {
		leaf := n.supplied.cert
		names = slices.Clone(leaf.DNSNames)
		for _, ip := range leaf.IPAddresses {
			names = append(names, ip.String())
		}
		if cn := leaf.Subject.CommonName; len(names) == 0 && cn != "" {
			names = []string{cn}
		}
	}
	for i := range names {
		names[i] = strings.ToLower(strings.TrimSuffix(names[i], "."))
	}
	return names
}

// byName returns a function that selects a certificate by the requested name, or by the dialled address without one.
// The first certificate with the name is selected; an exact name precedes a wildcard. Other clients get the certificate
// rest.
func byName(all []*named, rest *tls.Certificate) func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	certificates := map[string]*tls.Certificate{}
	for _, n := range all {
		for _, host := range n.hosts() {
			if certificates[host] == nil {
				certificates[host] = n.supplied.tls
			}
		}
	}
	return func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		name := strings.ToLower(strings.TrimSuffix(hello.ServerName, "."))
		if name == "" && hello.Conn != nil {
			name, _, _ = net.SplitHostPort(hello.Conn.LocalAddr().String())
		}
		if c := certificates[name]; c != nil {
			return c, nil
		}
		if _, domain, ok := strings.Cut(name, "."); ok && certificates["*."+domain] != nil {
			return certificates["*."+domain], nil
		}
		return rest, nil
	}
}

// userFiles are the files that the user has given.
func (p *PKI) userFiles() []string {
	files := []string{
		p.config.ServingCertFile, p.config.ServingKeyFile, p.config.ClientCAFile, p.config.ProxyCAFile,
		p.config.ProxyClientCertFile, p.config.ProxyClientKeyFile,
	}
	for _, n := range p.config.Named {
		files = append(files, n.CertFile, n.KeyFile)
	}
	return slices.DeleteFunc(files, func(file string) bool { return file == "" })
}

// stamp identifies the content of a file with high probability. Nil means that there is no file.
type stamp struct{ fs.FileInfo }

func (s stamp) same(t stamp) bool {
	if s.FileInfo == nil || t.FileInfo == nil {
		return s.FileInfo == t.FileInfo
	}
	// a replaced file may have the same time and length
	return s.ModTime().Equal(t.ModTime()) && s.Size() == t.Size() && os.SameFile(s.FileInfo, t.FileInfo)
}

func stamps(files []string) []stamp {
	all := make([]stamp, len(files))
	for i, file := range files {
		if info, err := os.Stat(file); err == nil {
			all[i] = stamp{info}
		}
	}
	return all
}
