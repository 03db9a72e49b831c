package pki

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
)

type kubeconfigFile struct{ file, server string }

// Kubeconfig returns the administrator's kubeconfig (YAML, certificates embedded) for the server at the given URL.
func (p *PKI) Kubeconfig(server string) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.kubeconfigLocked(server)
}

func (p *PKI) kubeconfigLocked(server string) []byte {
	var b bytes.Buffer
	encoded := base64.StdEncoding.EncodeToString
	b.WriteString("apiVersion: v1\nkind: Config\n")
	b.WriteString("clusters:\n- name: bowsprit\n  cluster:\n")
	fmt.Fprintf(&b, "    server: %s\n", strconv.Quote(server))
	fmt.Fprintf(&b, "    certificate-authority-data: %s\n", encoded(p.serverCALocked()))
	if name := p.serverNameLocked(server); name != "" {
		fmt.Fprintf(&b, "    tls-server-name: %s\n", strconv.Quote(name))
	}
	b.WriteString("users:\n- name: kubernetes-admin\n  user:\n")
	fmt.Fprintf(&b, "    client-certificate-data: %s\n", encoded(p.mu.admin.certPEM))
	fmt.Fprintf(&b, "    client-key-data: %s\n", encoded(p.mu.admin.keyPEM))
	b.WriteString("contexts:\n- name: bowsprit\n  context:\n    cluster: bowsprit\n    user: kubernetes-admin\n")
	b.WriteString("current-context: bowsprit\n")
	return b.Bytes()
}

// serverNameLocked returns a name that the user's serving certificate is valid for, if the server's URL has none.
func (p *PKI) serverNameLocked(server string) string {
	if p.mu.supplied == nil {
		return ""
	}
	cert := p.mu.supplied.cert
	u, err := url.Parse(server)
	if err == nil && cert.VerifyHostname(u.Hostname()) == nil {
		return ""
	}
	if len(cert.DNSNames) > 0 {
		return cert.DNSNames[0]
	}
	return ""
}

// WriteKubeconfig writes Kubeconfig(server) to file (0600, atomically, its directory made if missing), and again
// whenever a renewed certificate changes it.
func (p *PKI) WriteKubeconfig(file, server string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := writeFile(file, p.kubeconfigLocked(server)); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	p.mu.kubeconfigs = append(p.mu.kubeconfigs, kubeconfigFile{file: file, server: server})
	return nil
}

func (p *PKI) writeKubeconfigsLocked() error {
	for _, k := range p.mu.kubeconfigs {
		if err := writeFile(k.file, p.kubeconfigLocked(k.server)); err != nil {
			return fmt.Errorf("write kubeconfig: %w", err)
		}
	}
	return nil
}
