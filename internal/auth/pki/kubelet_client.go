package pki

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"

	"k8s.io/apiserver/pkg/authentication/user"
)

// KubeletClientName is the common name of the certificate that the server shows kubelets, kubeadm's.
const KubeletClientName = "kube-apiserver-kubelet-client"

// KubeletClient returns a client certificate of the own authority for kubelets that trust it; nil if client
// certificates of that authority are not accepted. It is created on first use and kept in memory.
func (p *PKI) KubeletClient() *tls.Certificate {
	if p.config.NoOwnClients {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.config.Now()
	if p.mu.kubeletClient.due(now) || p.mu.kubeletClient.cert.CheckSignatureFrom(p.mu.authority.cert) != nil {
		made, err := issueLeaf(&x509.Certificate{
			Subject:     pkix.Name{CommonName: KubeletClientName, Organization: []string{user.SystemPrivilegedGroup}},
			NotAfter:    now.Add(leafLife),
			KeyUsage:    x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}, p.mu.authority, now)
		if err != nil {
			p.config.Log.Error("cannot create the client certificate for kubelets; requests to kubelets carry none", "error", err)
			return nil
		}
		p.mu.kubeletClient = made
	}
	return p.mu.kubeletClient.tls
}
