package pki

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	"github.com/bowsprit/bowsprit/internal/storage/durable"
)

// ContextName is the name of the context, the cluster and the user in the kubeconfigs of this package.
const ContextName = "bowsprit"

// kubeconfigFile is a file that follows the administrator's certificate.
type kubeconfigFile struct {
	file, server string
	merge        bool // the file has other entries, too
}

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
	b.WriteString("users:\n- name: bowsprit\n  user:\n")
	fmt.Fprintf(&b, "    client-certificate-data: %s\n", encoded(p.mu.admin.certPEM))
	fmt.Fprintf(&b, "    client-key-data: %s\n", encoded(p.mu.admin.keyPEM))
	b.WriteString("contexts:\n- name: bowsprit\n  context:\n    cluster: bowsprit\n    user: bowsprit\n")
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

// WriteKubeconfig writes Kubeconfig(server) to file (0600, atomically, creating its directory), and again whenever a
// renewed certificate changes it. It replaces the previous content.
func (p *PKI) WriteKubeconfig(file, server string) error {
	return p.keepKubeconfig(kubeconfigFile{file: file, server: server})
}

// MergeKubeconfig puts the entries of Kubeconfig(server) into file, as Merge does, and again whenever a renewed
// certificate changes them. Entries that an earlier run on this machine has left are replaced.
func (p *PKI) MergeKubeconfig(file, server string) error {
	return p.keepKubeconfig(kubeconfigFile{file: file, server: server, merge: true})
}

func (p *PKI) keepKubeconfig(k kubeconfigFile) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.writeKubeconfigLocked(k); err != nil {
		return err
	}
	p.mu.kubeconfigs = append(p.mu.kubeconfigs, k)
	return nil
}

func (p *PKI) writeKubeconfigLocked(k kubeconfigFile) error {
	content := p.kubeconfigLocked(k.server)
	if k.merge {
		_, err := merge(k.file, content, false, otherServerNow)
		return err
	}
	if err := os.MkdirAll(filepath.Dir(k.file), 0o700); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	if err := durable.WriteFile(k.file, content); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

func (p *PKI) writeKubeconfigsLocked() error {
	for _, k := range p.mu.kubeconfigs {
		if err := p.writeKubeconfigLocked(k); err != nil {
			return err
		}
	}
	return nil
}
